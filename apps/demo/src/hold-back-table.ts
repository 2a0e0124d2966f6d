/**
 * Markdown knows a table by its second line. Until that has arrived, the first would flash up
 * as a paragraph of bars, so a table that has only begun is kept back for a line.
 */
export function holdBackTable(markdown: string): string {
  const gap = markdown.lastIndexOf('\n\n');
  const start = gap < 0 ? 0 : gap + 2;
  const block = markdown.slice(start);
  const isUndecided = block.startsWith('|') && block.split('\n').length <= 2;
  return isUndecided ? markdown.slice(0, start) : markdown;
}
