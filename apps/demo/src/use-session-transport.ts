import { DefaultChatTransport } from 'ai';
import { useState } from 'react';
import type { ChatMessage } from './chat-message.ts';
import type { Connection } from './connection.ts';
import { DETACH } from './session-requests.ts';

/** The AI SDK's own transport, and what has become of what was last sent with it. */
export function useSessionTransport(api: string, connection: Connection) {
  /** It may never have reached the server. */
  const [isUnsent, setIsUnsent] = useState(false);
  /** What the session calls it. */
  const [promptId, setPromptId] = useState<string | null>(null);

  const [transport] = useState(
    () =>
      new DefaultChatTransport<ChatMessage>({
        api,
        headers: DETACH,
        async fetch(address, init) {
          if (init?.method !== 'POST') return connection.fetch(address, init);
          setIsUnsent(true);
          const response = await connection.fetch(address, init);
          setIsUnsent(false);
          setPromptId(response.headers.get('x-sabir-turn'));
          return response;
        },
      }),
  );
  return { transport, isUnsent, promptId };
}
