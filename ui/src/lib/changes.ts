// What a prediction changed, in words.

import { formatScore } from './format';
import type { ChangedMark, ChangeKind, Span, PredictedConcept } from './types';

export const CHANGE_TEXT: Record<ChangeKind, string> = { added: 'new', removed: 'gone', relinked: 'other concept' };

function predictionText(predicted: PredictedConcept | null): string {
  if (!predicted) return 'nothing';
  return `${predicted.concept?.name ?? 'no concept'} ${formatScore(predicted.score)}`;
}

/** `“fever”, other concept: Fever .62, before Pain .51`. */
export function changeText(mark: ChangedMark): string {
  const name = `“${mark.text}”, ${CHANGE_TEXT[mark.change]}`;
  if (mark.change === 'removed') return `${name}: was ${predictionText(mark.before)}`;
  if (mark.change === 'added') return `${name}: ${predictionText(mark.after)}`;
  return `${name}: ${predictionText(mark.after)}, before ${predictionText(mark.before)}`;
}

/** From the first to the last character of all parts. */
export function extentOf(spans: Span[]): Span {
  return [Math.min(...spans.map((span) => span[0])), Math.max(...spans.map((span) => span[1]))];
}
