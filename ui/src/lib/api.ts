// Client of the HTTP API. Every failure is an ApiError, so callers check its kind and never parse messages.

import { capital } from './format';
import type * as t from './types';

export type Failure = 'offline' | 'refused' | 'conflict' | 'login' | 'forbidden' | 'missing' | 'busy' | 'server';

/** A failed request, with a hint how to fix it. */
export class ApiError extends Error {
  constructor(
    readonly kind: Failure,
    message: string,
    readonly hint: string | null = null,
    readonly status = 0,
    readonly retryAfter = 0,
    readonly body: unknown = null,
  ) {
    super(message);
  }

  /** Whether a retry may succeed. */
  get isTemporary(): boolean {
    return this.kind === 'offline' || this.kind === 'busy' || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

type Fetch = typeof fetch;
type Query = Record<string, string | number | null | undefined>;

export class Api {
  constructor(
    private readonly fetch: Fetch = globalThis.fetch.bind(globalThis),
    private readonly base = '/api/v1',
    /** Called when the server requires signing in. */
    public onLogin: () => void = () => {},
  ) {}

  about = () => this.get<t.About>('/about');
  login = (name: string, password: string) => this.post<{ user: t.User }>('/login', { name, password });
  logout = () => this.post<unknown>('/logout', {});
  accounts = () => this.get<{ people: t.User[] }>('/people');
  addAccount = (person: { name: string; password: string; role: t.Role }) => this.post<t.User>('/people', person);
  changeAccount = (id: number, fields: { role?: t.Role; password?: string; is_active?: boolean }) =>
    this.send<t.User>('PATCH', `/people/${id}`, JSON.stringify(fields), 'application/json');
  members = (p: number) => this.get<{ people: t.User[] }>(`/projects/${p}/people`);
  addMember = (p: number, id: number) => this.post<{ people: t.User[] }>(`/projects/${p}/people`, { id });
  removeMember = (p: number, id: number) => this.send<{ people: t.User[] }>('DELETE', `/projects/${p}/people/${id}`, null, null);
  changePassword = (old: string, fresh: string) => this.post<unknown>('/password', { old, new: fresh });
  tokens = () => this.get<{ tokens: t.TokenRow[] }>('/tokens');
  createToken = (name: string, days: number | null) => this.post<{ name: string; token: string }>('/tokens', days === null ? { name } : { name, days });
  revokeToken = (id: string) => this.send<unknown>('DELETE', `/tokens/${encodeURIComponent(id)}`, null, null);

  link = (text: string, options: { top_k?: number; min_score?: number; nested?: boolean; explain?: boolean; project?: number }, signal?: AbortSignal) =>
    this.post<t.LinkedDocument>('/link', { text, ...options }, signal);
  search = (q: string, top_k: number, signal?: AbortSignal, { type, under }: t.ConceptFilter = {}) =>
    this.get<{ results: t.SearchResult[] }>(`/kb/search${query({ q, top_k, type, under })}`, signal);
  /** The concepts below one, or those at the top of the hierarchy. */
  tree = (under: string | null = null) => this.get<t.TreeLevel>(`/kb/tree${query({ under })}`);
  concept = (id: string, signal?: AbortSignal) => this.get<t.ConceptPage>(`/kb/concepts/${encodeURIComponent(id)}`, signal);

  projects = () => this.get<{ projects: t.Project[] }>('/projects');
  project = (p: number) => this.get<t.Project>(`/projects/${p}`);
  types = () => this.get<{ types: string[] }>('/kb/types');
  createProject = (fields: t.ProjectFields) => this.post<t.Project>('/projects', fields);
  /** Creates a project with ten documents and predictions. */
  createSample = () => this.post<t.Project>('/projects/sample', {});
  changeProject = (p: number, fields: Partial<t.ProjectFields> & { strategy?: t.Strategy; is_archived?: boolean }) =>
    this.send<t.Project>('PATCH', `/projects/${p}`, JSON.stringify(fields), 'application/json');
  copyProject = (p: number, name: string, content: t.CopyContent) => this.post<t.Project>(`/projects/${p}/copies`, { name, content });
  deleteProject = (p: number) => this.send<unknown>('DELETE', `/projects/${p}`, null, null);
  importFile = (p: number, body: Blob | string, options: { format: string; filename: string; annotations?: string; offsets?: string; existing?: string; text_column?: string | undefined; id_column?: string | undefined }) =>
    this.send<t.ImportReport>('POST', `/projects/${p}/import${query(options)}`, body, 'application/octet-stream');
  exportUrl = (p: number, format: string, sources: string[]) =>
    `${this.base}/projects/${p}/export${query({ format, sources: sources.join(',') })}`;
  exportLosses = (p: number, format: string, sources: string[], signal?: AbortSignal) =>
    this.get<{ lines: string[] }>(`/projects/${p}/export/losses${query({ format, sources: sources.join(',') })}`, signal);
  documents = (p: number, { state, q, sort, order, meta }: t.DocumentFilter, cursor: string | null = null, limit = 50) =>
    this.get<{ documents: t.DocumentRow[]; next_cursor: string | null }>(`/projects/${p}/documents${query({ cursor, limit, state, q: q || undefined, sort, order, meta: meta || undefined })}`);
  setMetadata = (d: number, metadata: t.MetadataEntry[]) => this.send<t.DocumentRow>('PATCH', `/documents/${d}`, JSON.stringify({ metadata }), 'application/json');
  queue = (p: number, strategy: string, limit = 50) =>
    this.get<{ strategy: string; documents: t.QueueRow[] }>(`/projects/${p}/queue${query({ strategy, limit })}`);
  disagreements = (p: number, cursor: string | null = null, limit = 50, group: string | null = null) =>
    this.get<{ disagreements: t.Disagreement[]; next_cursor: string | null; n_open: number }>(`/projects/${p}/disagreements${query({ cursor, limit, group })}`);
  conflictGroups = (p: number) => this.get<{ groups: t.ConflictGroup[] }>(`/projects/${p}/disagreements/groups`);
  resolveGroup = (p: number, decision: t.ConflictDecision) => this.post<t.GroupDecided>(`/projects/${p}/disagreements/decisions`, decision);
  assignments = (p: number, cursor: string | null = null) => this.get<t.Assignments>(`/projects/${p}/assignments${query({ cursor })}`);
  assign = (p: number, fields: t.NewAssignments) => this.post<t.Assignments>(`/projects/${p}/assignments`, fields);
  withdrawAssignments = (p: number, person: number) => this.send<t.Assignments>('DELETE', `/projects/${p}/assignments/${person}`, null, null);
  proposals = (p: number) => this.get<{ proposals: t.Proposal[] }>(`/projects/${p}/proposals`);
  propose = (p: number, fields: t.NewProposal) => this.post<t.Proposed>(`/projects/${p}/proposals`, fields);
  withdrawProposal = (p: number, id: number) => this.send<unknown>('DELETE', `/projects/${p}/proposals/${id}`, null, null);
  proposalsUrl = (p: number, format: 'sssom' | 'tsv') => `${this.base}/projects/${p}/proposals/file${query({ format })}`;
  groups = (p: number, q = '', cursor: string | null = null, spread = false, limit = 100) =>
    this.get<t.PredictionGroups>(`/projects/${p}/groups${query({ q: q || undefined, spread: spread ? '1' : undefined, cursor, limit })}`);
  groupMentions = (p: number, text: string, concept: string, cursor: string | null = null, limit = 200) =>
    this.get<{ mentions: t.GroupMention[]; next_cursor: string | null }>(`/projects/${p}/groups/mentions${query({ text, concept, cursor, limit })}`);
  decideGroup = (p: number, decision: t.GroupDecision) => this.post<t.GroupDecided>(`/projects/${p}/groups/decisions`, decision);
  undoGroup = (p: number, batch: number) => this.post<t.GroupDecided>(`/projects/${p}/groups/undo`, { batch });
  stats = (p: number) => this.get<t.Stats>(`/projects/${p}/stats`);

  document = (d: number, all = false) => this.get<t.AnnotatedDocument>(`/documents/${d}${all ? '?all=1' : ''}`);
  renameDocument = (d: number, external_id: string) => this.send<t.DocumentRow>('PATCH', `/documents/${d}`, JSON.stringify({ external_id }), 'application/json');
  deleteDocument = (d: number) => this.send<unknown>('DELETE', `/documents/${d}`, null, null);
  decide = (d: number, version: number | null, client_id: string, decisions: t.Decision[]) =>
    this.post<t.DecisionAnswer>(`/documents/${d}/decisions`, { version, client_id, decisions });
  undo = (d: number, client_id: string) => this.post<t.DecisionAnswer>(`/documents/${d}/undo`, { client_id });
  redo = (d: number, client_id: string) => this.post<t.DecisionAnswer>(`/documents/${d}/redo`, { client_id });
  history = (d: number) => this.get<{ events: t.HistoryEvent[] }>(`/documents/${d}/history`);
  comment = (d: number, text: string, mark: number | null) =>
    this.post<t.Comment>(`/documents/${d}/comments`, mark === null ? { text } : { text, mark });
  reply = (d: number, text: string, parent: number) => this.post<t.Comment>(`/documents/${d}/comments`, { text, parent });
  resolveThread = (d: number, id: number, is_resolved: boolean) =>
    this.send<t.Comment>('PATCH', `/documents/${d}/comments/${id}`, JSON.stringify({ is_resolved }), 'application/json');
  identicalMentions = (p: number, mark: number, scope: 'document' | 'project') =>
    this.post<{ matches: t.IdenticalMention[]; applied: number }>(`/projects/${p}/identical-mentions`, { mark, scope, apply: false });
  /** Applies the decision on a mark to identical mentions; `version` is the version of its document. */
  applyToIdentical = (p: number, mark: number, scope: 'document' | 'project', version: number) =>
    this.post<{ matches: t.IdenticalMention[]; applied: number }>(`/projects/${p}/identical-mentions`, { mark, scope, apply: true, version });
  candidates = (d: number, place: { mark: number } | { start: number; end: number }, q: string, signal?: AbortSignal, { type, under }: t.ConceptFilter = {}) =>
    this.get<{ candidates: t.PickerCandidate[] }>(`/documents/${d}/candidates${query({ ...place, q: q || undefined, type, under })}`, signal);

  jobs = (p: number) => this.get<{ jobs: t.Job[] }>(`/projects/${p}/jobs`);
  job = (j: number) => this.get<t.Job>(`/jobs/${j}`);
  startJob = (p: number, kind: 'predict' | 'train', settings: t.TrainingSettings | null = null) =>
    this.post<t.Job>(`/projects/${p}/jobs`, settings ? { kind, settings } : { kind });
  trainingPlan = (p: number, settings: t.TrainingSettings, signal?: AbortSignal) => this.get<t.TrainingPlan>(`/projects/${p}/training${query({ ...settings })}`, signal);
  cancelJob = (j: number) => this.post<t.Job>(`/jobs/${j}/cancel`, {});
  models = (p: number | null) => this.get<{ models: t.Model[] }>(`/models${query({ project: p })}`);
  useModel = (p: number, m: number) => this.post<unknown>(`/projects/${p}/models/${m}/use`, {});
  renameModel = (p: number, m: number, name: string) => this.send<t.Model>('PATCH', `/projects/${p}/models/${m}`, JSON.stringify({ name }), 'application/json');
  deleteModel = (p: number, m: number) => this.send<unknown>('DELETE', `/projects/${p}/models/${m}`, null, null);
  modelUrl = (p: number, m: number) => `${this.base}/projects/${p}/models/${m}/file`;
  changes = (p: number, from: number) => this.get<t.ChangedDocuments>(`/projects/${p}/changes${query({ from })}`);
  documentChanges = (d: number, from: number) => this.get<t.DocumentChanges>(`/documents/${d}/changes${query({ from })}`);
  annotationTime = (p: number) => this.get<t.TimeStats>(`/projects/${p}/annotation-speed`);
  mentions = (p: number, concept: string, cursor: string | null = null, limit = 20) =>
    this.get<t.MentionPage>(`/projects/${p}/mentions${query({ concept, cursor, limit })}`);
  similarConcepts = (id: string, top_k = 8, signal?: AbortSignal) =>
    this.get<{ concepts: t.Candidate[] }>(`/kb/concepts/${encodeURIComponent(id)}/near${query({ top_k })}`, signal);
  lint = () => this.get<t.Lint>('/kb/lint');
  /** Events of all projects; the event id is the project id. */
  eventsUrl = () => `${this.base}/events`;

  private get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return this.send<T>('GET', path, null, null, signal);
  }

  private post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.send<T>('POST', path, JSON.stringify(body), 'application/json', signal);
  }

