// Projects, documents, marks and events in memory. Each decision stores the marks before and after it, for undo and redo.

import { concepts, link, pathOf, search, candidatesOf, pickerRow as rowOf } from './kb.mjs';

export const projects = new Map();
export const documents = new Map();
export const models = new Map();
let nextId = 1;
export const newId = () => nextId++;
export const now = () => new Date().toISOString();
/** The current user. Signing in changes it for everyone: the mock has one session. */
export const me = { id: 1, name: 'local', role: 'admin', is_active: true };

models.set(1, { id: newId(), name: 'starter', project_id: null, is_current: true, made_at: now(), parent: null, card: 'The embedded model.', dev: { strict_f1: 0.71, spans_f1: 0.8, accuracy: 0.84, n_documents: 2, test_set: 'none' } });

export class Failure extends Error {
  constructor(status, code, message, hint = null) {
    super(message);
    Object.assign(this, { status, code, hint });
  }
}

export function createProject({ name, description = '', guideline = '', scope = null }) {
  if (!name?.trim()) throw new Failure(400, 'bad_input', 'the project name is empty');
  const id = newId();
  projects.set(id, { id, name, description, guideline, scope: { types: [], branches: [] }, is_archived: false, parent: null, annotator: null, strategy: 'least-confident', kb_fingerprint: '9f31c2', created_at: now() });
  if (scope) setScope(id, scope);
  return projectRow(id);
}

/** The documents of a project that match a query, sorted. */
export function listDocuments(p, query) {
  const [name, ...rest] = (query.get('meta') ?? '').split(':');
  const [wanted, q, sort] = [query.get('state') ?? 'all', (query.get('q') ?? '').toLowerCase(), query.get('sort') ?? 'import'];
  const fits = (doc, row) =>
    (wanted === 'all' || (wanted === 'commented' ? row.n_threads > 0 : wanted === 'held_out' ? row.is_held_out : row.is_finished === (wanted === 'finished'))) &&
    (!q || [doc.external_id, doc.text, ...row.metadata.map((one) => one.value)].some((text) => text.toLowerCase().includes(q))) &&
    (!name || row.metadata.some((one) => one.name === name && one.value === rest.join(':')));
  const keys = { import: (doc) => doc.id, id: (doc) => doc.external_id.toLowerCase(), open: (_, row) => row.n_open, mentions: (_, row) => row.n_marks, changed: (doc) => doc.version, length: (doc) => doc.text.length };
  const valueOf = keys[sort] ?? ((_, row) => row.metadata.find((one) => `meta:${one.name}` === sort)?.value ?? '\uffff');
  const way = query.get('order') === 'desc' ? -1 : 1;
  const all = docsOf(p).map((doc) => ({ doc, row: row(doc) })).filter(({ doc, row }) => fits(doc, row));
  const keyed = all.map(({ doc, row }) => ({ row, key: valueOf(doc, row) }));
  return keyed.sort((a, b) => (a.key < b.key ? -way : a.key > b.key ? way : way * (a.row.id - b.row.id))).map((one) => one.row);
}

/** Copies a project, with its documents or annotations. */
export function copyProject(p, { name, content = 'settings' }) {
  const { description, guideline, scope, strategy } = projects.get(p);
  const made = createProject({ name, description, guideline });
  Object.assign(projects.get(made.id), { scope, strategy });
  for (const doc of content === 'settings' ? [] : docsOf(p)) {
    const marks = content === 'annotations' ? doc.marks.map((mark) => ({ ...structuredClone(mark), id: newId() })) : [];
    const id = newId();
    documents.set(id, { ...doc, id, project_id: made.id, version: 0, marks, is_finished: content === 'annotations' && doc.is_finished, comments: [], events: [], undone: [], done: new Map() });
  }
  return projectRow(made.id);
}

/** Sets the scope and removes predictions outside of it. */
export function setScope(p, { types = [], branches = [] }) {
  projects.get(p).scope = { types, branches: branches.map((id) => ({ id, name: concepts.get(id).name })) };
  for (const doc of docsOf(p)) doc.marks = doc.marks.filter((mark) => !isOpen(mark) || inScope(p, mark.concept?.id));
}

