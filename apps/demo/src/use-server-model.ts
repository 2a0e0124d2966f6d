import { useEffect, useState } from 'react';

/** Which model the server has, in words: a key in its environment makes it a real one. */
export function useServerModel(): string {
  const [text, setText] = useState('Server');
  useEffect(() => {
    const leaving = new AbortController();
    fetch('/healthz', { signal: leaving.signal })
      .then(async (response) => {
        const { model } = (await response.json()) as { model?: string };
        if (model === 'scripted model') setText('Scripted model, no key needed');
        else if (model) setText(`Model: ${model}`);
      })
      .catch(() => {
        if (!leaving.signal.aborted) setText('No server here: choose This tab');
      });
    return () => leaving.abort();
  }, []);
  return text;
}
