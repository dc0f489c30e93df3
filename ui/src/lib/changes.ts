// What a prediction changed, in words.

import { share } from './format';
import type { ChangedMark, ChangeKind, Span, Verdict } from './types';

export const CHANGE_TEXT: Record<ChangeKind, string> = { added: 'new', removed: 'gone', relinked: 'other concept' };

function said(verdict: Verdict | null): string {
  if (!verdict) return 'nothing';
  return `${verdict.concept?.name ?? 'no concept'} ${share(verdict.score)}`;
}

/** `“fever”, other concept: Fever .62, before Pain .51`. */
export function toldChange(mark: ChangedMark): string {
  const name = `“${mark.text}”, ${CHANGE_TEXT[mark.change]}`;
  if (mark.change === 'removed') return `${name}: was ${said(mark.before)}`;
  if (mark.change === 'added') return `${name}: ${said(mark.after)}`;
  return `${name}: ${said(mark.after)}, before ${said(mark.before)}`;
}

/** From the first to the last character of all parts. */
export function hullOf(spans: Span[]): Span {
  return [Math.min(...spans.map((span) => span[0])), Math.max(...spans.map((span) => span[1]))];
}
