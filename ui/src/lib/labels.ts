// Labels that several pages share.

import type { ProjectTab } from './routes';
import type { Job, JobState, Strategy } from './types';

/** The sections of a project. */
export const PROJECT_TABS: [ProjectTab, string][] = [
  ['queue', 'Queue'],
  ['review', 'Review'],
  ['documents', 'Documents'],
  ['import', 'Import'],
  ['jobs', 'Predict and train'],
  ['assignment', 'Assignment'],
  ['disagreements', 'Disagreements'],
  ['proposals', 'Proposals'],
  ['dashboard', 'Dashboard'],
  ['members', 'Members'],
];

export const STRATEGY_TEXT: Record<Strategy, string> = {
  'least-confident': 'Least confident first',
  margin: 'Smallest margin between top two',
  recognition: 'Uncertain mention boundaries',
  diversity: 'Most different from annotated (diversity)',
  random: 'Random order',
};

/** What annotators read when nothing is left to do. */
export const ALL_FINISHED = 'All your documents are finished. Thank you.';

/** The source of a mention. */
export const SOURCE_TEXT: Record<string, string> = { GOLD: 'gold', USER: 'reviewed', PRED: 'predicted' };

/** Kinds of decisions. */
export const DECISION_TEXT: Record<string, string> = {
  add: 'added',
  accept: 'accepted',
  reject: 'rejected',
  concept: 'relinked',
  nil: 'NIL',
  unsure: 'unsure',
  spans: 'boundaries',
  type: 'type',
  context: 'context',
  delete: 'deleted',
  settle: 'resolved',
  finish: 'finished',
};

export const JOB_TEXT: Record<JobState, string> = {
  NEW: 'queued',
  QUEUED: 'queued',
  RUNNING: 'running',
  SUCCEEDED: 'done',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
};

export const JOB_KIND_TEXT: Record<Job['kind'], string> = { predict: 'Prediction', train: 'Training' };

/** Whether a job is queued or running. */
export const isActive = (job: Job): boolean => ['NEW', 'QUEUED', 'RUNNING'].includes(job.state);

/** The share of complete documents that is held out; one in so many. */
export const HOLD_OUT_TEXT: [number, string][] = [
  [10, '10 %'],
  [3, '33 %'],
  [2, '50 %'],
  [0, 'none (no scores)'],
];

/** Formats of an import; `auto` detects one by file name and content. */
export const IMPORT_FORMATS: [string, string][] = [
  ['auto', 'Detect automatically'],
  ['text', 'Plain text'],
  ['list', 'List, one document per line'],
  ['jsonl', 'JSONL'],
  ['pubtator', 'PubTator'],
  ['bioc-xml', 'BioC XML'],
  ['bioc-json', 'BioC JSON'],
  ['brat', 'brat (.zip)'],
  ['conll', 'CoNLL'],
  ['pubmed-xml', 'PubMed XML'],
  ['jats', 'JATS XML (PMC)'],
  ['csv', 'CSV or TSV table'],
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
