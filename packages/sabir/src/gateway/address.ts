/**
 * What the limits of public routes count by. One IPv6 customer has a whole /64 to choose addresses from, so the
 * first 64 bits count as one. An address that is not known is the same for everybody.
 */
export function addressKeyOf(address: string | undefined): string {
  const text = withoutPort(address?.trim().toLowerCase() ?? '');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(text)?.[1];
  if (mapped) return mapped;
  if (!text.includes(':')) return text;
  const [head = '', tail] = (text.split('%', 1)[0] ?? '').split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail ? tail.split(':') : [];
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}

/** Some proxies name the port too, which is another one for every connection. */
function withoutPort(text: string): string {
  return (
    /^\[([\da-f:.%]*)\](?::\d+)?$/.exec(text)?.[1] ??
    text.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  );
}
