import type { OpenCodeError } from './events.ts';

/** For errors that come without words. */
const WORDS: Readonly<Record<string, string>> = {
  MessageOutputLengthError: 'The answer grew longer than the model may write.',
  ProviderAuthError: 'The model’s provider did not accept the credentials.',
};

/** What went wrong, in the provider's own words where it has any. */
export function toFailureText({ name, data }: OpenCodeError): string | undefined {
  const message = data?.message;
  return typeof message === 'string' && message !== '' ? message : WORDS[name];
}
