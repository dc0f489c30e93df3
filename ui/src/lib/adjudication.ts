// Adjudication of disagreements: keyboard shortcuts, and the mentions that a choice keeps.

import type { Answer, Claim, Disagreement, KeptMention, Span } from './types';

export type AdjudicationAction = 'next' | 'previous' | 'pick' | 'search' | 'no-concept' | 'no-mention' | 'boundaries' | 'open' | 'undo';

export const ADJUDICATION_KEYS: { keys: string[]; action: AdjudicationAction; what: string }[] = [
  { keys: ['j'], action: 'next', what: 'next' },
  { keys: ['k'], action: 'previous', what: 'previous' },
  { keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], action: 'pick', what: 'accept this answer' },
  { keys: ['/'], action: 'search', what: 'other concept' },
  { keys: ['n'], action: 'no-concept', what: 'no matching concept (NIL)' },
  { keys: ['x'], action: 'no-mention', what: 'not a mention' },
  { keys: ['e'], action: 'boundaries', what: 'other boundaries' },
  { keys: ['Enter'], action: 'open', what: 'open in document' },
  { keys: ['u'], action: 'undo', what: 'undo' },
];

/** The action of a key, and the answer it accepts (from 0). */
export function adjudicationAction(key: string): { action: AdjudicationAction; row: number } | null {
  const found = ADJUDICATION_KEYS.find((row) => row.keys.includes(key));
  return found ? { action: found.action, row: found.action === 'pick' ? Number(key) - 1 : 0 } : null;
}

/** A key that identifies a disagreement while its answers change. */
export const disagreementKey = (one: Disagreement): string => `${one.document}.${one.marks[0]}`;

/** The mentions kept by accepting an answer. */
export function keepAnswer(answer: Answer): KeptMention[] {
  return answer.claims.map((claim) => ({ spans: claim.spans, concept: claim.concept?.id ?? null, is_nil: !claim.concept }));
}

/** The distinct boundaries of all answers, in their order. */
export function boundariesOf(one: Disagreement): Pick<Claim, 'spans' | 'text'>[] {
  const found = new Map<string, Pick<Claim, 'spans' | 'text'>>();
  for (const { spans, text } of one.answers.flatMap((answer) => answer.claims)) {
    const key = JSON.stringify(spans);
    if (!found.has(key)) found.set(key, { spans, text });
  }
  return [...found.values()];
}

/** The mention kept by choosing a concept, or `null` for NIL, for some boundaries. */
export function keepConcept(spans: Span[], concept: string | null): KeptMention[] {
  return [{ spans, concept, is_nil: concept === null }];
}

/** Whether the answers differ in their boundaries. */
export function boundariesDiffer(one: Disagreement): boolean {
  return boundariesOf(one).length > 1;
}

/** The annotators of an answer: `ada, bob and cyd`. */
export function annotatorNames(answer: Answer): string {
  const names = answer.people.map((one) => one.name);
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** An answer in words. */
export function answerText(answer: Answer): string {
  if (!answer.claims.length) return 'not a mention';
  return answer.claims.map((claim) => claim.concept?.name ?? 'no matching concept').join(' and ');
}