/** Whether a concept belongs to the scope of a project. */
export function inScope(p, id) {
  const { types, branches } = projects.get(p).scope;
  const concept = concepts.get(id);
  if (!types.length && !branches.length) return true;
  if (!concept) return false;
  const path = pathOf(id).map((one) => one.id);
  return (!types.length || concept.types.some((type) => types.includes(type))) && (!branches.length || branches.some((one) => path.includes(one.id)));
}

export const docsOf = (p) => [...documents.values()].filter((doc) => doc.project_id === p);

export function projectRow(p) {
  const project = projects.get(p);
  if (!project) throw new Failure(404, 'not_found', `project ${p} not found`);
  const docs = docsOf(p);
  return { ...project, n_documents: docs.length, n_finished: docs.filter((doc) => doc.is_finished).length, n_decisions: docs.reduce((sum, doc) => sum + doc.events.length, 0) };
}

export function addDocuments(p, read, { isGold = true, renames = false } = {}) {
  const problems = [...read.problems];
  let nDocuments = 0;
  let nAnnotations = 0;
  for (const one of read.documents) {
    const isThere = (id) => docsOf(p).some((doc) => doc.external_id === id);
    for (let row = 2, id = one.external_id; renames && isThere(one.external_id); row++) one.external_id = `${id}-${row}`;
    if (isThere(one.external_id)) {
      problems.push({ line: null, document: one.external_id, message: `document “${one.external_id}” already exists in this project`, hint: 'import it under a new ID' });
      continue;
    }
    const id = newId();
    const marks = one.annotations.map((annotation) => newMark(one.text, { ...annotation, source: isGold ? 'GOLD' : 'PRED', state: isGold ? 'accepted' : 'open', is_nil: annotation.concept === null }));
    documents.set(id, { id, project_id: p, external_id: one.external_id, text: one.text, sections: one.sections, version: 0, is_finished: false, marks, metadata: one.metadata ?? [], imported_at: now(), comments: [], events: [], undone: [], done: new Map() });
    nDocuments++;
    nAnnotations += marks.length;
  }
  return { n_documents: nDocuments, n_annotations: nAnnotations, n_skipped_documents: read.documents.length - nDocuments, n_predictions: isGold ? 0 : nAnnotations, n_unmarked: nAnnotations, n_skipped_annotations: 0, n_fixed: 0, n_relations: 0, problems };
}

export function newMark(text, fields) {
  const points = [...text];
  const concept = fields.concept ? { id: fields.concept, name: concepts.get(fields.concept)?.name ?? fields.concept } : null;
  const words = fields.spans.map(([from, to]) => points.slice(from, to).join('')).join(' ');
  return { id: newId(), type: '', state: 'accepted', source: 'USER', is_nil: false, is_unsure: false, contexts: [], is_spread: false, score: null, p_mention: null, p_link: null, candidates: [], disagrees: [], by: null, at: now(), model: null, ...fields, text: words, concept };
}

export function document(d) {
  const doc = documents.get(d);
  if (!doc) throw new Failure(404, 'not_found', `document ${d} not found`);
  return doc;
}

const listed = (mark) => mark.state !== 'rejected' && mark.state !== 'deleted';
const isOpen = (mark) => mark.state === 'open' && mark.source === 'PRED';

export function shown(doc, all = false) {
  const { events, undone, done, finishedWith, imported_at, ...rest } = doc;
  return { ...rest, agreed: {}, reason: reasonOf(doc).reason, marks: doc.marks.filter((mark) => all || listed(mark)) };
}

export function row(doc) {
  const marks = doc.marks.filter(listed);
  return { id: doc.id, external_id: doc.external_id, title: [...doc.text.split('\n')[0]].slice(0, 80).join(''), metadata: doc.metadata ?? [], headings: {}, n_marks: marks.length, n_open: marks.filter(isOpen).length, n_threads: doc.comments.filter((one) => !one.parent && !one.resolved_by).length, is_finished: doc.is_finished, is_held_out: doc.is_held_out ?? false, locked_by: null };
}

