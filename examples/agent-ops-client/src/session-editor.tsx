import { useEffect, useState } from 'react';
import { AiChatPanel } from './components/ai-chat-panel.tsx';
import { ChatPanel } from './components/chat-panel.tsx';

export type SessionProps = { sessionId: string; token: string };

/** The page of one session. Its settings decide which of the two chat panels it shows. */
export function SessionEditor({ sessionId, token }: SessionProps) {
  const { useAiSdk, setUseAiSdk } = useSessionSettings(sessionId, token);
  if (useAiSdk === undefined) return <p>Opening the session…</p>;
  const Panel = useAiSdk ? AiChatPanel : ChatPanel;
  return (
    <main>
      <h1>{sessionId}</h1>
      <label>
        <input
          checked={useAiSdk}
          onChange={({ target }) => void setUseAiSdk(target.checked)}
          type="checkbox"
        />{' '}
        Use the AI SDK chat (experiment)
      </label>
      <Panel sessionId={sessionId} token={token} />
    </main>
  );
}

function useSessionSettings(sessionId: string, token: string) {
  const [useAiSdk, show] = useState<boolean>();
  const url = `/api/sessions/${sessionId}/settings`;
  const headers = { authorization: `Bearer ${token}` };

  // biome-ignore lint/correctness/useExhaustiveDependencies: the headers follow from the token
  useEffect(() => {
    fetch(url, { headers })
      .then((response) => response.json())
      .then((settings) => show(settings.useAiSdk));
  }, [url, token]);

  async function setUseAiSdk(isOn: boolean): Promise<void> {
    const body = JSON.stringify({ useAiSdk: isOn });
    const response = await fetch(url, { method: 'PUT', headers, body });
    // The server may have the experiment off for every session.
    if (response.ok) show((await response.json()).useAiSdk);
  }

  return { useAiSdk, setUseAiSdk };
}
