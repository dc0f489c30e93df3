// Types of the HTTP API, from `schema.ts`, which is generated from the OpenAPI document. Offsets are half-open, in Unicode code points.
// Only what the document leaves open is written here: evidence, settings of a training, names of strategies.

import type { components } from './schema';

type Schemas = components['schemas'];

/** A response. The server sends every field; one without a value is null, where the schema also allows leaving it out. */
type Response<T> = T extends Span ? T : T extends (infer Item)[] ? Response<Item>[] : T extends object ? { [Key in keyof T]-?: Response<T[Key]> } : T;

/** The response of this schema. */
type Served<Name extends keyof Schemas> = Response<Schemas[Name]>;

/** A type with some fields replaced. */
type With<T, Fields> = Omit<T, keyof Fields> & Fields;

export type Span = [number, number];

// Linking.

export type Candidate = Served<'CandidateRow'>;

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
  sense_of?: string;
  definitions?: { short: string; long: string; span: Span }[];
  coordinated?: boolean;
  threshold?: number;
  candidates?: ExplainedCandidate[];
}

export type LinkAnnotation = With<Schemas['AnnotationOut'], { explanation?: Explanation }>;
export type LinkedDocument = With<Schemas['LinkedOut'], { annotations: LinkAnnotation[] }>;

// The terminology.

export type Concept = Served<'Concept'>;
export type SearchResult = Served<'Hit'>;
export type ConceptRef = Served<'Named'>;
export type ConceptPage = Served<'ConceptPage'>;
export type PickerCandidate = Served<'Choice'>;
export type TreeNode = Served<'TreeNode'>;
export type TreeLevel = Served<'TreeLevel'>;
/** Which concepts a search finds. */
export interface ConceptFilter {
  type?: string | null;
  under?: string | null;
}
export type LintCheck = Served<'LintCheck'>;
export type Lint = Served<'LintOut'>;

// Accounts.

export type Role = Schemas['Role'];
export type User = Served<'Person'>;
export type TokenRow = Served<'TokenRow'>;
export type About = Served<'About'>;

// Projects and documents.

export const STRATEGIES = ['least-confident', 'margin', 'recognition', 'diversity', 'random'] as const;
export type Strategy = (typeof STRATEGIES)[number];

export type Project = With<Served<'Project'>, { strategy: Strategy }>;
export type CopyContent = Schemas['CopyContent'];
export interface ProjectFields {
  name: string;
  description?: string;
  guideline?: string;
  scope?: Schemas['NewScope'];
}
export type Problem = Served<'Problem'>;
export type ImportReport = Served<'ImportReport'>;
export type DocumentRow = Served<'DocumentRow'>;
export type MetadataEntry = Served<'MetadataEntry'>;
export type DocumentState = 'all' | 'open' | 'finished' | 'commented' | 'held_out';
/** What a list of documents has, and its order. */
export interface DocumentFilter {
  state: DocumentState;
  q: string;
  sort: string;
  order: string;
  meta: string;
}
export type QueueRow = Served<'QueueRow'>;
export type Source = Schemas['Source'];
export type MarkState = Schemas['State'];
export type Mark = Served<'Mark'>;
export type MentionContext = Schemas['MentionContext'];
export type Comment = Served<'Comment'>;
export type AnnotatedDocument = Served<'DocumentOut'>;
export type HistoryEvent = Served<'HistoryRow'>;

// Decisions.

/** A mention kept when a disagreement is resolved. */
export type KeptMention = Schemas['Keep'];
export type Decision = Schemas['Decision'];
export type DecisionAnswer = Served<'Decided'>;
export type IdenticalMention = Served<'IdenticalMention'>;

// Disagreements and statistics.

export type Claim = Served<'ClaimOut'>;
export type Answer = Served<'AnswerOut'>;
export type Disagreement = Served<'Disagreement'>;
export type ConflictGroup = Served<'ConflictGroup'>;
export type ConflictAnswer = Served<'ConflictAnswer'>;
export type ConflictDecision = Schemas['ConflictDecision'];
export type Agreement = Served<'Agreement'>;
export type ModelScores = Schemas['DevFigures'];
export type Stats = With<Served<'Stats'>, { models: With<Served<'ModelFigures'>, { dev: ModelScores | null }>[] }>;
export type TimeRow = Served<'SpeedRow'>;
export type TimeStats = Served<'AnnotationSpeed'>;

// Jobs and models.

export interface TrainingSettings {
  steps?: number;
  hold_out?: number;
  from?: 'current' | 'base';
}

export type JobState = Schemas['JobState'];
export type Job = With<Served<'Job'>, { kind: Schemas['JobKind']; settings: TrainingSettings | null }>;
export type TrainingPlan = Served<'TrainingPlan'>;
export type Model = With<Served<'Model'>, { dev: ModelScores | null }>;
export type ChangedDocument = Served<'ChangedDocument'>;
export type ChangeKind = Schemas['ChangeKind'];
export type PredictedConcept = Served<'Prediction'>;
export type ChangedMark = Served<'ChangedMark'>;
export type ChangedDocuments = Served<'ChangedDocuments'>;
export type DocumentChanges = Served<'DocumentChanges'>;
export type MentionRow = Served<'MentionRow'>;
export type MentionPage = Served<'MentionPage'>;

// Blind annotation.

export type Assignments = Served<'Assignments'>;
export type NewAssignments = Schemas['NewAssignments'];

// Proposals for the terminology.

export type Proposal = Served<'Proposal'>;
export type NewProposal = With<Schemas['NewProposal'], { scope?: Schemas['SynonymScope'] }>;
export type Proposed = Served<'Proposed'>;
export type SynonymScope = Schemas['SynonymScope'];

// Review by concept.

export type PredictionGroup = Served<'PredictionGroup'>;
export type PredictionGroups = Served<'PredictionGroups'>;
export type GroupMention = Served<'GroupMention'>;
export type GroupDecision = Schemas['GroupDecision'];
export type GroupDecided = Served<'GroupDecided'>;
