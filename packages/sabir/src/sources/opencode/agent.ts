import type { Chunk } from '../../core/chunks.ts';
import { checkFiles, type FileUrls } from '../../core/file-urls.ts';
import type { Channel, Logger } from '../../core/translator.ts';
import type { Agent, AgentPrompt, AgentStart } from '../../turns/agent.ts';
import { createOpenCodeTurn, type OpenCodeTurn } from './agent-turn.ts';
import { createOpenCodeApi, OpenCodeRefusal, type OpenCodeServer, type PromptBody } from './api.ts';
import { createEventStream, type EventStream } from './event-stream.ts';

/** Which conversation of OpenCode a channel has. */
export interface OpenCodeSessions {
  get(channelKey: string): string | undefined | Promise<string | undefined>;
  set(channelKey: string, opencodeSessionId: string): void | Promise<void>;
}

export type CreateOpenCodeAgentOptions = {
  /** The model for prompts that name none, as `provider/model`. Default: the server's. */
  model?: string;
  /** The agent of OpenCode to use. Default: the server's. */
  agent?: string;
  /** Where the channels' conversations are remembered. Default: in memory. */
  sessions?: OpenCodeSessions;
  /**
   * Which addresses of attached files OpenCode may fetch. It reads those with `file:` without a question.
   *
   * @default none: files come whole, as `data:`
   */
  fileUrls?: FileUrls;
  /** Words that arrive together are told together. Default true. */
  mergeDeltas?: boolean;
  timing?: {
    /** How long the server may send nothing, not even a heartbeat. Default 30 s. */
    silenceMs?: number;
    /** How long a connection that broke is tried again. Default 10 s. */
    reconnectMs?: number;
  };
};

type Conversation = {
  sessionId: string;
  /** The latest message in it: what comes behind it is of the next turn. */
  lastMessageId: string;
};

/**
 * An OpenCode server that is there already, as the agent of one session. Owns the connection to it and
 * which conversation belongs to which channel.
 */
