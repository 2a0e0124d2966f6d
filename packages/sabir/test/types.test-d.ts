/** What only a compiler can prove. Checked by `vitest --typecheck`; nothing here runs. */
import type * as v5 from 'ai-v5';
import type * as v6 from 'ai-v6';
import type * as v609 from 'ai-v6-0-9';
import type * as v7 from 'ai-v7';
import { describe, expectTypeOf, it } from 'vitest';
import { SabirChatTransport } from '../src/clients/index.ts';
import type { Chunk, ChunkOf, PortableChunk } from '../src/core/chunks.ts';
import type { UIMessage } from '../src/core/message.ts';
import type { MessageMetadata } from '../src/core/outcome.ts';
import {
  OpenHarnessChatTransport,
  type OpenHarnessUIMessage,
  type Runtime,
} from '../src/sources/open-harness/index.ts';

declare const runtime: Runtime;

describe('our chunks are the AI SDK chunks', () => {
  it('fits what each major accepts', () => {
    expectTypeOf<ChunkOf<5>>().toExtend<v5.UIMessageChunk>();
    expectTypeOf<ChunkOf<6>>().toExtend<v6.UIMessageChunk>();
    expectTypeOf<ChunkOf<6>>().toExtend<v609.UIMessageChunk>();
    expectTypeOf<ChunkOf<7>>().toExtend<v7.UIMessageChunk>();
  });

  it('is portable where it says so', () => {
    expectTypeOf<PortableChunk>().toExtend<v5.UIMessageChunk>();
    expectTypeOf<PortableChunk>().toExtend<v609.UIMessageChunk>();
    expectTypeOf<PortableChunk>().toExtend<v6.UIMessageChunk>();
    expectTypeOf<PortableChunk>().toExtend<v7.UIMessageChunk>();
  });

  it('knows every type a major has', () => {
    type Known = Chunk['type'];
    expectTypeOf<v5.UIMessageChunk['type']>().toExtend<Known>();
    expectTypeOf<v609.UIMessageChunk['type']>().toExtend<Known>();
    expectTypeOf<v6.UIMessageChunk['type']>().toExtend<Known>();
    expectTypeOf<v7.UIMessageChunk['type']>().toExtend<Known>();
  });

  it('keeps newer chunks away from older majors', () => {
    expectTypeOf<Chunk>().not.toExtend<v5.UIMessageChunk>();
    expectTypeOf<ChunkOf<7>>().not.toExtend<v6.UIMessageChunk>();
  });
});

describe('one transport for all of them [FR-001]', () => {
  it('is a ChatTransport of 6 and of 7, and of the others, without a cast', () => {
    const asV7: v7.ChatTransport<v7.UIMessage> = new OpenHarnessChatTransport(runtime);
    const asV6: v6.ChatTransport<v6.UIMessage> = new OpenHarnessChatTransport(runtime);
    const asV609: v609.ChatTransport<v609.UIMessage> = new OpenHarnessChatTransport(runtime);
    const asV5: v5.ChatTransport<v5.UIMessage> = new OpenHarnessChatTransport(runtime);
    expectTypeOf([asV5, asV609, asV6, asV7]).not.toBeAny();
    expectTypeOf<OpenHarnessChatTransport<v7.UIMessage>>().toExtend<
      v7.ChatTransport<v7.UIMessage>
    >();
    expectTypeOf<OpenHarnessChatTransport<v6.UIMessage>>().toExtend<
      v6.ChatTransport<v6.UIMessage>
    >();
  });

  it('carries its own message type by default', () => {
    const transport = new OpenHarnessChatTransport(() => runtime);
    expectTypeOf(transport).toExtend<v7.ChatTransport<OpenHarnessUIMessage>>();
    expectTypeOf(transport).toExtend<v6.ChatTransport<OpenHarnessUIMessage>>();
    expectTypeOf<OpenHarnessUIMessage>().toExtend<v7.UIMessage>();
    expectTypeOf<OpenHarnessUIMessage>().toExtend<v5.UIMessage>();
  });

  it('takes the runtimes of both releases as they type themselves', () => {
    type Old = {
      run(input?: Record<string, unknown>): Promise<{ status: 'complete'; runId: string }>;
      dispatch(command: { type: 'send'; message: string; runId: string } | { type: 'abort' }): void;
      onEvent(listener: (event: { type: 'flow:start'; flowName: string }) => void): () => void;
      getSnapshot(): { status: 'idle' | 'running'; runId: string };
    };
    type New = {
      run(input?: Record<string, unknown>): Promise<{ status: 'complete' }>;
      pause(): Promise<{ status: 'paused' }>;
      resume(message?: string): Promise<{ status: 'complete' }>;
      stop(): void;
      dispatch(command: { type: 'pause' | 'stop' } | { type: 'resume'; message?: string }): void;
      onEvent(
        listener: (event: { type: 'command:received'; command: { type: 'pause' } }) => void,
      ): () => void;
      getSnapshot(): { status: 'idle' | 'paused' };
    };
    expectTypeOf<Old>().toExtend<Runtime>();
    expectTypeOf<New>().toExtend<Runtime>();
  });

  it('refuses what is not a runtime', () => {
    // @ts-expect-error a runtime has run, onEvent and getSnapshot
    new OpenHarnessChatTransport({ run: () => undefined });
  });
});

