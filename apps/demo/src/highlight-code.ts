export type CodeToken = {
  kind: 'plain' | 'comment' | 'string' | 'keyword' | 'name';
  text: string;
  start: number;
};

const KEYWORDS =
  'as|async|await|break|case|catch|class|const|continue|def|do|else|enum|export|extends|finally|fn|for|from|func|function|if|impl|import|in|interface|let|match|mut|new|null|of|package|private|pub|public|return|self|static|struct|super|switch|this|throw|true|false|try|type|undefined|use|var|void|while|with|yield';

/**
 * Enough colour to read by, for most languages with C-like or shell-like rules. A grammar for
 * each language would weigh more than the rest of the page.
 */
const PATTERN = new RegExp(
  [
    String.raw`(?<comment>\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|(?<=^|\s)#[^\n]*)`,
    String.raw`(?<string>'(?:[^'\\\n]|\\.)*'?|"(?:[^"\\\n]|\\.)*"?|\`(?:[^\`\\]|\\.)*\`?)`,
    String.raw`(?<keyword>\b(?:${KEYWORDS})\b)`,
    String.raw`(?<name>\b[A-Za-z_]\w*(?=\())`,
  ].join('|'),
  'g',
);

export function highlightCode(code: string): CodeToken[] {
  const tokens: CodeToken[] = [];
  let end = 0;
  const push = (kind: CodeToken['kind'], text: string, start: number) => {
    if (text) tokens.push({ kind, text, start });
    end = start + text.length;
  };
  for (const match of code.matchAll(PATTERN)) {
    push('plain', code.slice(end, match.index), end);
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined)?.[0];
    push((kind ?? 'plain') as CodeToken['kind'], match[0], match.index);
  }
  push('plain', code.slice(end), end);
  return tokens;
}
