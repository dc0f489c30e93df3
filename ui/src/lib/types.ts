// Types of the HTTP API. Offsets are half-open, in Unicode code points.

export type Span = [number, number];

export interface Candidate {
  id: string;
  name: string;
  score: number | null;
}

export interface Contribution {
  feature: string;
  sentence: string;
  value: number;
  log_odds: number;
}

export interface ExplainedCandidate {
  id: string;
  name: string;
  scope?: string;
  how?: string;
  words?: { mention: string; name: string; how: string }[];
  only_in_mention?: string[];
  only_in_name?: string[];
  score?: number;
  log_odds?: number;
  contributions?: Contribution[];
}

export interface Explanation {
  compared?: string;
  definitions?: { short: string; long: string; span: Span }[];
  coordinated?: boolean;
  threshold?: number;
  candidates?: ExplainedCandidate[];
}

export interface LinkAnnotation {
  spans: Span[];
  text: string;
  type: string | null;
  score: number | null;
  nil: boolean;
  candidates: Candidate[];
  explanation?: Explanation;
}

export interface LinkedDocument {
  id: string;
  text: string;
  annotations: LinkAnnotation[];
}

export interface Concept {
  id: string;
  name: string;
  synonyms: string[];
  definition: string | null;
  types: string[];
}

export interface SearchResult extends Concept {
  matched: string;
  how: string;
  score: number | null;
}

export interface ConceptRef {
  id: string;
  name: string;
}

export interface ConceptPage extends Concept {
  parents: ConceptRef[];
  children: ConceptRef[];
  path: ConceptRef[];
}

export interface PickerCandidate {
  id: string;
  name: string;
  types: string[];
  definition: string | null;
  synonyms: string[];
  path: string[];
  score: number | null;
  how: string;
}

export type Role = 'admin' | 'curator' | 'annotator';

export interface User {
  id: number;
  name: string;
  role: Role;
  is_active?: boolean;
}

export interface TokenRow {
  id: string;
  name: string;
  made_at: string;
  expires_at: string | null;
}

export interface About {
  version: string;
  kb: { name: string; n_concepts: number; n_names: number; fingerprint: string };
  model: { name: string };
  user: User | null;
  needs_login: boolean;
  /** Whether this server can train; missing means yes. */
  can_train?: boolean;
}

export const STRATEGIES = ['least-confident', 'margin', 'recognition', 'diversity', 'random'] as const;
export type Strategy = (typeof STRATEGIES)[number];

export interface Project {
  id: number;
  name: string;
  description: string;
  guideline: string;
  strategy: Strategy;
  n_documents: number;
  n_finished: number;
  n_decisions: number;
  kb_fingerprint: string;
  created_at: string;
}

export interface Problem {
  line: number | null;
  document: string | null;
  message: string;
  hint: string | null;
}

export interface ImportReport {
  n_documents: number;
  n_annotations: number;
  n_skipped_documents: number;
  /** Annotations imported as predictions. */
  n_predictions: number;
  /** Annotations without a source. */
  n_unmarked: number;
  n_skipped_annotations: number;
  n_fixed: number;
  /** Kept for exports, not shown. */
  n_relations: number;
  problems: Problem[];
}

export interface DocumentRow {
  id: number;
  external_id: string;
  title: string;
  n_marks: number;
  n_open: number;
  is_finished: boolean;
  locked_by: string | null;
}

export interface QueueRow extends DocumentRow {
  confidence: number | null;
  reason: string;
}

export type Source = 'GOLD' | 'USER' | 'PRED';
export type MarkState = 'open' | 'accepted' | 'rejected';

export interface Mark {
  id: number;
  spans: Span[];
  text: string;
  type: string | null;
  source: Source;
  state: MarkState;
  concept: ConceptRef | null;
  is_nil: boolean;
  is_unsure: boolean;
  score: number | null;
  /** The model's probability of the mention, and of the link given the mention. */
  p_mention?: number | null;
  p_link?: number | null;
  candidates: Candidate[];
  disagrees: number[];
  by: string | null;
  at: string;
  model: string | null;
}

export interface Comment {
  id: number;
  mark: number | null;
  text: string;
  by: string;
  at: string;
}

export interface AnnotatedDocument {
  id: number;
  project_id: number;
  external_id: string;
  text: string;
  sections: { kind: string; start: number; end: number }[];
  version: number | null;
  is_finished: boolean;
  reason: string | null;
  marks: Mark[];
  comments: Comment[];
}

/** A mention kept when a disagreement is resolved. */
export interface KeptMention {
  spans: Span[];
  concept: string | null;
  is_nil: boolean;
}

