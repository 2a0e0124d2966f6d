import { lazy, Suspense } from 'react';
import type { MarkdownProps } from './streamed-markdown.tsx';

// Half of the page's bytes. Requested at once, but the first paint does not wait for it.
const loading = import('./streamed-markdown.tsx');
const StreamedMarkdown = lazy(() => loading);

/** Markdown that may still be growing; until its parser is there, the plain text. */
export function Markdown(props: MarkdownProps) {
  const { children, quiet } = props;
  const plain = (
    <div className={`whitespace-pre-wrap ${quiet ? 'prose prose-quiet' : 'prose'}`}>{children}</div>
  );
  return (
    <Suspense fallback={plain}>
      <StreamedMarkdown {...props} />
    </Suspense>
  );
}
