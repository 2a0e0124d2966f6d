import { isObject, type Loose } from '../core/loose.ts';

/** What arrived, if its `type` is known and it has the shape of that type. */
export function readTyped<Known extends { type: string }>(
  shapes: Record<Known['type'], (value: Loose) => boolean>,
  value: unknown,
): Known | undefined {
  if (!isObject(value)) return undefined;
  const { type } = value;
  const isKnown = typeof type === 'string' && Object.hasOwn(shapes, type);
  return isKnown && shapes[type as Known['type']](value) ? (value as Known) : undefined;
}
