import { type ComponentProps, memo } from 'react';
import { Streamdown } from 'streamdown';
import { holdBackTable } from '../hold-back-table.ts';
import { CodeBlock } from './code-block.tsx';
import { ScrollBox } from './scroll-box.tsx';

type StreamdownProps = ComponentProps<typeof Streamdown>;

/**
 * Plain elements, styled by `prose.css`. Headings go two levels down, because the page and the
 * step above them have the first two. Pictures become links: what a model writes must not make
 * the reader's browser call an address of the model's choice.
 */
const COMPONENTS: StreamdownProps['components'] = {
  h1: 'h3',
  h2: 'h3',
  h3: 'h4',
  h4: 'h5',
  h5: 'h6',
  h6: 'h6',
  p: 'p',
  ul: 'ul',
  ol: 'ol',
  li: 'li',
  strong: 'strong',
  blockquote: 'blockquote',
  hr: 'hr',
  thead: 'thead',
  tbody: 'tbody',
  tr: 'tr',
  th: 'th',
  td: 'td',
  inlineCode: ({ children }) => <code>{children}</code>,
  code: ({ children, className }) => <CodeBlock className={className}>{children}</CodeBlock>,
  a: ({ children, href }) => (
    <a href={href} rel="noreferrer" target="_blank">
      {children}
    </a>
  ),
  img: ({ alt, src }) => (
    <a href={typeof src === 'string' ? src : undefined} rel="noreferrer" target="_blank">
      {alt || 'Picture'}
    </a>
  ),
  table: ({ children }) => (
    <ScrollBox className="overflow-x-auto" label="Table">
      <table>{children}</table>
    </ScrollBox>
  ),
};

export type MarkdownProps = { children: string; isLive: boolean; quiet?: boolean };

/** The default export, as `lazy` wants it. */
export default memo(function StreamedMarkdown({ children, isLive, quiet }: MarkdownProps) {
  return (
    <Streamdown
      className={quiet ? 'prose prose-quiet' : 'prose'}
      components={COMPONENTS}
      controls={false}
      linkSafety={{ enabled: false }}
    >
      {isLive ? holdBackTable(children) : children}
    </Streamdown>
  );
});
