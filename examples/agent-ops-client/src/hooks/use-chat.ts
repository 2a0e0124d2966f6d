import { useEffect, useReducer, useRef } from 'react';

type ToolCall = {
  type: 'tool-call';
  callId: string;
  toolName: string;
  status: string;
  args?: unknown;
  result?: unknown;
  error?: string;
};
type Message = { id: string; role: 'user' | 'assistant'; content: string; tools: ToolCall[] };
type State = { messages: Message[]; isOpen: boolean; isBusy: boolean; error: string | undefined };

/** A message as an Agent Ops session sends it. */
type SentMessage = Omit<Message, 'tools'> & { parts?: { type: string }[] };
/** As much of the snapshot dialect as this panel shows, and that its socket has closed. */
type SessionEvent =
  | { type: 'init'; session: { messages: SentMessage[] } }
  | { type: 'message' | 'message.updated'; data: SentMessage }
  | { type: 'chunk'; messageId: string; content: string }
  | { type: 'closed' }
  | { type: 'status'; data: { runnerBusy?: boolean } }
  | { type: 'error'; error?: string; message?: string };

const CLOSED: State = { messages: [], isOpen: false, isBusy: false, error: undefined };
const RETRY_MS = 1_000;

/** The custom hook of the session editor: one WebSocket, and a reducer for the events of the session. */
export function useChat(sessionId: string, token: string) {
  const [state, dispatch] = useReducer(reduce, CLOSED);
  const socket = useRef<WebSocket>(undefined);

  useEffect(() => {
    let timer: number | undefined;
    function connect(): void {
      const url = `/api/sessions/${encodeURIComponent(sessionId)}/ws?role=client`;
      // Browsers send no headers with a WebSocket: the token is a subprotocol.
      const current = new WebSocket(url, ['sabir', `bearer.${token}`]);
      socket.current = current;
      current.onmessage = ({ data }) => dispatch(JSON.parse(data));
      current.onclose = () => {
        dispatch({ type: 'closed' });
        timer = window.setTimeout(connect, RETRY_MS);
      };
    }
    connect();
    return () => {
      clearTimeout(timer);
      if (socket.current) socket.current.onclose = null;
      socket.current?.close();
    };
  }, [sessionId, token]);

  const tell = (message: object) => socket.current?.send(JSON.stringify(message));
  return {
    ...state,
    send: (content: string) =>
      tell({ type: 'prompt', content, channelType: 'web', channelId: 'default' }),
    abort: () => tell({ type: 'abort' }),
  };
}

function reduce(state: State, event: SessionEvent): State {
  switch (event.type) {
    case 'init':
      return { ...CLOSED, isOpen: true, messages: event.session.messages.map(toMessage) };
    case 'closed':
      return { ...state, isOpen: false };
    case 'message':
    case 'message.updated':
      return { ...state, error: undefined, messages: put(state.messages, toMessage(event.data)) };
    case 'chunk':
      return { ...state, messages: state.messages.map((message) => append(message, event)) };
    case 'status':
      return { ...state, isBusy: event.data.runnerBusy ?? state.isBusy };
    case 'error':
      return { ...state, error: event.error ?? event.message };
    default:
      return state;
  }
}

function toMessage({ id, role, content, parts }: SentMessage): Message {
  const isToolCall = (part: { type: string }): part is ToolCall => part.type === 'tool-call';
  return { id, role, content, tools: Array.isArray(parts) ? parts.filter(isToolCall) : [] };
}

function put(messages: Message[], message: Message): Message[] {
  const isKnown = messages.some(({ id }) => id === message.id);
  if (!isKnown) return [...messages, message];
  return messages.map((known) => (known.id === message.id ? message : known));
}

function append(message: Message, chunk: { messageId: string; content: string }): Message {
  if (message.id !== chunk.messageId) return message;
  return { ...message, content: message.content + chunk.content };
}