describe('OpenHarnessUIMessage', () => {
  type Tools = { search: { input: { q: string }; output: { hits: number } } };
  type Message = OpenHarnessUIMessage<Tools>;
  type Part = Message['parts'][number];

  it('types metadata', () => {
    expectTypeOf<Message['metadata']>().toEqualTypeOf<MessageMetadata | undefined>();
    expectTypeOf<NonNullable<Message['metadata']>['totalCostUsd']>().toEqualTypeOf<
      number | undefined
    >();
  });

  it('narrows data-node', () => {
    const show = (part: Part) => {
      if (part.type !== 'data-node') return;
      expectTypeOf(part.data.nodeId).toBeString();
      expectTypeOf(part.data.status).toEqualTypeOf<'running' | 'complete' | 'skipped' | 'error'>();
      expectTypeOf(part.data.error).toEqualTypeOf<string | undefined>();
    };
    expectTypeOf(show).toBeFunction();
  });

  it('narrows a typed tool by its name and its state', () => {
    const show = (part: Part) => {
      if (part.type !== 'tool-search') return;
      if (part.state === 'output-available') {
        expectTypeOf(part.input).toEqualTypeOf<{ q: string }>();
        expectTypeOf(part.output).toEqualTypeOf<{ hits: number }>();
      }
      if (part.state === 'output-error') expectTypeOf(part.errorText).toBeString();
      if (part.state === 'input-streaming') {
        expectTypeOf(part.input).toEqualTypeOf<{ q?: string } | undefined>();
      }
    };
    expectTypeOf(show).toBeFunction();
  });
});

describe('SabirChatTransport', () => {
  const api = '/api/sessions/s1/chat';

  it('is a ChatTransport of every major, without a cast', () => {
    const asV7: v7.ChatTransport<v7.UIMessage> = new SabirChatTransport({ api, aiSdk: 7 });
    const asV6: v6.ChatTransport<v6.UIMessage> = new SabirChatTransport({ api, aiSdk: 6 });
    const asV609: v609.ChatTransport<v609.UIMessage> = new SabirChatTransport({ api });
    const asV5: v5.ChatTransport<v5.UIMessage> = new SabirChatTransport({ api, aiSdk: 5 });
    expectTypeOf([asV5, asV609, asV6, asV7]).not.toBeAny();
    expectTypeOf<SabirChatTransport<v7.UIMessage>>().toExtend<v7.ChatTransport<v7.UIMessage>>();
    expectTypeOf<SabirChatTransport<v6.UIMessage>>().toExtend<v6.ChatTransport<v6.UIMessage>>();
    expectTypeOf<SabirChatTransport<v5.UIMessage>>().toExtend<v5.ChatTransport<v5.UIMessage>>();
    expectTypeOf(new SabirChatTransport({ api })).toExtend<SabirChatTransport<UIMessage>>();
  });

  it('takes the options of DefaultChatTransport', () => {
    const options: v7.HttpChatTransportInitOptions<v7.UIMessage> & { api: string } = { api };
    const { fetch: _, prepareSendMessagesRequest, prepareReconnectToStreamRequest } = options;
    new SabirChatTransport<v7.UIMessage>({
      api,
      headers: async () => new Headers(),
      body: () => ({ more: 1 }),
      credentials: () => 'include',
      ...(prepareSendMessagesRequest && { prepareSendMessagesRequest }),
      ...(prepareReconnectToStreamRequest && { prepareReconnectToStreamRequest }),
    });
  });

  it('types what becomes of an answer', () => {
    type Result = Awaited<ReturnType<SabirChatTransport['answer']>>;
    expectTypeOf<Result['status']>().toEqualTypeOf<'accepted' | 'answered' | 'expired'>();
    // @ts-expect-error there is no place to send to
    new SabirChatTransport({});
  });
});