const digits = (score) => score.toFixed(2).replace(/^0/, '');

export function reasonOf(doc) {
  const open = doc.marks.filter((mark) => listed(mark) && isOpen(mark));
  if (!open.length) return { confidence: null, reason: doc.marks.some((mark) => mark.model) ? 'nothing left to decide' : 'no predictions yet' };
  const least = open.reduce((a, b) => (a.score <= b.score ? a : b));
  const [one, two] = least.candidates;
  const reason = two ? `Uncertain: “${least.text}” – ${one.name} ${digits(one.score)} vs ${two.name} ${digits(two.score)}` : `Single candidate for “${least.text}”`;
  return { confidence: least.score, reason };
}

export function queue(p, strategy) {
  const rows = docsOf(p).filter((doc) => !doc.is_finished).map((doc) => ({ ...row(doc), ...reasonOf(doc) }));
  if (strategy !== 'random') rows.sort((a, b) => (a.confidence ?? 2) - (b.confidence ?? 2));
  return rows;
}

/** Applies a change to a document as an event that can be undone. */
function record(doc, { kind, what, decisions }, clientId, change) {
  if (doc.done.has(clientId)) return doc.done.get(clientId);
  const before = { marks: structuredClone(doc.marks), is_finished: doc.is_finished };
  change();
  const after = { marks: structuredClone(doc.marks), is_finished: doc.is_finished };
  const id = newId();
  doc.events.push({ id, kind, by: me.name, at: now(), what: what(), decisions, before, after });
  doc.version = id;
  doc.undone = [];
  return answer(doc, before, after, clientId, id);
}

function answer(doc, before, after, clientId, event) {
  const was = new Map(before.marks.map((mark) => [mark.id, JSON.stringify(mark)]));
  const marks = after.marks.filter((mark) => listed(mark) && was.get(mark.id) !== JSON.stringify(mark));
  const stays = new Set(after.marks.filter(listed).map((mark) => mark.id));
  const removed = before.marks.filter((mark) => listed(mark) && !stays.has(mark.id)).map((mark) => mark.id);
  const given = { version: doc.version, marks, removed, events: [event] };
  doc.done.set(clientId, given);
  return given;
}

export function decide(doc, { client_id, decisions }) {
  if (decisions.some((one) => one.kind === 'settle') && me.role === 'annotator') throw new Failure(403, 'forbidden', 'only curators and admins can resolve disagreements');
  const what = () => decisions.map((one) => sentence(doc, one)).join('; ');
  return record(doc, { kind: decisions[0]?.kind ?? 'none', what, decisions }, client_id, () => {
    for (const one of decisions) applyOne(doc, one);
  });
}

function sentence(doc, one) {
  const mark = doc.marks.find((each) => each.id === one.mark);
  const name = mark ? `“${mark.text}”` : '';
  return { add: 'added a mention', accept: `accepted ${name}${mark?.concept ? '' : mark?.is_nil ? ' (no matching concept)' : ' (not linked)'}`, reject: `rejected ${name}`, concept: `linked ${name} to ${mark?.concept?.name}`, nil: `set ${name} to no matching concept`, unsure: `${one.value ? 'marked' : 'unmarked'} ${name} as unsure`, spans: `changed the boundaries to ${name}`, delete: `deleted ${name}`, type: `changed the type of ${name}`, settle: 'resolved a disagreement', finish: one.value ? 'finished the document' : 'reopened the document' }[one.kind];
}

