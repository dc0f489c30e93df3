// Selecting text by arrow keys: word after word, or one end at a time.

import { boundaryAfter, boundaryBefore, snapToWords } from './tokens';
import type { Span } from './types';

export interface SelectionStep {
  /** Where the selection began. */
  anchor: number;
  /** Where the first selection starts: at the focused mention. */
  here: number;
  isForward: boolean;
  /** Whether one end moves and the other stays. */
  extends: boolean;
  step: 'token' | 'character';
}

/** The selection after an arrow key, and where it began; `null` if nothing is left to select. Offsets are UTF-16 units. */
export function selectionAfter(text: string, now: Span | null, { anchor, here, isForward, extends: isExtended, step }: SelectionStep): { span: Span; anchor: number } | null {
  if (isExtended && now) {
    // One end stays where the selection began, the other moves.
    const grows = now[0] === anchor;
    const head = grows ? now[1] : now[0];
    let to = isForward ? boundaryAfter(text, head, grows ? 'end' : 'start', step) : boundaryBefore(text, head, grows ? 'end' : 'start', step);
    if (grows && to <= anchor) return null;
    if (!grows && to >= now[1]) to = head;
    return { span: grows ? [anchor, to] : [to, now[1]], anchor };
  }
  const from = now ? (isForward ? now[1] : now[0]) : here;
  const start = isForward ? (now ? boundaryAfter(text, Math.max(0, from - 1), 'start', 'token') : from) : boundaryBefore(text, from, 'start', 'token');
  const word = snapToWords(text, [start, Math.min(text.length, start + 1)]) ?? snapToWords(text, [start, boundaryAfter(text, start, 'end', 'token')]);
  return word && { span: word, anchor: word[0] };
}
