/** Messages that a client has sent back: whatever is made of them must not throw over a part. */

import { lastUserText } from '../../src/core/chat-request.ts';
import type { Chunk } from '../../src/core/chunks.ts';
import { toDecision } from '../../src/core/decision.ts';
import { foldChunks } from '../../src/core/fold.ts';
import type { UIMessage } from '../../src/core/message.ts';
import { createSseDecoder } from '../../src/core/sse.ts';
import { toConversation } from '../../src/sources/ai-sdk/history.ts';
import type { AgentEvent } from '../../src/sources/open-harness/events.ts';
import { createFlowRuntime, type FlowNode } from '../../src/sources/open-harness/flow-runtime.ts';
import { createOpenHarnessHandler } from '../../src/sources/open-harness/index.ts';
import { applyDecisions } from '../../src/sources/openai-agents/interrupted-state.ts';
import { toAgentInput } from '../../src/sources/openai-agents/to-agent-input.ts';
import { createOpenAIAgentsTranslator } from '../../src/sources/openai-agents/translate.ts';
import { chunkTurns, harnessEvents, openAIEvents } from './corpus.ts';
import { mutateSequence, mutateValue } from './mutate-json.ts';
import { bodyFor, CHAT_BODY } from './requests.ts';
import { checkTurn, InvalidOutput, type Target, withinTime } from './target.ts';

/** As `parseChatRequest` lets it through: an id, a role, and parts that are objects. */
function toMessages(value: unknown): UIMessage[] {
  return (Array.isArray(value) ? value : [value]).map((given) => {
    const { id, role, parts } = Object(given) as Partial<UIMessage>;
    const isRole = role === 'user' || role === 'assistant' || role === 'system';
    const list: unknown[] = Array.isArray(parts) ? parts : [];
    return {
      ...(given as object),
      id: typeof id === 'string' ? id : '',
      role: isRole ? role : 'user',
      parts: list.filter((part) => Object(part) === part && !Array.isArray(part)),
    } as UIMessage;
  });
}

const histories: Target = {
  name: 'messages of clients',
  play(random) {
    const { sequences, words } = chunkTurns();
    const asked: UIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
    const given = [asked, foldChunks(random.pick(sequences)), foldChunks(random.pick(sequences))];
    let value: unknown = given;
    const malformed = 1 + random.below(4);
    for (let edit = 0; edit < malformed; edit++) value = mutateValue(value, { random, words });
    const messages = toMessages(value);
    lastUserText(messages);
    const items = toAgentInput(messages, { system: random.chance(0.5) });
    const last: UIMessage = { ...asked, id: 'p' };
    const said = toConversation({ messages: [...messages, last], attachments: [] });
    if (said.at(-1)?.id !== 'p') throw new InvalidOutput('the prompt is not the last');
    toDecision(mutateValue({ approved: true, reason: 'go' }, { random, words }));
    const [message = asked] = messages.slice(-1);
    const rawItem = { type: 'function_call', callId: random.pick(words), name: 'x' };
    const ignore = () => undefined;
    const run = { getInterruptions: () => [{ rawItem }], approve: ignore, reject: ignore };
    applyDecisions(run, message);
    const events = openAIEvents();
    const translator = createOpenAIAgentsTranslator({ message, approvals: true });
    const played = random.pick(events.sequences).steps.slice(0, 30);
    const { frames } = mutateSequence(played, [], { random, words: events.words });
    const chunks = [...frames.flatMap((frame) => translator.push(frame)), ...translator.end()];
    foldChunks(chunks, message);
    return { malformed, sound: 0, refused: 0, out: items.length + said.length };
  },
};

/** The one route that has no gateway around it: a flow whose agent says anything, to anybody. */
const handler: Target = {
  name: 'open-harness handler',
  async play(random) {
    const { sequences, words } = harnessEvents();
    const given = random.pick(sequences).steps;
    const { frames, malformed } = mutateSequence(given, [], { random, words, isLive: true });
    const emitAll: FlowNode = ({ emit }) => {
      for (const frame of frames) emit(frame as AgentEvent);
    };
    const answer = createOpenHarnessHandler(
      () => createFlowRuntime({ name: 'f', nodes: { n: emitAll }, logger: QUIET }),
      { logger: QUIET },
    );
    const body = Buffer.from(random.chance(0.3) ? JSON.stringify(CHAT_BODY) : bodyFor(random));
    const response = await answer(new Request('http://flow.test/', { method: 'POST', body }));
    const text = await withinTime(response.text(), 'the handler');
    if (response.status >= 500) throw new InvalidOutput(`it answered ${response.status}`);
    if (response.status >= 400) return { malformed: 1, sound: 0, refused: 1, out: 0 };
    const chunks: Chunk[] = [];
    const decoder = createSseDecoder({
      frame({ data }) {
        if (data !== '[DONE]') chunks.push(JSON.parse(data));
      },
    });
    decoder.push(text);
    checkTurn(chunks, random, { isSentAsItIs: true });
    return { malformed: malformed + 1, sound: 0, refused: 0, out: chunks.length };
  },
};

const QUIET = { warn: () => undefined, error: () => undefined };

export const HISTORIES: Target[] = [histories, handler];
