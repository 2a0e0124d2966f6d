/** What a person sees at the end of each scenario. */
const WAITS = '! It waits until the run goes on.';
const FAILED = {
  '0.20': 'An error occurred while running the tool. Please try again.',
  '0.8': 'An error occurred while running the tool. Please try again. Error: Error: no disk',
};
const UNREADABLE =
  'An error occurred while parsing tool arguments. Please try again with valid JSON.';

/** The parts, as `outline` tells them, and how it ended where that is not well. */
export type Seen = { parts: string[]; end?: string };

export function expectedMessages(version: string): Record<string, Seen> {
  const isNew = version === '0.20';
  const failed = FAILED[version as keyof typeof FAILED];
  const begin = ['—', 'is Helper'];
  return {
    text: { parts: [...begin, 'says Hello, how are you?'] },
    tools: {
      parts: [
        ...[...begin, 'says I look. ', 'weather({"city":"Paris"}) = "21° in Paris"'],
        ...['—', 'find({}) = {"hits":[1,2]}'],
        ...['—', `broken({}) ! ${failed}`],
        ...['—', "slow({}) ! Tool 'slow' timed out after 5ms."],
        ...['—', 'chart({}) = "See the file."', 'file image/png'],
        ...['—', 'report({}) = "See the file."', 'file application/pdf'],
        ...['—', 'says That is all.'],
      ],
    },
    'bad-arguments': {
      parts: [
        ...begin,
        `weather("{\\"city\\":") ! ${UNREADABLE}${isNew ? '' : ' Error: Unexpected end of JSON input'}`,
        ...['—', 'says I could not ask.'],
      ],
    },
    'parallel-calls': {
      parts: [
        ...[...begin, 'weather({"city":"Paris"}) = "21° in Paris"', 'find({}) = {"hits":[1,2]}'],
        ...[`broken({}) ! ${failed}`, 'weather({"city":"Rome"}) = "21° in Rome"'],
        ...['—', 'says Done.'],
      ],
    },
    // From some release on the SDK does not let a model use an id twice.
    'same-call-id-twice': isNew
      ? {
          parts: [
            ...[...begin, 'weather({"city":"Paris"}) = "21° in Paris"', '—'],
            'weather({"city":"Rome"}) ! The tool gave no result.',
          ],
          end: 'run-failed',
        }
      : {
          parts: [
            ...[...begin, 'weather({"city":"Paris"}) = "21° in Paris"'],
            ...['—', 'weather({"city":"Rome"}) = "21° in Rome"', '—', 'says Done.'],
          ],
        },
    reasoning: {
      parts: [
        ...[...begin, 'thinks First I look.', 'thinks Then I think.', 'find({}) = {"hits":[1,2]}'],
        ...['—', 'thinks Two hits.', 'says There are two.'],
      ],
    },
    handoff: {
      parts: [
        ...['—', 'is Triage', 'says Somebody else knows. '],
        'transfer_to_Math({}) = "{\\"assistant\\":\\"Math\\"}"',
        ...['—', 'is Math after Triage', 'says It is 4.'],
      ],
    },
    'web-search': {
      parts: [
        ...begin,
        'web_search({"type":"search","query":"sabir"}) = {"status":"completed","sources":[{"type":"url","url":"https://a.example/"}]}',
        ...['says A common tongue.', 'cites https://a.example/', 'cites https://b.example/'],
      ],
    },
    'image-generation': {
      parts: [
        ...[...begin, 'image_generation({}) = {"status":"completed"}', 'file image/webp'],
        'says Here it is.',
      ],
    },
    'code-interpreter': {
      parts: [
        ...begin,
        'code_interpreter({"code":"print(\\"hi\\")\\n"}) = {"outputs":[{"type":"logs","logs":"hi"}]}',
        'says It says hi.',
      ],
    },
    'file-search': {
      parts: [
        ...begin,
        'file_search({"queries":["terms"]}) = {"results":[{"file_id":"file_1","filename":"terms.pdf","score":0.9,"text":"Thirty days."}]}',
        ...['says Thirty days.', 'cites terms.pdf'],
      ],
    },
    'mcp-call': {
      parts: [
        ...[...begin, 'lookup({"q":"a"}) = "found"', 'lookup({}) ! The server is away.'],
        'says Found one.',
      ],
    },
    'mcp-approval': {
      parts: [
        ...[...begin, 'publish({"page":1}) = "live"', 'asks Allow publish? answered'],
        ...['—', 'says It is live.'],
      ],
    },
    'mcp-denial': {
      parts: [
        ...[...begin, 'publish({"page":1}) output-denied', 'asks Allow publish? answered'],
        ...['—', 'says Then not.'],
      ],
    },
    approval: {
      parts: [
        ...[...begin, 'says I remove them. ', 'remove({"path":"/a"}) = "removed /a"'],
        'weather({"city":"Paris"}) = "21° in Paris"',
        ...['remove({"path":"/b"}) output-denied', 'remove({"path":"/c"}) output-denied'],
        ...['asks Allow remove? answered', 'asks Allow remove? answered'],
        ...['asks Allow remove? answered', '—', 'says One is gone.'],
      ],
    },
    'approval-as-question': {
      parts: [
        ...[...begin, `remove({"path":"/a"}) ${WAITS}`, 'asks Allow remove? answered'],
        ...['—', 'remove({"path":"/a"}) = "removed /a"'],
        ...['—', `remove({"path":"/b"}) ${WAITS}`, 'asks Allow remove? answered'],
        ...['—', 'remove({"path":"/b"}) ! The call was not approved.', '—', 'says One is gone.'],
      ],
    },
    'nested-approval': {
      parts: [
        ...[...begin, `ask_expert({"input":"Remove it."}) ${WAITS}`],
        ...['remove({"path":"/a"}) = null', 'asks Allow remove? answered'],
        ...['—', 'ask_expert({"input":"Remove it."}) = "Removed."'],
        ...['—', 'says The expert removed it.'],
      ],
    },
    'nested-denial': {
      parts: [
        ...[...begin, `ask_expert({"input":"Remove it."}) ${WAITS}`],
        ...['remove({"path":"/a"}) output-denied', 'asks Allow remove? answered'],
        ...['—', 'ask_expert({"input":"Remove it."}) = "I may not."'],
        ...['—', 'says The expert may not.'],
      ],
    },
    refusal: { parts: [...begin, 'says I cannot help with that.'], end: 'content-filter' },
    length: { parts: [...begin, 'says Half a'], end: 'length' },
    'content-filter': { parts: [...begin, 'says Half a'], end: 'content-filter' },
    'max-turns': {
      parts: [...begin, 'find({}) = {"hits":[1,2]}', '—', 'find({}) = {"hits":[1,2]}'],
      end: 'max-turns',
    },
    'input-guardrail': { parts: [], end: 'input-blocked' },
    'output-guardrail': { parts: [...begin, 'says Hello.'], end: 'output-blocked' },
    'tool-guardrail': {
      parts: [...begin, 'guarded({}) ! The tool gave no result.'],
      end: 'tool-blocked',
    },
    'model-error': { parts: [], end: 'run-failed' },
    'model-error-after-a-tool': {
      parts: [...begin, 'says I look. ', 'find({}) = {"hits":[1,2]}'],
      end: 'run-failed',
    },
    shell: {
      parts: [
        ...begin,
        'shell({"commands":["ls"],"timeout_ms":1000,"max_output_length":100}) = [{"stdout":"a.txt\\n","stderr":"","outcome":{"type":"exit","exitCode":0}}]',
        ...['—', 'says One file.'],
      ],
    },
    'apply-patch': {
      parts: [
        ...begin,
        'apply_patch({"type":"create_file","path":"a.txt","diff":"+a"}) = "Created."',
        'apply_patch({"type":"delete_file","path":"b.txt"}) ! It is not there.',
        ...['—', 'says One of two.'],
      ],
    },
    computer: {
      parts: [
        ...begin,
        'computer({"type":"click","x":1,"y":2,"button":"left"}) = "See the file."',
        ...['file image/png', '—', 'says Clicked.'],
      ],
    },
  };
}
