// Changes between two prediction runs, in words.

import { formatScore } from './format';
import type { ChangedMark, ChangeKind, Span, PredictedConcept } from './types';

export const CHANGE_TEXT: Record<ChangeKind, string> = { added: 'added', removed: 'removed', relinked: 'relinked' };

function predictionText(predicted: PredictedConcept | null): string {
  if (!predicted) return 'none';
  return `${predicted.concept?.name ?? 'not linked'} ${formatScore(predicted.score)}`;
}

/** `“fever”, relinked: Fever .62 (was Pain .51)`. */
export function changeText(mark: ChangedMark): string {
  const name = `“${mark.text}”, ${CHANGE_TEXT[mark.change]}`;
  if (mark.change === 'removed') return `${name}: ${predictionText(mark.before)}`;
  if (mark.change === 'added') return `${name}: ${predictionText(mark.after)}`;
  return `${name}: ${predictionText(mark.after)} (was ${predictionText(mark.before)})`;
}

/** From the first to the last character of all parts of a mention. */
export function extentOf(spans: Span[]): Span {
  return [Math.min(...spans.map((span) => span[0])), Math.max(...spans.map((span) => span[1]))];
}
