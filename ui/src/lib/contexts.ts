// Contexts of a mention: negated, possible, historical, hypothetical, or about a relative.

import type { Action } from './keys';
import type { MentionContext } from './types';

export interface ContextRow {
  value: MentionContext;
  /** Shown after the mention in the text. */
  short: string;
  action: Action;
}

export const CONTEXTS: ContextRow[] = [
  { value: 'negated', short: 'neg', action: 'negated' },
  { value: 'possible', short: 'poss', action: 'possible' },
  { value: 'historical', short: 'hist', action: 'historical' },
  { value: 'hypothetical', short: 'hyp', action: 'hypothetical' },
  { value: 'family', short: 'fam', action: 'family' },
];

const EXCLUDES: Partial<Record<MentionContext, MentionContext>> = { negated: 'possible', possible: 'negated', historical: 'hypothetical', hypothetical: 'historical' };

/** The contexts with one turned on or off; the one that it excludes is turned off. */
export function toggled(contexts: MentionContext[], value: MentionContext): MentionContext[] {
  if (contexts.includes(value)) return contexts.filter((one) => one !== value);
  const kept = contexts.filter((one) => one !== EXCLUDES[value]);
  return CONTEXTS.map((row) => row.value).filter((one) => one === value || kept.includes(one));
}

/** The contexts as shown after a mention. */
export const contextLabel = (contexts: MentionContext[]): string => CONTEXTS.filter((row) => contexts.includes(row.value)).map((row) => row.short).join(' ');
