/**
 * Valid chunk sequences for properties: what a client of the given AI SDK major accepts, as it
 * comes out of JSON. A sequence may be cut off anywhere, its parts still open.
 */
import fc from 'fast-check';
import type { AiSdkMajor, Chunk, JsonValue, ProviderMetadata } from '../src/core/chunks.ts';

type Call = {
  toolCallId: string;
  toolName: string;
  flags: { providerExecuted?: boolean; dynamic?: boolean };
  /** Input text that has not been sent; undefined when the input does not stream. */
  rest: string | undefined;
  input: JsonValue;
  approvalId?: string;
};

/** Picks are taken modulo what there is to pick from, so that every draw means something. */
type Draw = { action: string; pick: number; text: string; value: JsonValue; isOn: boolean };

// Clients refuse a frame that names these keys, and lose half an input over a quote and a colon
// in a key. Both have tests of their own.
const isHarmless = (value: unknown) =>
  !/__proto__|constructor|prototype|\\"[^"]*:|e\+/.test(JSON.stringify(value));
const value = fc.jsonValue({ maxDepth: 2 }).filter(isHarmless) as fc.Arbitrary<JsonValue>;
const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constant('é\\n"😀'));

const PORTABLE = [
  'text-start',
  'text-delta',
  'text-delta',
  'text-end',
  'reasoning-start',
  'reasoning-delta',
  'reasoning-end',
  'tool-input-start',
  'tool-input-delta',
  'tool-input-delta',
  'tool-input-available',
  'tool-input-error',
  'tool-output-available',
  'tool-output-error',
  'step',
  'data',
  'source-url',
  'source-document',
  'file',
  'message-metadata',
  'abort',
];
const ACTIONS: Record<AiSdkMajor, string[]> = {
  5: PORTABLE,
  6: [...PORTABLE, 'approval', 'denied'],
  7: [
    ...PORTABLE,
    'approval',
    'denied',
    'approval-response',
    'custom',
    'reasoning-file',
    'reset-step',
    'steering',
  ],
};

class Writer {
  readonly chunks: Chunk[] = [{ type: 'start', messageId: 'm' }, { type: 'start-step' }];
  #count = 0;
  #texts: string[] = [];
  #reasonings: string[] = [];
  #streaming: Call[] = [];
  #waiting: Call[] = [];

  #id = () => `id-${++this.#count}`;

