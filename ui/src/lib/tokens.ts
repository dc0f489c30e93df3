// Token boundaries, to expand selections to whole words and to move boundaries by token. Offsets are UTF-16 units.

import type { Span } from './types';

const WORD = /[\p{L}\p{M}\p{N}]/u;
const TOKEN = /[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu;

/** The tokens between two offsets: words, and other characters one by one. */
export function tokens(text: string, from = 0, to = text.length): Span[] {
  const found: Span[] = [];
  for (const match of text.slice(from, to).matchAll(TOKEN)) found.push([from + match.index, from + match.index + match[0].length]);
  return found;
}

/** A selection without surrounding whitespace, expanded to whole words, or `null` if it is empty. */
export function snapToWords(text: string, [start, end]: Span): Span | null {
  const trimmed = trimSpan(text, [start, end]);
  if (!trimmed) return null;
  let [from, to] = trimmed;
  if (isWord(text, from)) while (from > 0 && isWord(text, before(text, from))) from = before(text, from);
  if (isWord(text, before(text, to))) while (to < text.length && isWord(text, to)) to = after(text, to);
  return [from, to];
}

/** A selection without surrounding whitespace, on character boundaries, or `null` if it is empty. */
export function trimSpan(text: string, span: Span): Span | null {
  let start = charBoundary(text, Math.min(...span));
  let end = charBoundary(text, Math.max(...span));
  while (start < end && /\s/.test(text[start]!)) start++;
  while (end > start && /\s/.test(text[end - 1]!)) end--;
  return start < end ? [start, end] : null;
}

export type Step = 'token' | 'character';

/** The next boundary to the right: the end of a token for an end, its start for a start. */
export function boundaryAfter(text: string, at: number, side: 'start' | 'end', step: Step): number {
  if (at >= text.length) return text.length;
  if (step === 'character') return after(text, at);
  for (const [start, end] of tokens(text, wordStart(text, at), Math.min(text.length, at + 400))) {
    if (side === 'end' && end > at) return end;
    if (side === 'start' && start > at) return start;
  }
  return side === 'end' ? text.length : at;
}

/** The next boundary to the left. */
export function boundaryBefore(text: string, at: number, side: 'start' | 'end', step: Step): number {
  if (at <= 0) return 0;
  if (step === 'character') return before(text, at);
  const near = tokens(text, wordStart(text, Math.max(0, at - 400)), Math.min(text.length, at + 1));
  for (const [start, end] of near.reverse()) {
    if (side === 'start' && start < at) return start;
    if (side === 'end' && end < at) return end;
  }
  return side === 'start' ? 0 : at;
}

/** An offset moved to a character boundary: surrogate pairs and combining marks are not split. */
function charBoundary(text: string, at: number): number {
  while (at > 0 && at < text.length && isInside(text, at)) at--;
  return Math.max(0, Math.min(at, text.length));
}

function after(text: string, at: number): number {
  let next = at + 1;
  while (next < text.length && isInside(text, next)) next++;
  return next;
}

function before(text: string, at: number): number {
  let next = at - 1;
  while (next > 0 && isInside(text, next)) next--;
  return next;
}

function isInside(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code >= 0xdc00 && code <= 0xdfff) return true;
  return code >= 0x300 && /\p{M}|\u200d/u.test(text[at]!);
}

function isWord(text: string, at: number): boolean {
  return at >= 0 && at < text.length && WORD.test(String.fromCodePoint(text.codePointAt(at)!));
}

function wordStart(text: string, at: number): number {
  let start = charBoundary(text, at);
  while (start > 0 && isWord(text, start) && isWord(text, before(text, start))) start = before(text, start);
  return start;
}
