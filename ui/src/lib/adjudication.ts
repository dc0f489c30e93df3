// How a disagreement is settled: which key means what, and what a choice says stands there.

import type { Answer, Claim, Disagreement, KeptMention, Span } from './types';

export type AdjudicationAction = 'next' | 'previous' | 'pick' | 'search' | 'none' | 'no-mention' | 'edges' | 'open' | 'undo';

export const ADJUDICATION_KEYS: { keys: string[]; action: AdjudicationAction; what: string }[] = [
  { keys: ['j'], action: 'next', what: 'next' },
  { keys: ['k'], action: 'previous', what: 'previous' },
  { keys: ['1', '2', '3', '4', '5', '6', '7', '8', '9'], action: 'pick', what: 'take this answer' },
  { keys: ['/'], action: 'search', what: 'another concept' },
  { keys: ['n'], action: 'none', what: 'no concept fits' },
  { keys: ['x'], action: 'no-mention', what: 'no mention' },
  { keys: ['e'], action: 'edges', what: 'other edges' },
  { keys: ['Enter'], action: 'open', what: 'open the document there' },
  { keys: ['u'], action: 'undo', what: 'undo' },
];

/** What a key means, and which answer it takes (from 0). */
export function adjudicationAction(key: string): { action: AdjudicationAction; row: number } | null {
  const found = ADJUDICATION_KEYS.find((row) => row.keys.includes(key));
  return found ? { action: found.action, row: found.action === 'pick' ? Number(key) - 1 : 0 } : null;
}

/** What tells a disagreement from others while its answers change. */
export const disagreementKey = (one: Disagreement): string => `${one.document}.${one.marks[0]}`;

/** What stands there if an answer is taken. */
export function keepAnswer(answer: Answer): KeptMention[] {
  return answer.claims.map((claim) => ({ spans: claim.spans, concept: claim.concept?.id ?? null, is_nil: !claim.concept }));
}

/** The edges that were claimed, each once, those of the first answer first. */
export function boundariesOf(one: Disagreement): Pick<Claim, 'spans' | 'text'>[] {
  const found = new Map<string, Pick<Claim, 'spans' | 'text'>>();
  for (const { spans, text } of one.answers.flatMap((answer) => answer.claims)) {
    const key = JSON.stringify(spans);
    if (!found.has(key)) found.set(key, { spans, text });
  }
  return [...found.values()];
}

/** What stands there if a concept, or none, is chosen with some edges. */
export function keepConcept(spans: Span[], concept: string | null): KeptMention[] {
  return [{ spans, concept, is_nil: concept === null }];
}

/** Whether the answers differ in more than their concepts. */
export function boundariesDiffer(one: Disagreement): boolean {
  return boundariesOf(one).length > 1;
}

/** The people of an answer in a row: `ada, bob and cyd`. */
export function annotatorNames(answer: Answer): string {
  const names = answer.people.map((one) => one.name);
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** An answer in words. */
export function answerText(answer: Answer): string {
  if (!answer.claims.length) return 'no mention';
  return answer.claims.map((claim) => claim.concept?.name ?? 'no concept').join(' and ');
}
