// Focus mode: the context of one mention, and its three candidates.

import type { Mark, PickerCandidate, Span } from './types';

/** UTF-16 units of text on either side. */
const CONTEXT = 240;

export interface ContextPart {
  text: string;
  isMention: boolean;
}

/** The text around a mention, cut between words, with the parts of the mention apart. */
export function contextOf(text: string, spans: Span[]): ContextPart[] {
  const [first, last] = [spans[0]![0], spans.at(-1)![1]];
  let start = Math.max(0, first - CONTEXT);
  let end = Math.min(text.length, last + CONTEXT);
  while (start > 0 && start < first && !/\s/.test(text[start - 1]!)) start++;
  while (end < text.length && end > last && !/\s/.test(text[end]!)) end--;
  const parts: ContextPart[] = [];
  const add = (from: number, to: number, isMention: boolean) => {
    if (from < to) parts.push({ text: text.slice(from, to), isMention });
  };
  let at = start;
  for (const [from, to] of spans) {
    add(at, from, false);
    add(from, to, true);
    at = to;
  }
  add(at, end, false);
  if (start > 0) parts.unshift({ text: '… ', isMention: false });
  if (end < text.length) parts.push({ text: ' …', isMention: false });
  return parts;
}

export interface FocusCandidate {
  id: string;
  name: string;
  score: number | null;
  definition: string | null;
}

/** Three candidates: those of the prediction, then others. Their order does not change when the others arrive. */
export function threeOf(mark: Mark, others: PickerCandidate[]): FocusCandidate[] {
  const definitions = new Map(others.map((one) => [one.id, one.definition]));
  const rows: FocusCandidate[] = mark.candidates.slice(0, 3).map(({ id, name, score }) => ({ id, name, score, definition: definitions.get(id) ?? null }));
  for (const one of others) {
    if (rows.length >= 3) break;
    if (!rows.some((row) => row.id === one.id)) rows.push({ id: one.id, name: one.name, score: one.how === 'model' || one.how === 'linked' ? one.score : null, definition: one.definition });
  }
  return rows;
}
