/**
 * Why a signal aborts when nothing went wrong: its reader has left, or has all it wanted. Made once,
 * because an exception with its stack costs more than all the rest of an abort.
 */
export const NO_LONGER_NEEDED = new DOMException('No longer needed.', 'AbortError');