function applyOne(doc, one) {
  if (one.kind === 'add') {
    const there = doc.marks.find((mark) => isOpen(mark) && JSON.stringify(mark.spans) === JSON.stringify(one.spans));
    if (there) Object.assign(there, newMark(doc.text, { ...there, source: 'USER', state: 'accepted', concept: one.concept, is_nil: one.is_nil ?? false, by: me.name }), { id: there.id });
    else doc.marks.push(newMark(doc.text, { spans: one.spans, type: one.type ?? concepts.get(one.concept)?.types[0] ?? null, concept: one.concept, is_nil: one.is_nil ?? false, by: me.name }));
    return;
  }
  if (one.kind === 'finish') {
    const open = doc.marks.filter(isOpen);
    if (one.value && (one.accepts ?? open.length) !== open.length) throw new Failure(409, 'conflict', `finishing would accept ${open.length} unreviewed predictions, not ${one.accepts}`, 'review the new predictions first; nothing was changed');
    if (one.value) {
      doc.finishedWith = structuredClone(open);
      const isContradicted = (mark) => doc.marks.some((other) => other.source !== 'PRED' && other.state !== 'rejected' && (other.concept?.id ?? null) !== (mark.concept?.id ?? null) && JSON.stringify(other.spans) === JSON.stringify(mark.spans));
      const removed = new Set(open.filter(isContradicted));
      doc.marks = doc.marks.filter((mark) => !removed.has(mark));
      for (const mark of open) if (!removed.has(mark)) Object.assign(mark, { state: 'accepted', source: 'USER', by: me.name, isFinished: true });
    } else for (const before of doc.finishedWith ?? []) {
      const row = doc.marks.findIndex((mark) => mark.id === before.id && mark.isFinished);
      if (row >= 0) doc.marks[row] = structuredClone(before);
    }
    doc.is_finished = one.value;
    return;
  }
  if (one.kind === 'settle') return settle(doc, one);
  const mark = doc.marks.find((each) => each.id === one.mark);
  if (!mark) throw new Failure(404, 'not_found', `mention ${one.mark} not found`);
  const decided = { source: 'USER', state: 'accepted', by: me.name, at: now(), isFinished: false };
  if (one.kind === 'accept') Object.assign(mark, decided);
  if (one.kind === 'reject') mark.state = 'rejected';
  if (one.kind === 'delete') mark.state = 'deleted';
  if (one.kind === 'concept') Object.assign(mark, decided, { concept: { id: one.concept, name: concepts.get(one.concept)?.name ?? one.concept }, is_nil: false });
  if (one.kind === 'nil') Object.assign(mark, decided, { concept: null, is_nil: true });
  if (one.kind === 'unsure') mark.is_unsure = one.value;
  if (one.kind === 'context') Object.assign(mark, decided, { contexts: one.contexts });
  if (one.kind === 'type') Object.assign(mark, decided, { type: one.type });
  if (one.kind === 'spans') Object.assign(mark, decided, { spans: one.spans, text: newMark(doc.text, { spans: one.spans }).text });
  if (mark.source !== 'PRED' && listed(mark)) doc.marks = doc.marks.filter((other) => !isOpen(other) || JSON.stringify(other.spans) !== JSON.stringify(mark.spans) || other.concept?.id !== mark.concept?.id);
}

/** The first marks become those that are kept, the others are rejected. */
function settle(doc, { marks, keep }) {
  const left = marks.map((id) => doc.marks.find((mark) => mark.id === id)).filter((mark) => mark && mark.state !== 'deleted');
  for (const one of keep) {
    const best = left.findIndex((mark) => JSON.stringify(mark.spans) === JSON.stringify(one.spans));
    const mark = left.splice(Math.max(0, best), 1)[0];
    const fields = { source: 'USER', state: 'accepted', by: me.name, at: now(), is_nil: one.is_nil, spans: one.spans };
    const made = newMark(doc.text, { ...fields, concept: one.concept });
    if (mark) Object.assign(mark, { ...fields, text: made.text, concept: made.concept });
    else doc.marks.push(made);
  }
  for (const mark of left) mark.state = 'rejected';
}

export function undo(doc, clientId) {
  if (doc.done.has(clientId)) return doc.done.get(clientId);
  const event = doc.events.findLast((one) => !one.isUndone && one.before && one.by === me.name);
  if (!event) throw new Failure(409, 'nothing_to_undo', 'nothing to undo');
  event.isUndone = true;
  doc.undone.push(event);
  return restore(doc, event, event.before, 'undo', clientId);
}

