/** What can be asked of the chunks that a helper streamed, and of what the client made of them. */
import type { UIMessage } from '../../packages/sabir/src/core/message.ts';
import type { Exchange, Loose, SaidChunk } from './play.ts';

/** Whether something was kept, and in few words what really happened. */
export type Finding = { keeps: boolean; says: string };

export function chunksOf({ chunks }: Exchange, type: string): SaidChunk[] {
  return chunks.filter((chunk) => chunk.type === type);
}

export function textOfDeltas(deltas: readonly SaidChunk[]): string {
  return deltas.map(({ delta, inputTextDelta }) => delta ?? inputTextDelta ?? '').join('');
}

export function partsOf(message: UIMessage | undefined): readonly Loose[] {
  return (message?.parts ?? []) as readonly Loose[];
}

export function partsOfType({ client }: Exchange, type: string): readonly Loose[] {
  return partsOf(client.message).filter((part) => part.type === type);
}

/** A tool call as the client shows it, whether it knows the tool or not. */
export function callsOf(message: UIMessage | undefined): readonly Loose[] {
  return partsOf(message).filter(({ toolCallId }) => toolCallId !== undefined);
}

export function answersOf({ client }: Exchange): UIMessage[] {
  return client.messages.filter(({ role }) => role === 'assistant');
}

/** How many chunks of a kind come before the first word of the text. */
export function countBeforeText(exchange: Exchange, isCounted: (chunk: SaidChunk) => boolean) {
  const { chunks } = exchange;
  const textAt = chunks.findIndex(({ type }) => type === 'text-delta');
  return chunks.slice(0, textAt < 0 ? undefined : textAt).filter(isCounted).length;
}

export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}

/** The one call of the message is in this state. */
export function callEndsAs(state: string): (exchange: Exchange) => Finding {
  return ({ client }) => {
    const [call] = callsOf(client.message);
    return { keeps: call?.state === state, says: code(call?.state ?? 'no call') };
  };
}

/** The stream ends of itself, and says why. */
export function finishesAs(reason: string): (exchange: Exchange) => Finding {
  return (exchange) => {
    const said = chunksOf(exchange, 'finish').at(-1)?.finishReason;
    return {
      keeps: exchange.thrown === undefined && said === reason,
      says: howItThrew(exchange) ?? code(said ?? 'no reason'),
    };
  };
}

/** The person is told that it failed, in a stream that comes to its end. */
export function endsWithError(exchange: Exchange): Finding {
  const [error] = chunksOf(exchange, 'error');
  const isWhole = exchange.thrown === undefined && exchange.chunks.at(-1)?.type === 'finish';
  return {
    keeps: error !== undefined && isWhole,
    says: howItThrew(exchange) ?? (error ? `“${error.errorText}”` : 'no error'),
  };
}

export function howItThrew({ thrown }: Exchange): string | undefined {
  return thrown && `throws ${code(thrown.name)}`;
}

export function code(value: unknown): string {
  return `\`${value}\``;
}
