/**
 * 128 bits of a text, in hexadecimal and at once: for names that must not be long, such as what makes
 * two requests the same. Not for secrets, and not collision-resistant against an attacker.
 */
export function hash128(text: string): string {
  let name = '';
  for (const seed of SEEDS) name += mix(text, seed);
  return name;
}

const SEEDS = [0x243f6a88, 0x85a308d3] as const;

/** 64 bits: two lanes that multiply by different odd numbers and stir each other at the end. */
function mix(text: string, seed: number): string {
  let one = seed ^ text.length;
  let other = ~seed;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    one = Math.imul(one ^ code, 0x9e3779b1);
    other = Math.imul(other ^ code ^ (one >>> 15), 0x85ebca77);
  }
  one = stir(one ^ (other >>> 13));
  other = stir(other ^ one);
  return toHex(one) + toHex(other);
}

/** Every bit of the result depends on every bit of the number. */
function stir(number: number): number {
  const half = Math.imul(number ^ (number >>> 16), 0x7feb352d);
  const whole = Math.imul(half ^ (half >>> 15), 0x846ca68b);
  return whole ^ (whole >>> 16);
}

function toHex(number: number): string {
  return (number >>> 0).toString(16).padStart(8, '0');
}