export function redo(doc, clientId) {
  if (doc.done.has(clientId)) return doc.done.get(clientId);
  const event = doc.undone.pop();
  if (!event) throw new Failure(409, 'nothing_to_redo', 'nothing to redo');
  event.isUndone = false;
  return restore(doc, event, event.after, 'redo', clientId);
}

function restore(doc, event, to, kind, clientId) {
  const before = { marks: doc.marks };
  doc.marks = structuredClone(to.marks);
  doc.is_finished = to.is_finished;
  const id = newId();
  doc.events.push({ id, kind, by: me.name, at: now(), what: `${kind === 'undo' ? 'undid' : 'redid'}: ${event.what}` });
  doc.version = id;
  return answer(doc, before, { marks: doc.marks }, clientId, id);
}

/** Predictions of a model; models after the first link some names differently and miss others. */
function finds(text, model) {
  if (model === 'starter') return link(text).filter((one) => one.text.toLowerCase() !== 'pain');
  const swapped = (one) => (one.candidates.length > 1 && one.text.length % 4 === 1 ? { ...one, score: 0.71, candidates: [one.candidates[1], one.candidates[0], ...one.candidates.slice(2)] } : one);
  return link(text).filter((one) => one.text.toLowerCase() !== 'cough').map(swapped);
}

/** Predicts in every document; returns the changes by document. */
export function predict(p, model = 'starter') {
  const changes = new Map();
  for (const doc of docsOf(p)) {
    const before = doc.marks.filter(isOpen);
    predictIn(doc, model);
    const after = doc.marks.filter(isOpen);
    const place = (mark) => JSON.stringify(mark.spans);
    const side = (mark) => (mark ? { concept: mark.concept, score: mark.score } : null);
    const row = (mark, change, was, now) => ({ mark: mark.id, change, spans: mark.spans, text: mark.text, type: mark.type ?? '', before: side(was), after: side(now) });
    const was = new Map(before.map((mark) => [place(mark), mark]));
    const marks = after.flatMap((mark) => {
      const old = was.get(place(mark));
      was.delete(place(mark));
      return !old ? [row(mark, 'added', null, mark)] : old.concept?.id !== mark.concept?.id ? [row(mark, 'relinked', old, mark)] : [];
    });
    const n_same = after.length - marks.length;
    marks.push(...[...was.values()].map((mark) => row(mark, 'removed', mark, null)));
    marks.sort((a, b) => a.spans[0][0] - b.spans[0][0]);
    changes.set(doc.id, { document: doc.id, external_id: doc.external_id, text: doc.text, sections: doc.sections, model_before: before[0]?.model ?? null, model_after: model, marks, n_same });
  }
  return changes;
}

function predictIn(doc, model) {
  // Finished documents stay as they are.
  if (doc.is_finished) return;
  doc.marks = doc.marks.filter((mark) => !isOpen(mark));
  for (const found of finds(doc.text, model)) {
    if (!inScope(doc.project_id, found.candidates[0].id)) continue;
    if (doc.marks.some((mark) => JSON.stringify(mark.spans) === JSON.stringify(found.spans) && mark.state !== 'open')) continue;
    const mark = newMark(doc.text, { spans: found.spans, type: found.type, concept: found.candidates[0].id, source: 'PRED', state: 'open', score: found.score, candidates: found.candidates, model });
    const rival = doc.marks.find((one) => one.source === 'GOLD' && one.spans[0][0] < found.spans[0][1] && found.spans[0][0] < one.spans[0][1]);
    if (rival && rival.concept?.id !== mark.concept.id) Object.assign(mark, { disagrees: [rival.id] });
    doc.marks.push(mark);
  }
}

