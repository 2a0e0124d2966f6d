import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { useEffect, useState } from 'react';
import type { SessionProps } from '../session-editor.tsx';

export type AiChatOptions = SessionProps & {
  /** A channel of the session. @default the session's default channel */
  channel?: { channelType: string; channelId: string };
};

/**
 * Stock `useChat` on the adapter's endpoint. No `tools`: the agent's tools run on the server, and the adapter ignores
 * outputs that a client sends.
 */
export function useAiChat(options: AiChatOptions & { messages: UIMessage[] }) {
  const { sessionId, token, channel, messages } = options;
  const [transport] = useState(() => createTransport(options));
  const chat = useChat({ id: sessionId, messages, transport, resume: true });

  /** Stops the turn at once and for every window. `useChat`'s own `stop` only leaves: the adapter waits for a return. */
  async function stop(): Promise<void> {
    const url = addressOf(sessionId, `chat/${encodeURIComponent(sessionId)}/stop`);
    const headers = { authorization: `Bearer ${token}` };
    await fetch(withQuery(url, channel), { method: 'POST', headers });
  }

  return { ...chat, stop };
}

function createTransport({ sessionId, token, channel }: AiChatOptions) {
  return new DefaultChatTransport({
    api: addressOf(sessionId, 'chat'),
    headers: { authorization: `Bearer ${token}` },
    // The adapter reads the channel and the client's major from the address, also of the request that resumes.
    fetch: (url, init) => fetch(withQuery(String(url), { ...channel, aiSdk: '7' }), init),
  });
}

/** What was said in the session, without the answer that runs: `resume` brings that. Undefined until it has arrived. */
export function useHistory({ sessionId, token, channel }: AiChatOptions): UIMessage[] | undefined {
  const [messages, setMessages] = useState<UIMessage[]>();
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const headers = { authorization: `Bearer ${token}` };
    fetch(withQuery(addressOf(sessionId, 'messages'), channel), { headers, signal })
      .then((response) => (response.ok ? response.json() : []))
      .then(setMessages)
      .catch(() => signal.aborted || setMessages([]));
    return () => leaving.abort();
  }, [sessionId, token, channel]);
  return messages;
}

function addressOf(sessionId: string, what: string): string {
  return `/api/sessions/${encodeURIComponent(sessionId)}/${what}`;
}

function withQuery(url: string, query: Record<string, string> = {}): string {
  return `${url}?${new URLSearchParams(query)}`;
}
