/**
 * What a model says, written down: outputs → the events that OpenAI's Responses API streams for
 * them. The SDK's own model class reads them, so that everything behind the network is real.
 */
export type ModelEvent = { type: string } & Record<string, unknown>;

export type Output =
  | { text: string; citations?: Record<string, unknown>[] }
  | { refusal: string }
  | { reasoning: string | string[] }
  | { call: string; input?: unknown; callId?: string }
  /** One of OpenAI's own tools: its finished item, and what is streamed before. */
  | { item: { type: string } & Record<string, unknown>; events?: ModelEvent[] };

export type ScriptedResponse = {
  outputs: Output[];
  /** Why the response ends before its end. */
  incomplete?: 'max_output_tokens' | 'content_filter';
  /** How long the pieces are that texts come in. */
  pieces?: number;
};

/** Ids that are the same in every run of the same script. */
export type Ids = (kind: string) => string;

export function countingIds(): Ids {
  let count = 0;
  return (kind) => `${kind}_${++count}`;
}

export function responseEvents(
  { outputs, incomplete, pieces = 6 }: ScriptedResponse,
  nextId: Ids,
): ModelEvent[] {
  const events: ModelEvent[] = [];
  const done: unknown[] = [];
  const id = nextId('resp');
  const push = (type: string, fields: Record<string, unknown>) =>
    events.push({ type, sequence_number: events.length, ...fields });
  const split = (text: string) => text.match(new RegExp(`.{1,${pieces}}`, 'gsu')) ?? [];

  push('response.created', { response: { id, object: 'response', status: 'in_progress' } });
  for (const [output_index, output] of outputs.entries()) {
    const at = { output_index };
    const finish = (item: unknown) => {
      push('response.output_item.done', { ...at, item });
      done.push(item);
    };
    if ('text' in output || 'refusal' in output) {
      const isRefusal = 'refusal' in output;
      const whole = isRefusal ? output.refusal : output.text;
      const annotations = isRefusal ? [] : (output.citations ?? []);
      const item_id = nextId('msg');
      const item = { id: item_id, type: 'message', role: 'assistant' };
      const in_part = { ...at, item_id, content_index: 0 };
      push('response.output_item.added', {
        ...at,
        item: { ...item, status: 'in_progress', content: [] },
      });
      const field = isRefusal ? 'refusal' : 'text';
      const type = isRefusal ? 'refusal' : 'output_text';
      push('response.content_part.added', { ...in_part, part: { type, [field]: '' } });
      for (const delta of split(whole)) push(`response.${type}.delta`, { ...in_part, delta });
      for (const [annotation_index, annotation] of annotations.entries()) {
        const note = { annotation_index, annotation };
        push('response.output_text.annotation.added', { ...in_part, ...note });
      }
      push(`response.${type}.done`, { ...in_part, [field]: whole });
      const part = { type, [field]: whole, ...(!isRefusal && { annotations }) };
      push('response.content_part.done', { ...in_part, part });
      finish({ ...item, status: incomplete ? 'incomplete' : 'completed', content: [part] });
    } else if ('reasoning' in output) {
      const item_id = nextId('rs');
      const texts = [output.reasoning].flat();
      push('response.output_item.added', { ...at, item: { id: item_id, type: 'reasoning' } });
      for (const [summary_index, text] of texts.entries()) {
        const in_part = { ...at, item_id, summary_index };
        push('response.reasoning_summary_part.added', in_part);
        for (const delta of split(text)) {
          push('response.reasoning_summary_text.delta', { ...in_part, delta });
        }
        push('response.reasoning_summary_text.done', { ...in_part, text });
      }
      const summary = texts.map((text) => ({ type: 'summary_text', text }));
      finish({ id: item_id, type: 'reasoning', summary });
    } else if ('call' in output) {
      const { call: name, input = {}, callId: call_id = nextId('call') } = output;
      const item_id = nextId('fc');
      const whole = typeof input === 'string' ? input : JSON.stringify(input);
      const item = { id: item_id, type: 'function_call', call_id, name };
      const begun = { ...item, arguments: '', status: 'in_progress' };
      push('response.output_item.added', { ...at, item: begun });
      for (const delta of split(whole)) {
        push('response.function_call_arguments.delta', { ...at, item_id, delta });
      }
      push('response.function_call_arguments.done', { ...at, item_id, arguments: whole });
      finish({ ...item, arguments: whole, status: 'completed' });
    } else {
      const item: Record<string, unknown> = { id: nextId('item'), ...output.item };
      const { id, type, name, call_id, approval_request_id } = item;
      const begun = { id, type, status: 'in_progress', name, call_id, approval_request_id };
      push('response.output_item.added', { ...at, item: begun });
      for (const { type: event, ...fields } of output.events ?? []) {
        push(event, { ...at, item_id: id, ...fields });
      }
      finish(item);
    }
  }
  const status = incomplete ? 'incomplete' : 'completed';
  const response = {
    id,
    object: 'response',
    status,
    output: done,
    ...(incomplete && { incomplete_details: { reason: incomplete } }),
    usage: {
      input_tokens: 10,
      output_tokens: 5,
      total_tokens: 15,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens_details: { reasoning_tokens: 2 },
    },
  };
  push(`response.${status}`, { response });
  return events;
}