export function identicalMentions(p, { mark: id, scope, apply: isApplied }) {
  const home = docsOf(p).find((doc) => doc.marks.some((mark) => mark.id === id));
  if (!home) throw new Failure(404, 'not_found', `mention ${id} not found`);
  const mark = home.marks.find((one) => one.id === id);
  const matches = [];
  for (const doc of scope === 'document' ? [home] : docsOf(p)) {
    const points = [...doc.text];
    const lower = points.map((point) => (mark.text === mark.text.toUpperCase() ? point : point.toLowerCase()));
    const wanted = [...(mark.text === mark.text.toUpperCase() ? mark.text : mark.text.toLowerCase())];
    for (let at = 0; at + wanted.length <= lower.length; at++) {
      if (!wanted.every((point, row) => lower[at + row] === point)) continue;
      const spans = [[at, at + wanted.length]];
      const there = doc.marks.find((one) => listed(one) && JSON.stringify(one.spans) === JSON.stringify(spans));
      if (there?.id === id || there?.source === 'USER' || (mark.state === 'rejected' && !there)) continue;
      matches.push({ document: doc.id, external_id: doc.external_id, spans, text: points.slice(at, at + wanted.length).join(''), context: points.slice(Math.max(0, at - 30), at + wanted.length + 30).join(''), mark: there?.id ?? null });
    }
  }
  if (isApplied) {
    const decision = (match) => {
      if (mark.state === 'rejected') return { kind: 'reject', mark: match.mark };
      if (match.mark === null) return { kind: 'add', spans: match.spans, concept: mark.concept?.id ?? null, is_nil: mark.is_nil };
      return mark.concept ? { kind: 'concept', mark: match.mark, concept: mark.concept.id } : { kind: 'nil', mark: match.mark };
    };
    for (const id of new Set(matches.map((match) => match.document))) {
      decide(document(id), { client_id: `identical-${newId()}`, decisions: matches.filter((match) => match.document === id).map(decision) });
    }
  }
  return { matches, applied: isApplied ? matches.length : 0 };
}

/** The candidates in the scope of the project. */
export const candidates = (doc, place) =>
  allCandidates(doc, place).filter((one) => inScope(doc.project_id, one.id) && (!place.type || one.types.includes(place.type)) && (!place.under || pathOf(one.id).some((step) => step.id === place.under)));

function allCandidates(doc, { mark: id, start, end, q }) {
  const mark = doc.marks.find((one) => one.id === id);
  const text = mark ? mark.text : [...doc.text].slice(start, end).join('');
  const nChosen = (id) => docsOf(doc.project_id).flatMap((one) => one.marks).filter((one) => one.source === 'USER' && one.concept?.id === id).length;
  const pickerRow = (id, score, how) => rowOf(id, score, how, q || text, nChosen(id));
  if (q) return search(q, 8).map((one) => pickerRow(one.id, one.score, one.how));
  if (mark?.candidates.length) return mark.candidates.filter((one) => concepts.has(one.id)).map((one) => pickerRow(one.id, one.score, 'model'));
  const found = search(text, 8);
  const first = mark?.concept && concepts.has(mark.concept.id) ? [pickerRow(mark.concept.id, null, 'exact')] : [];
  if (found[0]?.how === 'exact' && !first.length) {
    const scores = candidatesOf(text, concepts.get(found[0].id));
    return scores.map((one) => pickerRow(one.id, one.score, 'model'));
  }
  return [...first, ...found.filter((one) => one.id !== mark?.concept?.id).map((one) => pickerRow(one.id, one.score, one.how))];
}

export function stats(p) {
  const docs = docsOf(p);
  const marks = docs.flatMap((doc) => doc.marks.filter(listed));
  const count = (key) => marks.reduce((sum, mark) => ({ ...sum, [key(mark)]: (sum[key(mark)] ?? 0) + 1 }), {});
  const events = docs.flatMap((doc) => doc.events);
  const days = {};
  for (const event of events) days[event.at.slice(0, 10)] = (days[event.at.slice(0, 10)] ?? 0) + 1;
  return {
    n_documents: docs.length,
    n_finished: docs.filter((doc) => doc.is_finished).length,
    by_source: { GOLD: 0, USER: 0, PRED: 0, ...count((mark) => mark.source) },
    by_type: count((mark) => mark.type ?? ''),
    by_decision: events.reduce((sum, event) => ({ ...sum, [event.kind]: (sum[event.kind] ?? 0) + 1 }), {}),
    decisions_per_day: Object.entries(days).map(([day, n]) => ({ day, n })),
    seconds_per_document: events.length ? { median: 41, mean: 55 } : null,
    agreement: null,
    models: [...models.values()].filter((model) => model.project_id === null || model.project_id === p).map(({ id, name, made_at, dev }) => ({ id, name, at: made_at, dev })),
  };
}

