import type { MessageLike, UIMessage } from '../core/message.ts';
import { decodeContract } from '../wires/contract/decode.ts';
import type { StreamEvent } from '../wires/contract/events.ts';
import type { Wire } from './chunk-groups.ts';
import { SabirChatTransport, type SabirChatTransportOptions } from './sabir-chat-transport.ts';

/** Events become chunks when they are delivered: what is sent again was not read before. */
function createContractWire(): Wire<StreamEvent> {
  const decode = decodeContract();
  return {
    read({ event, data }) {
      if (!event) throw new TypeError('A frame is not an event.');
      return { type: event, data: JSON.parse(data) };
    },
    isTerminal: ({ type }) => type === 'done' || type === 'error',
    toChunks: (event) => decode(event),
  };
}

/**
 * `useChat` on a server that speaks the contract, a gateway's `/api/chat` or any other: reconnects,
 * resumes, stops and answers like `SabirChatTransport`.
 *
 * @example
 * const { messages, sendMessage } = useChat({
 *   transport: new ContractChatTransport({ api: '/api/chat', body: { projectId } }),
 * });
 */
export class ContractChatTransport<
  M extends MessageLike = UIMessage,
> extends SabirChatTransport<M> {
  constructor(options: SabirChatTransportOptions<M>) {
    super(options, { chatKey: 'sessionId', createWire: createContractWire });
  }
}
