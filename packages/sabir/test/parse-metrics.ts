/** The samples of a scrape: `name{label="value"}` → number. */
export function parseMetrics(text: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1).replace('+Inf', 'Infinity'))];
    }),
  );
}
