/**
 * Stands in for `tailwind-merge`: Streamdown uses it to let callers override its classes, and
 * this page replaces its elements altogether.
 */
export function twMerge(...classes: Array<string | undefined>): string {
  return classes.filter(Boolean).join(' ');
}
