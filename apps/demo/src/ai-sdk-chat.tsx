import { useChat } from '@ai-sdk/react';
import { useState } from 'react';
import { type ChatMessage, type Outcome, settleLast } from './chat-message.ts';
import { loadChat } from './chat-storage.ts';
import { ChatView } from './chat-view.tsx';
import { PlaceSwitch } from './components/place-switch.tsx';
import { GatewayTransport } from './gateway-transport.ts';
import { FLOW_INTRO } from './intros.ts';
import { toPlaceNote } from './place-note.ts';
import { toTransport } from './transports.ts';
import { useCatchUp } from './use-catch-up.ts';
import { usePlace } from './use-place.ts';
import { useServerReport } from './use-server-report.ts';

/** Renders at most once a frame, however fast the words come. */
const FRAME_MS = 16;

/** A conversation on the AI SDK's `useChat`, in any of three places. */
export function AiSdkChat({ chatId }: { chatId: string }) {
  const [stored] = useState(() => loadChat(chatId));
  const [place, setPlace] = usePlace();
  /** Where the last answer was asked for; the switch is about the next one. */
  const [turnPlace, setTurnPlace] = useState(stored.place ?? place);
  const [isReconnecting, setIsReconnecting] = useState(false);
  const [gateway] = useState(() => new GatewayTransport(chatId, setIsReconnecting));
  const report = useServerReport();

  const chat = useChat<ChatMessage>({
    id: chatId,
    messages: stored.messages,
    transport: toTransport(place, gateway),
    throttle: FRAME_MS,
    onFinish: ({ isAbort }) => {
      setIsReconnecting(false);
      // Whoever leaves an answer of the gateway's only leaves.
      if (isAbort && turnPlace === 'gateway') return;
      // A stream that was cut off carries no outcome, and a client takes silence for success.
      settle(isAbort ? 'stopped' : 'lost');
    },
  });
  const { messages, status, error } = chat;
  const settle = (outcome: Outcome) => chat.setMessages((current) => settleLast(current, outcome));

  const isCatchingUp = useCatchUp({
    ...chat,
    conversation: gateway.conversation,
    resume: chat.resumeStream,
    isExpected: turnPlace === 'gateway',
    isBusy: status === 'submitted' || status === 'streaming',
    onCaughtUp: () => setTurnPlace('gateway'),
  });

  const begin = (request: Promise<void>) => {
    void request;
    setTurnPlace(place);
  };
  const stop = async () => {
    if (turnPlace !== 'gateway') return chat.stop();
    // Its answer ends for all tabs, in the stream. Where nobody can be told, at least it ends here.
    await gateway.stop(chatId).catch(async () => {
      await chat.stop();
      settle('stopped');
    });
  };

  return (
    <ChatView
      chat={{
        messages,
        status,
        error,
        isCatchingUp,
        isReconnecting,
        place: turnPlace,
        send: (text) => begin(chat.sendMessage({ text })),
        retry: () => begin(chat.regenerate()),
        stop: () => void stop(),
      }}
      canMove
      chatId={chatId}
      controls={(noteId) => <PlaceSwitch describedBy={noteId} onChange={setPlace} value={place} />}
      intro={FLOW_INTRO}
      note={toPlaceNote(place, report)}
      stored={stored}
    />
  );
}