export function createOpenCodeAgent(
  server: OpenCodeServer & {
    /** Aborts when the server is known to be gone, with what is to be said of it. */
    gone?: AbortSignal;
  },
  options: CreateOpenCodeAgentOptions = {},
): Agent {
  const api = createOpenCodeApi(server);
  const sessions = options.sessions ?? inMemory();
  const conversations = new Map<string, Conversation>();
  const turns = new Set<OpenCodeTurn>();
  let stream: EventStream | undefined;
  let isClosed = false;
  let defaultModel = options.model;
  let emit: AgentStart['emit'] | undefined;
  let logger: Logger | undefined;

  function lose(error: unknown): void {
    for (const turn of turns) turn.lose(error);
    stream?.close();
    stream = undefined;
  }

  /** What was lost may be there again. */
  async function connected(): Promise<void> {
    if (isClosed) throw new Error('The agent was closed.');
    server.gone?.throwIfAborted();
    stream ??= openStream();
    await stream.ready;
  }

  function openStream(): EventStream {
    const { silenceMs = 30_000, reconnectMs = 10_000 } = options.timing ?? {};
    return createEventStream(api, {
      silenceMs,
      reconnectMs,
      event(event) {
        for (const turn of turns) turn.read(event);
      },
      reconnected() {
        for (const turn of turns) turn.catchUp();
      },
      lost: lose,
      logger,
    });
  }

  async function tellModels(): Promise<void> {
    const { providers } = await api.providers();
    const models = providers.map(({ id, name, models: offered }) => ({
      provider: name ?? id,
      models: Object.values(offered).map((model) => ({
        id: `${id}/${model.id}`,
        name: model.name ?? model.id,
      })),
    }));
    emit?.({ type: 'models', models });
  }

  async function conversationOf(channel: Channel): Promise<Conversation> {
    const key = keyOf(channel);
    const known = conversations.get(key);
    if (known) return known;
    const conversation = (await restore(await sessions.get(key))) ?? (await begin(key));
    conversations.set(key, conversation);
    return conversation;
  }

  async function restore(sessionId: string | undefined): Promise<Conversation | undefined> {
    if (sessionId === undefined) return undefined;
    try {
      const messages = await api.messages(sessionId, 2);
      return { sessionId, lastMessageId: messages.at(-1)?.info.id ?? '' };
    } catch (error) {
      // Forgotten by the server: the channel begins anew.
      if (error instanceof OpenCodeRefusal && error.status === 404) return undefined;
      throw error;
    }
  }

  async function begin(channelKey: string): Promise<Conversation> {
    const sessionId = await api.createSession();
    await sessions.set(channelKey, sessionId);
    emit?.({ type: 'channel-session-created', channelKey, opencodeSessionId: sessionId });
    return { sessionId, lastMessageId: '' };
  }

  async function* answer(prompt: AgentPrompt): AsyncGenerator<Chunk, void> {
    checkFiles(prompt.attachments, options.fileUrls);
    const body = toBody(prompt, defaultModel, options.agent);
    if (prompt.signal.aborted) return;
    await connected();
    const conversation = await conversationOf(prompt.channel);
    if (prompt.signal.aborted) return;
    const { sessionId, lastMessageId: after } = conversation;
    const { mergeDeltas = true } = options;
    const turn = createOpenCodeTurn({ api, sessionId, after, prompt, mergeDeltas, logger });
    const abort = () => turn.fail(prompt.signal.reason);
    turns.add(turn);
    prompt.signal.addEventListener('abort', abort);
    let isRefused = false;
    try {
      await api.prompt(sessionId, body);
      yield* turn.chunks;
    } catch (error) {
      isRefused = error instanceof OpenCodeRefusal;
      // Being told to stop is no error.
      if (!prompt.signal.aborted) throw error;
    } finally {
      prompt.signal.removeEventListener('abort', abort);
      if (!isRefused) await stop(turn);
      turns.delete(turn);
      conversation.lastMessageId = turn.reader.lastMessageId;
    }
  }

  async function stop(turn: OpenCodeTurn): Promise<void> {
    try {
      await turn.stop();
    } catch (error) {
      logger?.warn('could not stop OpenCode', { error });
    }
  }

  return {
    name: 'opencode',
    async start(where) {
      emit = (event) => where.emit(event);
      logger = where.logger;
      const { gone } = server;
      gone?.addEventListener('abort', () => lose(gone.reason), { once: true });
      await connected();
      // A conversation keeps the last model it had, even one that there is not.
      defaultModel = options.model ?? (await api.config()).model;
      await tellModels();
    },
    prompt: answer,
    async close() {
      isClosed = true;
      const running = [...turns];
      for (const turn of running) turn.fail(new Error('The agent was closed.'));
      await Promise.all(running.map(stop));
      stream?.close();
      stream = undefined;
    },
  };
}

export function inMemory(): OpenCodeSessions {
  const sessions = new Map<string, string>();
  return {
    get: (channelKey) => sessions.get(channelKey),
    set: (channelKey, sessionId) => void sessions.set(channelKey, sessionId),
  };
}

function keyOf({ channelType, channelId }: Channel): string {
  return `${channelType}:${channelId}`;
}

function toBody(
  prompt: AgentPrompt,
  defaultModel: string | undefined,
  agent: string | undefined,
): PromptBody {
  const model = prompt.model ?? defaultModel;
  return {
    parts: [
      { type: 'text', text: prompt.text },
      ...prompt.attachments.map(({ url, mediaType, filename }) => ({
        type: 'file' as const,
        mime: mediaType,
        url,
        ...(filename !== undefined && { filename }),
      })),
    ],
    ...(model !== undefined && { model: toModel(model) }),
    ...(agent !== undefined && { agent }),
  };
}

/** What is behind the first slash may have more of them. */
function toModel(model: string): { providerID: string; modelID: string } {
  const at = model.indexOf('/');
  if (at < 1) throw new Error(`The model is to be named as provider/model, not ${model}.`);
  return { providerID: model.slice(0, at), modelID: model.slice(at + 1) };
}