/** Annotation times, from the decisions that finish a document. */
export function annotationSpeed(p) {
  const points = docsOf(p).flatMap((doc) =>
    doc.events
      .filter((event) => event.kind === 'finish' && event.decisions[0].seconds)
      .map((event) => ({ document: doc.id, external_id: doc.external_id, by: event.by, at: event.at, seconds: event.decisions[0].seconds, per_thousand: (1000 * event.decisions[0].seconds) / doc.text.length, model: event.before.marks.find((mark) => mark.model)?.model ?? null, is_measured: true })),
  );
  const figures = (of) => {
    const sorted = of.map((one) => one.seconds).sort((a, b) => a - b);
    return { median: sorted[Math.floor(sorted.length / 2)], mean: sorted.reduce((sum, one) => sum + one, 0) / sorted.length };
  };
  const groups = (key) => [...new Set(points.map((one) => one[key]))].map((name) => {
    const of = points.filter((one) => one[key] === name);
    return { name, n: of.length, seconds: figures(of), per_thousand: of.map((one) => one.per_thousand).sort((a, b) => a - b)[Math.floor(of.length / 2)] };
  });
  return { all: points.length ? figures(points) : null, n_measured: points.length, n_estimated: 0, people: groups('by'), models: groups('model'), points: points.sort((a, b) => a.at.localeCompare(b.at)) };
}

/** The data of a training run; every fifth document, or one in `holdOut`, is held out. */
export function trainingPlan(p, { steps, holdOut = 5 }) {
  if (steps !== null && !(steps >= 1)) throw new Failure(400, 'bad_request', 'invalid setting `steps`', '`steps` must be a positive number');
  const docs = docsOf(p);
  const human = (doc) => doc.marks.filter((mark) => listed(mark) && mark.source !== 'PRED');
  const complete = docs.filter((doc) => doc.is_finished || doc.marks.some((mark) => mark.source === 'GOLD'));
  const incomplete = docs.filter((doc) => !complete.includes(doc) && human(doc).length);
  const heldOut = holdOut > 1 ? complete.filter((doc, row) => doc.is_held_out || row % holdOut === holdOut - 1) : [];
  const learned = [...complete.filter((doc) => !heldOut.includes(doc)), ...incomplete];
  const usual = Math.min(600, Math.max(60, steps ?? 3 * complete.length));
  return { n_complete: complete.length - heldOut.length, n_held_out: heldOut.length, n_incomplete: incomplete.length, n_unreviewed: docs.length - complete.length - incomplete.length, n_mentions: learned.reduce((sum, doc) => sum + human(doc).length, 0), steps: Math.ceil(usual / 6) * 6, min_steps: 60, max_steps: 600, hold_out: holdOut };
}

export function mentions(p, concept, cursor, limit) {
  const all = docsOf(p).flatMap((doc) => {
    const points = [...doc.text];
    return doc.marks
      .filter((mark) => listed(mark) && mark.concept?.id === concept)
      .map((mark) => ({ document: doc.id, external_id: doc.external_id, mark: mark.id, spans: mark.spans, text: mark.text, before: points.slice(Math.max(0, mark.spans[0][0] - 60), mark.spans[0][0]).join(''), behind: points.slice(mark.spans.at(-1)[1], mark.spans.at(-1)[1] + 60).join(''), source: mark.source, state: mark.state }));
  });
  const from = Number(cursor ?? 0);
  return { mentions: all.slice(from, from + limit), next_cursor: from + limit < all.length ? String(from + limit) : null, n_mentions: all.length, n_documents: new Set(all.map((one) => one.document)).size };
}