  private async send<T>(method: string, path: string, body: BodyInit | null, type: string | null, signal?: AbortSignal): Promise<T> {
    // Browsers send this header cross-origin only with consent of the server, which prevents CSRF.
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (method !== 'GET') headers['X-Canonym'] = '1';
    if (type) headers['Content-Type'] = type;
    let response: Response;
    try {
      response = await this.fetch(this.base + path, { method, headers, body, signal: signal ?? null, credentials: 'same-origin' });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError('offline', 'cannot reach the server', 'Check that `canonym serve` is running.');
    }
    if (!response.ok) {
      const error = await failure(response);
      if (error.kind === 'login' && path !== '/login') this.onLogin();
      throw error;
    }
    if (response.status === 204) return undefined as T;
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError('server', 'invalid response from the server', null, response.status);
    }
  }
}

const KINDS: Record<number, Failure> = { 401: 'login', 403: 'forbidden', 404: 'missing', 409: 'conflict', 429: 'busy', 503: 'busy' };

async function failure(response: Response): Promise<ApiError> {
  const kind = KINDS[response.status] ?? (response.status >= 500 ? 'server' : 'refused');
  const body = (await response.json().catch(() => null)) as { error?: { message?: string; hint?: string | null } } | null;
  const message = body?.error?.message ?? `the server responded with status ${response.status}`;
  const after = Number(response.headers.get('Retry-After') ?? 0);
  return new ApiError(kind, message, body?.error?.hint ?? null, response.status, Number.isFinite(after) ? after : 0, body);
}

/** A query string; parameters without a value are left out. */
export function query(parameters: Query): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined);
  if (!given.length) return '';
  return '?' + given.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&');
}

/** The message and hint of whatever was thrown. */
export function errorText(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError && error.hint ? ` ${capital(error.hint)}` : '';
  return capital(message) + (/[.!?]$/.test(message) ? '' : '.') + hint;
}
