import type { UIMessage } from 'sabir';
import { type Agent, asUpstream, type ChatGateway, createChatGateway } from 'sabir/gateway';
import {
  OpenHarnessChatTransport,
  type OpenHarnessOptions,
  type Runtime,
} from 'sabir/open-harness';
import { createConversations } from './conversations.ts';

/** How long running answers may go on when the server is told to leave. */
const SHUTDOWN_MS = 2_000;

type GatewayOptions = {
  createFlow: () => Runtime;
  flowOptions: OpenHarnessOptions;
  /** What answers on the contract's route, `/api/chat`. */
  desk: Agent;
};

/**
 * The flow and the desk behind Sabir's gateway: an answer is a turn of its own, which goes on when
 * its page is reloaded and which every tab can watch, answer and stop.
 *
 * There are no accounts here. Unless HOST says otherwise the server listens on this machine only,
 * and a session's long random name, made by the browser, is what opens it.
 */
export function createGateway({ createFlow, flowOptions, desk }: GatewayOptions): ChatGateway {
  const conversations = createConversations();

  const flow = asUpstream(
    (prompt) => {
      conversations.begin(prompt);
      return new OpenHarnessChatTransport<UIMessage>(createFlow, flowOptions).sendMessages({
        trigger: 'submit-message',
        chatId: prompt.chatId,
        messageId: undefined,
        messages: prompt.messages,
        abortSignal: prompt.signal,
      });
    },
    { history: conversations.history },
  );

  const agents = asUpstream(
    {
      ...desk,
      prompt(prompt) {
        if (prompt.isRestored) conversations.goOn(prompt);
        else conversations.begin(prompt);
        return desk.prompt(prompt);
      },
    },
    { history: conversations.history },
  );

  return createChatGateway({
    upstream: flow,
    authenticate: () => ({ id: 'local' }),
    access: () => 'owner',
    // Nobody comes aboard here.
    routes: { chat: { upstream: agents }, onboarding: false },
    onFinish: conversations.finish,
    timing: { shutdownMs: SHUTDOWN_MS },
    logger: { warn: console.warn, error: console.error },
  });
}

export function isGatewayAddress(pathname: string): boolean {
  return (
    pathname === '/metrics' ||
    pathname === '/readyz' ||
    /^\/api\/(sessions\/|chat(\/|$))/.test(pathname)
  );
}
