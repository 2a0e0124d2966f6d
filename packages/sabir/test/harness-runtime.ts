/** Runtimes whose every word a test decides, and what tests ask of the streams they make. */
import { expect, vi } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import { verifyChunks } from '../src/core/verify.ts';
import type {
  Command,
  OpenHarnessUIMessage,
  Runtime,
  RuntimeEvent,
  RuntimeStatus,
} from '../src/sources/open-harness/events.ts';
import {
  createFlowRuntime,
  type FlowNodeContext,
} from '../src/sources/open-harness/flow-runtime.ts';

export const user = (text: string): OpenHarnessUIMessage => ({
  id: `user-${text}`,
  role: 'user',
  parts: [{ type: 'text', text }],
});

export const send = (text: string, more: Record<string, unknown> = {}) => ({
  trigger: 'submit-message' as const,
  chatId: 'chat',
  messageId: undefined,
  messages: [user(text)],
  abortSignal: undefined,
  ...more,
});

export async function readAll(stream: ReadableStream<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  expect(verifyChunks(chunks)).toEqual([]);
  return chunks;
}
export const textOf = (chunks: Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');
export const outcomeOf = (chunks: Chunk[]) => foldChunks(chunks).metadata;
export const errorOf = (chunks: Chunk[]) =>
  chunks.find((chunk) => chunk.type === 'error')?.errorText;

/** A runtime whose events the test emits, in whichever status it says. */
export function manualRuntime(initial: RuntimeStatus = 'idle') {
  const listeners = new Set<(event: RuntimeEvent) => void>();
  const commands: Command[] = [];
  const settle: { resolve(status: RuntimeStatus): void; reject(error: unknown): void }[] = [];
  const run = vi.fn(
    (_input?: unknown) =>
      new Promise<{ status: RuntimeStatus }>((resolve, reject) => {
        settle.push({ resolve: (end) => resolve({ status: end }), reject });
      }),
  );
  const runtime = {
    status: initial as RuntimeStatus | undefined,
    run,
    dispatch: (command: Command) => void commands.push(command),
    onEvent(listener: (event: RuntimeEvent) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    getSnapshot: () => ({ status: runtime.status as RuntimeStatus }),
    listeners,
    commands,
    settle,
    emit(event: object) {
      for (const listener of listeners) listener(event as RuntimeEvent);
    },
    say: (content: string) =>
      runtime.emit({ type: 'agent:text:delta', nodeId: 'n', runId: 'r', content }),
  };
  return runtime;
}

/** A flow that speaks at once and then waits until it is told to go on or stopped. */
export function waitingFlow(onSignal?: (signal: AbortSignal) => void) {
  const gate = Promise.withResolvers<void>();
  const create = () =>
    createFlowRuntime({
      name: 'waiting',
      nodes: {
        a: async ({ emit, signal }: FlowNodeContext) => {
          onSignal?.(signal);
          emit({ type: 'agent:start', sessionId: 's' });
          emit({ type: 'agent:text:delta', content: 'Half ' });
          await Promise.race([
            gate.promise,
            new Promise((resolve) => signal.addEventListener('abort', resolve)),
          ]);
          emit({ type: 'agent:text:delta', content: 'and whole.' });
          emit({ type: 'agent:complete' });
        },
      },
    });
  return { create, go: () => gate.resolve() };
}

export const echo = (): Runtime =>
  createFlowRuntime({
    name: 'echo',
    nodes: {
      a: ({ input, emit }) => {
        const { message } = input as { message: string };
        emit({ type: 'agent:text', content: `You said ${message}` });
      },
    },
  });
