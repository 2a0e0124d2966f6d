import { allowsFile, checkFiles, type FileUrls } from '../../core/file-urls.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { UIMessage, UIMessagePart } from '../../core/message.ts';
import type { AgentPrompt } from '../../turns/agent.ts';

const DENIED = 'It was not approved.';
const isString = (value: unknown): value is string => typeof value === 'string';

/**
 * The conversation as every major's `convertToModelMessages` takes it: only what a model can be told
 * again. A call that got no output is left out, because a provider refuses it.
 *
 * Throws if the SDK, or its provider, would fetch a file of the prompt that `fileUrls` does not allow.
 */
export function toConversation(
  { messages, attachments }: Pick<AgentPrompt, 'messages' | 'attachments'>,
  fileUrls?: FileUrls,
): UIMessage[] {
  checkFiles(attachments, fileUrls);
  return messages.flatMap(atSteering).flatMap((message) => toSayable(message, fileUrls));
}

/** An answer with what people have said in the midst of it, as the messages that they are. */
function atSteering(message: UIMessage): UIMessage[] {
  const { id, role } = message;
  if (!message.parts.some(isSteering)) return [message];
  const messages: UIMessage[] = [{ id, role, parts: [] }];
  for (const part of message.parts) {
    const { id: steerId, parts } = part as Loose;
    if (!isSteering(part)) messages.at(-1)?.parts.push(part);
    else if (isString(steerId) && Array.isArray(parts)) {
      messages.push({
        id: steerId,
        role: 'user',
        parts: parts.filter(isObject) as UIMessagePart[],
      });
      messages.push({ id: `${id} after ${steerId}`, role, parts: [] });
    }
  }
  return messages;
}

function isSteering({ type }: { type: string }): boolean {
  return type === 'steering-message';
}

function toSayable(message: UIMessage, fileUrls: FileUrls | undefined): UIMessage[] {
  const { id, role } = message;
  if (role === 'system') return [];
  const said = message.parts.flatMap((part) => toSayablePart(part as Loose, fileUrls));
  const parts = role === 'assistant' ? withSteps(said) : said;
  return parts.some(({ type }) => type !== 'step-start') ? [{ id, role, parts }] : [];
}

function toSayablePart(part: Loose, fileUrls: FileUrls | undefined): UIMessagePart[] {
  const { type, text, url, mediaType, filename, providerMetadata } = part;
  const more = isObject(providerMetadata) ? { providerMetadata } : {};
  if (type === 'text')
    return text && isString(text) ? [{ type, text, ...more } as UIMessagePart] : [];
  // Without what its provider signed it with, no provider takes it back.
  if (type === 'reasoning') {
    const words = isString(text) ? text : '';
    return providerMetadata ? [{ type, text: words, ...more } as UIMessagePart] : [];
  }
  if (type === 'file') {
    const named = typeof filename === 'string' && { filename };
    const file = { type, url, mediaType, ...named, ...more } as UIMessagePart;
    return isString(url) && allowsFile(url, fileUrls) && isString(mediaType) ? [file] : [];
  }
  if (type === 'step-start') return [{ type }];
  return typeof part.toolCallId === 'string' ? toSettledCall(part) : [];
}

/** As a call that ran here, also where the model's provider ran it: sessions do not keep the difference. */
function toSettledCall(part: Loose): UIMessagePart[] {
  const { type, toolName, toolCallId, state, input, output, errorText, preliminary } = part;
  const call = {
    type,
    toolCallId,
    input: input ?? {},
    ...(type === 'dynamic-tool' && { toolName }),
  };
  if (state === 'output-available' && preliminary !== true) {
    return [{ ...call, state, output: output ?? null } as UIMessagePart];
  }
  if (state !== 'output-error' && state !== 'output-denied') return [];
  const words = state === 'output-error' ? errorText : DENIED;
  const errorWords = isString(words) ? words : '';
  return [{ ...call, state: 'output-error', errorText: errorWords } as UIMessagePart];
}

/** What comes after a tool was said when its result was known: the model is told so by a step. */
function withSteps(parts: UIMessagePart[]): UIMessagePart[] {
  const stepped: UIMessagePart[] = [];
  let isAfterTool = false;
  for (const part of parts) {
    const isTool = 'toolCallId' in part;
    if (isAfterTool && !isTool && part.type !== 'step-start') stepped.push({ type: 'step-start' });
    stepped.push(part);
    isAfterTool = isTool;
  }
  return stepped;
}
