import {
  type Model,
  type ModelRequest,
  type ResponseStreamEvent,
  setTracingDisabled,
  Usage,
} from '@openai/agents';

type Done = Extract<ResponseStreamEvent, { type: 'response_done' }>['response'];

/** OpenAI's own where there is a key for it, else one that costs nothing and knows three answers. */
export function chooseModel(): { model?: Model } {
  if (process.env.OPENAI_API_KEY) return {};
  setTracingDisabled(true);
  return { model: new ScriptedModel() };
}

/** Deletes what it is told to delete, and says what came of it. */
class ScriptedModel implements Model {
  #count = 0;

  #answer({ input }: ModelRequest): Done['output'][number] {
    const id = `item_${++this.#count}`;
    const last = typeof input === 'string' ? { role: 'user', content: input } : input.at(-1);
    const said = JSON.stringify(last);
    const path = /\bdelete ([\w./-]*\w)/i.exec(said)?.[1];
    if (said.includes('function_call_result')) {
      return say(id, `I was told: ${/"text":"([^"]*)"/.exec(said)?.[1]}`);
    }
    if (!path) return say(id, 'Say “delete notes.txt”, and I will ask before I do it.');
    const call = { name: 'delete_file', arguments: JSON.stringify({ path }) };
    return { type: 'function_call', id, callId: `call_${id}`, ...call };
  }

  async getResponse(request: ModelRequest) {
    return { usage: new Usage(), output: [this.#answer(request)] };
  }

  async *getStreamedResponse(request: ModelRequest): AsyncIterable<ResponseStreamEvent> {
    const item = this.#answer(request);
    yield { type: 'response_started' };
    const text = 'content' in item ? JSON.stringify(item.content) : '';
    for (const delta of /"text":"([^"]*)"/.exec(text)?.[1]?.split(/(?<= )/) ?? []) {
      yield { type: 'output_text_delta', delta };
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };
    yield { type: 'response_done', response: { id: `response_${item.id}`, usage, output: [item] } };
  }
}

function say(id: string, text: string): Done['output'][number] {
  const content = [{ type: 'output_text' as const, text }];
  return { type: 'message', id, role: 'assistant', status: 'completed', content };
}