  #metadata({ value: said, isOn }: Draw): { providerMetadata?: ProviderMetadata } {
    return isOn ? { providerMetadata: { test: { said } } } : {};
  }

  #text(kind: 'text' | 'reasoning', action: string, draw: Draw): void {
    const open = kind === 'text' ? this.#texts : this.#reasonings;
    const more = this.#metadata(draw);
    if (action === 'start') {
      const id = this.#id();
      open.push(id);
      this.chunks.push({ type: `${kind}-start`, id, ...more });
      return;
    }
    const at = draw.pick % open.length;
    const id = open[at];
    if (id === undefined) return;
    if (action === 'delta') {
      this.chunks.push({ type: `${kind}-delta`, id, delta: draw.text, ...more });
    } else {
      open.splice(at, 1);
      this.chunks.push({ type: `${kind}-end`, id, ...more });
    }
  }

  #newCall({ pick, value: input, text: spaces, isOn }: Draw): Call {
    const rest = JSON.stringify(input, null, spaces.length % 3);
    const flags: Call['flags'] = {};
    if (isOn) flags.providerExecuted = pick % 3 === 0;
    if (pick % 2 === 0) flags.dynamic = true;
    return { toolCallId: this.#id(), toolName: `tool${pick % 2}`, flags, input, rest };
  }

  #available({ toolCallId, toolName, flags, input }: Call, more: object): void {
    const chunk = { toolCallId, toolName, input, ...flags, ...more };
    this.chunks.push({ type: 'tool-input-available', ...chunk });
  }

  #tool(action: string, draw: Draw): void {
    const take = (calls: Call[]) => calls.splice(draw.pick % calls.length, 1)[0];
    if (action === 'tool-input-start') {
      const call = this.#newCall(draw);
      const { toolCallId, toolName, flags } = call;
      this.chunks.push({ type: action, toolCallId, toolName, ...flags });
      this.#streaming.push(call);
    } else if (action === 'tool-input-delta') {
      const call = this.#streaming[draw.pick % this.#streaming.length];
      if (!call?.rest) return;
      const inputTextDelta = call.rest.slice(0, 1 + (draw.pick % 9));
      call.rest = call.rest.slice(inputTextDelta.length);
      this.chunks.push({ type: action, toolCallId: call.toolCallId, inputTextDelta });
    } else if (action === 'tool-input-available') {
      const call = take(this.#streaming) ?? this.#newCall(draw);
      this.#available(call, this.#metadata(draw));
      this.#waiting.push(call);
    } else if (action === 'tool-input-error') {
      const { toolCallId, toolName, flags, input } = take(this.#streaming) ?? this.#newCall(draw);
      const chunk = { toolCallId, toolName, input, errorText: draw.text, ...flags };
      this.chunks.push({ type: action, ...chunk });
    } else {
      const call = take(this.#waiting);
      if (call) this.#answer(action, call, draw);
    }
  }

  #answer(action: string, call: Call, draw: Draw): void {
    const { toolCallId, flags } = call;
    const { value: output, text: errorText, pick } = draw;
    const more = { toolCallId, ...flags };
    if (action === 'tool-output-error') this.chunks.push({ type: action, errorText, ...more });
    else if (action === 'denied') this.chunks.push({ type: 'tool-output-denied', toolCallId });
    else if (action === 'approval') {
      call.approvalId = this.#id();
      const { approvalId } = call;
      this.chunks.push({ type: 'tool-approval-request', approvalId, toolCallId });
      this.#waiting.push(call);
    } else if (action === 'approval-response') {
      this.#waiting.push(call);
      const { approvalId } = call;
      if (approvalId === undefined) return;
      const approved = draw.isOn;
      this.chunks.push({ type: 'tool-approval-response', approvalId, approved, reason: draw.text });
    } else {
      const preliminary = pick % 3 === 0;
      if (preliminary) this.#waiting.push(call);
      const chunk = { output, ...more, ...(preliminary && { preliminary }) };
      this.chunks.push({ type: 'tool-output-available', ...chunk });
    }
  }

  #closeTexts(): void {
    for (const id of this.#texts) this.chunks.push({ type: 'text-end', id });
    for (const id of this.#reasonings) this.chunks.push({ type: 'reasoning-end', id });
    this.#texts = [];
    this.#reasonings = [];
  }

  #closeStep(): void {
    this.#closeTexts();
    // A call whose input streams must not leave its step; one that waits for its answer may.
    for (const call of this.#streaming.splice(0)) {
      this.#available(call, {});
      this.#waiting.push(call);
    }
    this.chunks.push({ type: 'finish-step' });
  }

  #resetStep(): void {
    this.#closeStep();
    // Answered first, because a call of this step would be gone afterwards.
    for (const { toolCallId, flags } of this.#waiting.splice(0)) {
      this.chunks.push({ type: 'tool-output-error', toolCallId, errorText: 'gone', ...flags });
    }
    const id = this.#id();
    this.chunks.push(
      { type: 'start-step' },
      { type: 'text-start', id },
      { type: 'text-delta', id, delta: 'lost' },
      { type: 'tool-input-start', toolCallId: id, toolName: 'lost' },
      { type: 'data-lost', id: 'lost', data: 'lost' },
      { type: 'reset-step' },
    );
  }

  write(draw: Draw): void {
    const { action, pick, text: said, value: data, isOn } = draw;
    const { chunks } = this;
    const more = this.#metadata(draw);
    const [kind, verb = ''] = action.split('-');
    if (kind === 'text' || (kind === 'reasoning' && verb !== 'file')) this.#text(kind, verb, draw);
    else if (kind === 'tool' || kind === 'approval' || kind === 'denied') this.#tool(action, draw);
    else if (action === 'step') {
      this.#closeStep();
      chunks.push({ type: 'start-step' });
    } else if (action === 'data') {
      const id = pick % 4 === 0 ? {} : { id: `data-${pick % 3}` };
      const transient = pick % 5 === 0 ? { transient: true } : {};
      chunks.push({ type: `data-${isOn ? 'a' : 'b'}`, data, ...id, ...transient });
    } else if (action === 'source-url') {
      chunks.push({ type: action, sourceId: this.#id(), url: said, title: said, ...more });
    } else if (action === 'source-document') {
      const document = { sourceId: this.#id(), mediaType: 'text/plain', title: said };
      chunks.push({ type: action, ...document, ...more });
    } else if (action === 'file' || action === 'reasoning-file') {
      chunks.push({ type: action, url: said, mediaType: 'image/png', ...more });
    } else if (action === 'message-metadata') {
      chunks.push({
        type: action,
        messageMetadata: { [`k${pick % 3}`]: { [`k${pick % 2}`]: data } },
      });
    } else if (action === 'custom') chunks.push({ type: action, kind: 'test.kind', ...more });
    else if (action === 'steering') {
      chunks.push({
        type: 'steering-message',
        id: this.#id(),
        parts: [{ type: 'text', text: said }],
      });
    } else if (action === 'reset-step') this.#resetStep();
    else chunks.push({ type: 'abort' });
  }

  end(isFailed: boolean): void {
    this.#closeStep();
    for (const { toolCallId, flags } of this.#waiting.splice(0)) {
      this.chunks.push({ type: 'tool-output-error', toolCallId, errorText: 'gone', ...flags });
    }
    if (isFailed) this.chunks.push({ type: 'error', errorText: 'failed' });
    this.chunks.push({ type: 'finish', finishReason: 'other', messageMetadata: { done: true } });
  }
}

/** Sequences with chunks up to those of one major; 5 is what every client accepts. */
export function chunkSequences(
  major: AiSdkMajor,
  ends: 'whole' | 'cut' = 'cut',
): fc.Arbitrary<Chunk[]> {
  const draw = fc.record({
    action: fc.constantFrom(...ACTIONS[major]),
    pick: fc.nat({ max: 1000 }),
    text,
    value,
    isOn: fc.boolean(),
  });
  return fc
    .tuple(fc.array(draw, { maxLength: 30 }), fc.boolean(), fc.boolean())
    .map(([draws, isFailed, isCut]) => {
      const writer = new Writer();
      for (const one of draws) writer.write(one);
      if (ends === 'whole' || !isCut) writer.end(isFailed);
      return JSON.parse(JSON.stringify(writer.chunks)) as Chunk[];
    });
}
