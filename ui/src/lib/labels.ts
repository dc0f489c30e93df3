// Words that several pages use for the same thing.

import type { JobState, Strategy } from './types';

export const STRATEGY_TEXT: Record<Strategy, string> = {
  'least-confident': 'least confident first',
  margin: 'two concepts close together',
  recognition: 'mention or not?',
  diversity: 'unlike what is decided',
  random: 'random order',
};

export const JOB_TEXT: Record<JobState, string> = {
  NEW: 'new',
  QUEUED: 'waiting',
  RUNNING: 'running',
  SUCCEEDED: 'done',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
};

/** Which share of the complete documents is held out. */
export const HOLD_OUT_TEXT: [number, string][] = [
  [10, 'one of ten'],
  [3, 'one of three'],
  [2, 'every second'],
  [0, 'none'],
];

/** What can be chosen for an import; `auto` looks at name and content. */
export const IMPORT_FORMATS: [string, string][] = [
  ['auto', 'Detect automatically'],
  ['text', 'plain text'],
  ['jsonl', 'JSONL'],
  ['pubtator', 'PubTator'],
  ['bioc-xml', 'BioC XML'],
  ['bioc-json', 'BioC JSON'],
  ['brat', 'brat (archive)'],
  ['conll', 'CoNLL'],
  ['pubmed-xml', 'PubMed XML'],
  ['texoo', 'TeXoo'],
];

export const EXPORT_FORMATS: [string, string][] = [
  ['pubtator', 'PubTator'],
  ['bioc-json', 'BioC JSON'],
  ['bioc-xml', 'BioC XML'],
  ['brat', 'brat'],
  ['jsonl', 'JSONL'],
  ['conll', 'CoNLL'],
  ['texoo', 'TeXoo'],
];
