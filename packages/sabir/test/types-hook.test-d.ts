/** What only a compiler can prove about the hook. Checked by `vitest --typecheck`; nothing here runs. */

import type { UIMessage as UIMessage5 } from 'ai-v5';
import type { UIMessage as UIMessage6 } from 'ai-v6';
import type { UIMessage as UIMessage7 } from 'ai-v7';
import { describe, expectTypeOf, it } from 'vitest';
import { type UseChatStreamOptions, useChatStream } from '../src/clients/react/index.ts';
import type { UIMessage } from '../src/core/message.ts';
import type { ContractEvent } from '../src/wires/contract/events.ts';

type Metadata = { seconds: number };
type Data = { weather: { degrees: number }; chart: { points: number[] } };
type Tools = {
  search: { input: { q: string }; output: { hits: number } };
  draw: { input: { shape: 'circle' | 'square' }; output: string };
};
type MyMessage = UIMessage<Metadata, Data, Tools>;

const api = '/api/chat';
const useMine = () => useChatStream<MyMessage>({ api });
const useAny = () => useChatStream({ api });
const useGiven = (initialMessages: MyMessage[]) => useChatStream({ api, initialMessages });
type Mine = ReturnType<typeof useMine>;
type Part = Mine['messages'][number]['parts'][number];

describe('messages of the AI SDK', () => {
  it('can be named as they are, of every major', () => {
    const use5 = () => useChatStream<UIMessage5>({ api });
    const use6 = () => useChatStream<UIMessage6>({ api });
    const use7 = () => useChatStream<UIMessage7>({ api });
    expectTypeOf<ReturnType<typeof use5>['messages']>().toEqualTypeOf<UIMessage5[]>();
    expectTypeOf<ReturnType<typeof use6>['messages']>().toEqualTypeOf<UIMessage6[]>();
    expectTypeOf<ReturnType<typeof use7>['messages']>().toEqualTypeOf<UIMessage7[]>();
  });
});

describe('what comes back', () => {
  it('is messages of the type that was named', () => {
    expectTypeOf<Mine['messages']>().toEqualTypeOf<MyMessage[]>();
    expectTypeOf<ReturnType<typeof useAny>['messages']>().toEqualTypeOf<UIMessage[]>();
  });

  it('takes its type from the messages that are given', () => {
    expectTypeOf<ReturnType<typeof useGiven>['messages']>().toEqualTypeOf<MyMessage[]>();
  });

  it('narrows data parts by their names', () => {
    const show = (part: Part) => {
      if (part.type === 'data-weather') expectTypeOf(part.data).toEqualTypeOf<Data['weather']>();
      if (part.type === 'data-chart') expectTypeOf(part.data.points).toEqualTypeOf<number[]>();
      // @ts-expect-error there is no such part
      return part.type === 'data-wether';
    };
    expectTypeOf(show).toBeFunction();
  });

  it('narrows typed tools by their names and states', () => {
    const show = (part: Part) => {
      if (part.type === 'tool-search' && part.state === 'output-available') {
        expectTypeOf(part.input).toEqualTypeOf<{ q: string }>();
        expectTypeOf(part.output).toEqualTypeOf<{ hits: number }>();
      }
      if (part.type === 'tool-draw' && part.state === 'input-streaming') {
        expectTypeOf(part.input?.shape).toEqualTypeOf<'circle' | 'square' | undefined>();
      }
      if (part.type === 'tool-draw' && part.state === 'output-error') {
        expectTypeOf(part.errorText).toBeString();
      }
    };
    expectTypeOf(show).toBeFunction();
  });

  it('types metadata, status and the error', () => {
    expectTypeOf<Mine['messages'][number]['metadata']>().toEqualTypeOf<Metadata | undefined>();
    expectTypeOf<Mine['status']>().toEqualTypeOf<'ready' | 'submitted' | 'streaming' | 'error'>();
    expectTypeOf<Mine['error']>().toEqualTypeOf<Error | undefined>();
    expectTypeOf<Mine['id']>().toBeString();
  });
});

describe('what goes in', () => {
  type Send = Mine['sendMessage'];

  it('is words, files or parts, and metadata of its type', () => {
    expectTypeOf<Send>().toBeCallableWith('ahoy');
    expectTypeOf<Send>().toBeCallableWith(
      { text: 'ahoy', files: [new File([], 'a.txt')], metadata: { seconds: 1 } },
      { headers: { 'x-app': 'yes' }, body: { projectId: 'p' } },
    );
    expectTypeOf<Send>().toBeCallableWith({ files: {} as FileList, messageId: 'u1' });
    expectTypeOf<Send>().toBeCallableWith({
      parts: [{ type: 'data-weather', data: { degrees: 20 } }],
    });
    const send = {} as Send;
    // @ts-expect-error seconds are a number
    void send({ text: 'ahoy', metadata: { seconds: 'one' } });
    // @ts-expect-error a chart has points
    void send({ parts: [{ type: 'data-chart', data: { degrees: 20 } }] });
    // @ts-expect-error nothing is said
    void send();
  });

  it('sets and answers with its own types', () => {
    expectTypeOf<Mine['setMessages']>().toBeCallableWith([]);
    expectTypeOf<Mine['setMessages']>().toBeCallableWith((messages) => {
      expectTypeOf(messages).toEqualTypeOf<MyMessage[]>();
      return messages.slice(1);
    });
    expectTypeOf<Mine['answer']>().parameter(0).toEqualTypeOf<{
      questionId: string;
      answer: unknown;
    }>();
    expectTypeOf<Awaited<ReturnType<Mine['answer']>>['status']>().toEqualTypeOf<
      'accepted' | 'answered' | 'expired'
    >();
  });

  it('has options that may be functions, and callbacks that are typed', () => {
    type Options = UseChatStreamOptions<MyMessage>;
    const options: Options = {
      api,
      body: async () => ({ projectId: 'p' }),
      headers: () => ({ authorization: 'Bearer token' }),
      resume: true,
      onEvent: (event) => {
        expectTypeOf(event).toEqualTypeOf<ContractEvent>();
        if (event.type === 'tool.call') expectTypeOf(event.data.toolName).toBeString();
      },
      onFinish: ({ message, messages }) => {
        expectTypeOf(message).toEqualTypeOf<MyMessage | undefined>();
        expectTypeOf(messages).toEqualTypeOf<MyMessage[]>();
      },
    };
    expectTypeOf<Options['body']>().toEqualTypeOf<
      object | (() => object | Promise<object>) | undefined
    >();
    expectTypeOf(options).toExtend<Options>();
    // @ts-expect-error a body is an object
    const wrong: Options = { api, body: 'text' };
    // @ts-expect-error there is no place to send to
    const nowhere: Options = {};
    expectTypeOf([wrong, nowhere]).not.toBeAny();
  });
});
