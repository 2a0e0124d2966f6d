/** Code in a page whose fence names a file, as in "```tsx chat.tsx": code that has to work. */
export function namedBlocks(markdown: string): { name: string; code: string }[] {
  return [...markdown.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm)].map(
    ([, name = '', code = '']) => ({
      name,
      code,
    }),
  );
}
