/** A page that shows whatever scene a test asks for, and tells what happened. */
import { startTransition, useLayoutEffect, useState } from 'react';
import { createRoot, hydrateRoot } from 'react-dom/client';
import { ChatStream } from '../../src/clients/chat-stream.ts';
import { type Scene, Stage, seen } from './scene.tsx';

/** What a script in the page can reach. */
export type HookPage = typeof seen & {
  show(scene: Scene): void;
  /** The same as a transition, which React may put off, begin anew and give up. */
  showLater(scene: Scene): void;
  ChatStream: typeof ChatStream;
};

const root = document.getElementById('root') as HTMLElement;
const given = document.getElementById('scene')?.textContent;

function App({ first }: { first: Scene }) {
  const [scene, show] = useState(first);
  useLayoutEffect(() => {
    const page: HookPage = {
      ...seen,
      show,
      showLater: (later) => startTransition(() => show(later)),
      ChatStream,
    };
    Object.assign(window, { page });
  }, []);
  return <Stage {...scene} />;
}

if (given) {
  const onRecoverableError = (error: unknown) => console.error(String(error));
  hydrateRoot(root, <App first={JSON.parse(given)} />, { onRecoverableError });
} else createRoot(root).render(<App first={{ readers: [] }} />);