export type Decision =
  | { kind: 'add'; spans: Span[]; type?: string; concept: string | null; is_nil?: boolean }
  | { kind: 'accept'; mark: number }
  | { kind: 'reject'; mark: number }
  | { kind: 'concept'; mark: number; concept: string }
  | { kind: 'nil'; mark: number }
  | { kind: 'unsure'; mark: number; value: boolean }
  | { kind: 'spans'; mark: number; spans: Span[] }
  | { kind: 'delete'; mark: number }
  | { kind: 'type'; mark: number; type: string }
  | { kind: 'settle'; marks: number[]; keep: KeptMention[] }
  | { kind: 'finish'; value: boolean; accepts?: number; seconds?: number };

export interface DecisionAnswer {
  version: number;
  marks: Mark[];
  removed: number[];
  events: number[];
}

export interface HistoryEvent {
  id: number;
  kind: string;
  by: string | null;
  at: string;
  what: string;
}

export interface IdenticalMention {
  document: number;
  external_id: string;
  spans: Span[];
  text: string;
  context: string;
  mark: number | null;
}

export interface Claim {
  mark: number;
  spans: Span[];
  text: string;
  concept: ConceptRef | null;
}

export interface Answer {
  people: { name: string; at: string }[];
  /** Empty for `not a mention`. */
  claims: Claim[];
}

export interface Disagreement {
  document: number;
  external_id: string;
  version: number;
  marks: number[];
  start: number;
  end: number;
  text: string;
  before: string;
  behind: string;
  answers: Answer[];
  is_reopened: boolean;
}

export interface Agreement {
  cohen_kappa: number | null;
  krippendorff_alpha: number | null;
  span_f1: number | null;
  n_both: number;
  n_several: number;
  n_people: number;
}

export interface ModelScores {
  strict_f1?: number;
  spans_f1?: number;
  accuracy?: number;
  n_documents?: number;
}

export interface Stats {
  n_documents: number;
  n_finished: number;
  by_source: Record<string, number>;
  by_type: Record<string, number>;
  by_decision: Record<string, number>;
  decisions_per_day: { day: string; n: number }[];
  seconds_per_document: { median: number; mean: number } | null;
  agreement: Agreement | null;
  models: { id: number; name: string; at: string; dev: ModelScores | null }[];
}

export type JobState = 'NEW' | 'QUEUED' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED';

export interface Job {
  id: number;
  project_id: number;
  kind: 'predict' | 'train';
  state: JobState;
  progress: number;
  message: string | null;
  error: string | null;
  started_at: string | null;
  ended_at: string | null;
  eta_seconds: number | null;
  curve: { step: number; loss: number; dev: number | null }[];
  model: number | null;
  settings?: TrainingSettings | null;
}

export interface TrainingSettings {
  steps?: number;
  hold_out?: number;
}

export interface TrainingPlan {
  n_complete: number;
  n_held_out: number;
  n_incomplete: number;
  n_silent: number;
  n_mentions: number;
  steps: number;
  least_steps: number;
  most_steps: number;
  hold_out: number;
}

export interface Model {
  id: number;
  name: string;
  project_id: number | null;
  is_current: boolean;
  made_at: string;
  parent: number | null;
  card: unknown;
  dev: ModelScores | null;
  /** The model whose held-out documents were used; scores are comparable if it is the same. */
  dev_on: number | null;
}

export interface ChangedDocument {
  id: number;
  external_id: string;
  added: number;
  removed: number;
  changed: number;
}

export type ChangeKind = 'added' | 'removed' | 'relinked';

export interface PredictedConcept {
  concept: ConceptRef | null;
  score: number | null;
}

export interface ChangedMark {
  mark: number;
  change: ChangeKind;
  spans: Span[];
  text: string;
  type: string;
  before: PredictedConcept | null;
  after: PredictedConcept | null;
}

export interface DocumentChanges {
  document: number;
  external_id: string;
  text: string;
  sections: { kind: string; start: number; end: number }[];
  model_before: string | null;
  model_after: string | null;
  marks: ChangedMark[];
  n_same: number;
}

export interface MentionRow {
  document: number;
  external_id: string;
  mark: number;
  spans: Span[];
  text: string;
  before: string;
  behind: string;
  source: Source;
  state: MarkState;
}

export interface MentionPage {
  mentions: MentionRow[];
  next_cursor: string | null;
  n_mentions: number;
  n_documents: number;
}

export interface LintCheck {
  check: string;
  what: string;
  n_found: number | null;
  is_note: boolean;
  examples: { ids: string[]; name: string; note: string }[];
}

export interface Lint {
  is_ready: boolean;
  seconds: number | null;
  checks: LintCheck[];
}

export interface TimeRow {
  name: string | null;
  n: number;
  seconds: { median: number; mean: number };
  per_thousand: number;
}

export interface TimeStats {
  all: { median: number; mean: number } | null;
  n_measured: number;
  n_estimated: number;
  people: TimeRow[];
  models: TimeRow[];
  points: { document: number; external_id: string; by: string; at: string; seconds: number; per_thousand: number; model: string | null; is_measured: boolean }[];
}
