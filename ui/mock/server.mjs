// The HTTP API in memory, for development and tests of the application: `node mock/server.mjs [port]`.
// It serves `dist` with the content security policy of the real server.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { agreement, disagreements } from './disagreements.mjs';
import { serveFile } from './files.mjs';
import { readJsonl, readPubtator, readTable, readText, writePubtator } from './formats.mjs';
import * as groups from './groups.mjs';
import * as jobs from './jobs.mjs';
import * as kb from './kb.mjs';
import * as proposals from './proposals.mjs';
import { samples } from './samples.mjs';
import * as state from './state.mjs';

const { Failure } = state;
const people = [{ ...state.me }];
let tokens = [];
const membersOf = new Map();

/** The members of a project, its creator first. */
function members(project) {
  if (!membersOf.has(project)) membersOf.set(project, [people[0]]);
  return membersOf.get(project);
}

function routes(method, path, { query, body, bytes }) {
  const number = (at) => Number(path[at]);
  const is = (wanted, pattern) => method === wanted && pattern.length === path.length && pattern.every((part, at) => part === '*' || part === path[at]);
  const project = () => state.projectRow(number(1));
  const doc = () => state.document(number(1));

  if (is('GET', ['about'])) return { version: '0.0.0-mock', kb: { name: 'mock', n_concepts: kb.concepts.size, n_names: 60, fingerprint: '9f31c2' }, model: { name: 'starter' }, user: state.me, needs_login: false };
  if (is('POST', ['link'])) {
    const found = kb.link(body().text, body().nested).filter((one) => one.score >= (body().min_score ?? 0));
    return { id: 'text', text: body().text, annotations: found.map((one) => (body().explain ? { ...one, explanation: kb.explain(one) } : one)) };
  }
  if (is('GET', ['kb', 'search'])) return { results: kb.search(query.get('q') ?? '', Number(query.get('top_k') ?? 20)) };
  if (is('GET', ['kb', 'concepts', '*'])) {
    const page = kb.conceptPage(path[2]);
    if (!page) throw new Failure(404, 'not_found', `concept ${path[2]} not found`, 'search for it by name');
    return page;
  }
  if (is('GET', ['kb', 'concepts', '*', 'near'])) return { concepts: kb.search(kb.conceptPage(path[2])?.name ?? '', 9).filter((one) => one.id !== path[2]).map(({ id, name, score }) => ({ id, name, score, p_link: score })) };
  if (is('GET', ['kb', 'tree'])) return kb.tree(query.get('under'));
  if (is('GET', ['kb', 'types'])) return { types: [...new Set([...kb.concepts.values()].flatMap((one) => one.types))].sort() };
  if (is('GET', ['kb', 'lint'])) return kb.lint();
  if (is('GET', ['people'])) return { people };
  if (is('POST', ['people'])) {
    people.push({ id: state.newId(), name: body().name, role: body().role, is_active: true });
    return people.at(-1);
  }
  if (is('PATCH', ['people', '*'])) {
    const person = people.find((one) => one.id === number(1));
    if (!person) throw new Failure(404, 'not_found', `account ${number(1)} not found`);
    const { password, ...fields } = body();
    if (password !== undefined && password.length < 8) throw new Failure(400, 'bad_request', 'the password must have at least 8 characters');
    const isLast = (fields.is_active === false || (fields.role ?? 'admin') !== 'admin') && person.role === 'admin' && people.filter((one) => one.role === 'admin' && one.is_active).length === 1;
    if (isLast) throw new Failure(409, 'conflict', 'this is the last active admin', 'make another account an admin first; nothing was changed');
    return Object.assign(person, fields);
  }
  if (is('POST', ['password'])) {
    if (body().old !== 'old password') throw new Failure(400, 'bad_request', 'the current password is wrong', 'nothing was changed; try again');
    return {};
  }
  if (is('GET', ['tokens'])) return { tokens };
  if (is('POST', ['tokens'])) {
    const days = body().days;
    tokens.push({ id: String(state.newId()), name: body().name, made_at: state.now(), expires_at: days ? new Date(Date.now() + days * 86_400_000).toISOString() : null });
    return { status: 201, json: { name: body().name, token: 'c0ffee'.repeat(10) } };
  }
  if (is('DELETE', ['tokens', '*'])) {
    tokens = tokens.filter((one) => one.id !== path[1]);
    return {};
  }
  if (is('POST', ['login'])) {
    const person = people.find((one) => one.name === body().name && one.is_active);
    if (!person) throw new Failure(401, 'unauthorized', 'wrong name or password');
    return { user: Object.assign(state.me, person) };
  }
  if (is('POST', ['logout'])) return (Object.assign(state.me, people[0]), {});

  if (is('GET', ['projects'])) return { projects: [...state.projects.keys()].map(state.projectRow) };
  if (is('POST', ['projects'])) return state.createProject(body());
  if (is('POST', ['projects', 'sample'])) {
    const made = state.createProject({ name: 'Sample project', description: 'Ten made-up notes and abstracts to try annotation with', guideline: '## What to annotate\n- Diseases, symptoms and drugs, **as specific as the text is**\n' });
    state.addDocuments(made.id, readPubtator(readFileSync(new URL('../../crates/canonym-serve/assets/sample.pubtator', import.meta.url), 'utf8')));
    state.predict(made.id);
    return { status: 201, json: state.projectRow(made.id) };
  }
  if (is('GET', ['projects', '*'])) return project();
  if (is('PATCH', ['projects', '*'])) {
    const { scope, ...fields } = body();
    Object.assign(state.projects.get(project().id), fields);
    if (scope) state.setScope(project().id, scope);
    return project();
  }
  if (is('GET', ['projects', '*', 'people'])) return { people: members(project().id) };
  if (is('POST', ['projects', '*', 'people'])) {
    const person = people.find((one) => one.id === body().id);
    if (!person) throw new Failure(404, 'not_found', `account ${body().id} not found`);
    const all = members(project().id);
    if (!all.includes(person)) all.push(person);
    return { people: all };
  }
  if (is('DELETE', ['projects', '*', 'people', '*'])) {
    const all = members(project().id);
    const at = all.findIndex((one) => one.id === number(3));
    if (at < 0) throw new Failure(404, 'not_found', 'not a member of this project');
    all.splice(at, 1);
    return { people: all };
  }
  if (is('POST', ['projects', '*', 'copies'])) return { status: 201, json: state.copyProject(project().id, body()) };
  if (is('POST', ['projects', '*', 'import'])) return importFile(project().id, query, bytes());
  if (is('DELETE', ['projects', '*'])) {
    for (const one of state.docsOf(project().id)) state.documents.delete(one.id);
    state.projects.delete(number(1));
    return {};
  }
  if (is('GET', ['projects', '*', 'export'])) return exportFile(project(), query);
  if (is('GET', ['projects', '*', 'export', 'losses'])) return { lines: lossesOf(project(), query) };
  if (is('GET', ['projects', '*', 'documents'])) {
    const rows = state.listDocuments(project().id, query);
    const from = Number(query.get('cursor') ?? 0);
    const limit = Number(query.get('limit') ?? 50);
    return { documents: rows.slice(from, from + limit), next_cursor: from + limit < rows.length ? String(from + limit) : null };
  }
  if (is('GET', ['projects', '*', 'queue'])) {
    const strategy = query.get('strategy') ?? project().strategy;
    return { strategy, documents: state.queue(project().id, strategy) };
  }
  if (is('GET', ['projects', '*', 'assignments'])) return { people: [], documents: [], next_cursor: null, n_assigned: 0, n_unassigned: state.docsOf(project().id).filter((one) => !one.is_finished).length };
  if (is('GET', ['projects', '*', 'proposals'])) return { proposals: proposals.of(project().id) };
  if (is('POST', ['projects', '*', 'proposals'])) return { status: 201, json: proposals.add(project().id, body()) };
  if (is('DELETE', ['projects', '*', 'proposals', '*'])) return proposals.remove(project().id, number(3));
  if (is('GET', ['projects', '*', 'proposals', 'file'])) return { raw: proposals.file(project().id, query.get('format')), name: `proposals.${query.get('format')}` };
  if (is('GET', ['projects', '*', 'disagreements', 'groups'])) return { groups: [] };
  if (is('GET', ['projects', '*', 'stats'])) return { ...state.stats(project().id), agreement: agreement(project().id) };
  if (is('GET', ['projects', '*', 'disagreements'])) return disagreements(project().id, { cursor: query.get('cursor'), limit: Number(query.get('limit') ?? 50) });
  const paging = { cursor: query.get('cursor'), limit: Number(query.get('limit') ?? 50) };
  if (is('GET', ['projects', '*', 'groups'])) return groups.list(project().id, query.get('q') ?? '', paging);
  if (is('GET', ['projects', '*', 'groups', 'mentions'])) return groups.mentions(project().id, query.get('text'), query.get('concept'), paging);
  if (is('POST', ['projects', '*', 'groups', 'decisions'])) return groups.decide(project().id, body());
  if (is('POST', ['projects', '*', 'groups', 'undo'])) return groups.undo(body());
  if (is('POST', ['projects', '*', 'identical-mentions'])) return state.identicalMentions(project().id, body());
  if (is('GET', ['projects', '*', 'jobs'])) return { jobs: [...jobs.jobs.values()].filter((job) => job.project_id === number(1)).reverse() };
  if (is('POST', ['projects', '*', 'jobs'])) return { status: 202, json: jobs.start(project().id, body().kind, body().settings) };
  if (is('GET', ['projects', '*', 'annotation-speed'])) return state.annotationSpeed(project().id);
  if (is('GET', ['projects', '*', 'mentions'])) return state.mentions(project().id, query.get('concept'), query.get('cursor'), Number(query.get('limit') ?? 50));
  if (is('GET', ['projects', '*', 'training'])) return state.trainingPlan(project().id, { steps: query.has('steps') ? Number(query.get('steps')) : null, holdOut: Number(query.get('hold_out') ?? 5) });
  if (is('GET', ['projects', '*', 'changes'])) {
    const n = (one, change) => one.marks.filter((mark) => mark.change === change).length;
    const all = [...(jobs.changes.get(Number(query.get('from')))?.values() ?? [])].filter((one) => one.marks.length);
    const told = all.find((one) => one.model_before) ?? all[0];
    return { model_before: told?.model_before ?? null, model_after: told?.model_after ?? null, documents: all.map((one) => ({ id: one.document, external_id: one.external_id, added: n(one, 'added'), removed: n(one, 'removed'), changed: n(one, 'relinked') })) };
  }
  if (is('POST', ['projects', '*', 'models', '*', 'use'])) {
    for (const model of state.models.values()) model.is_current = model.id === number(3);
    return {};
  }
  if (is('GET', ['models'])) return { models: [...state.models.values()] };
  if (is('GET', ['jobs', '*'])) return jobOf(number(1));
  if (is('POST', ['jobs', '*', 'cancel'])) return jobs.cancel(jobOf(number(1)));

  if (is('PATCH', ['documents', '*'])) {
    const { external_id, metadata } = body();
    if (metadata) Object.assign(doc(), { metadata });
    if (external_id === undefined) return state.row(doc());
    if (state.docsOf(doc().project_id).some((other) => other.id !== doc().id && other.external_id === external_id)) throw new Failure(409, 'conflict', `document “${external_id}” already exists in this project`, 'choose another ID; nothing was changed');
    return state.row(Object.assign(doc(), { external_id }));
  }
  if (is('DELETE', ['documents', '*'])) {
    state.documents.delete(doc().id);
    return {};
  }
  if (is('PATCH', ['projects', '*', 'models', '*'])) return Object.assign(state.models.get(number(3)), { name: body().name });
  if (is('DELETE', ['projects', '*', 'models', '*'])) {
    if (state.models.get(number(3))?.is_current) throw new Failure(409, 'conflict', `model “${state.models.get(number(3)).name}” is in use`, 'use another model first; nothing was deleted');
    state.models.delete(number(3));
    return {};
  }
  if (is('GET', ['projects', '*', 'models', '*', 'file'])) return { raw: 'the weights', name: `${state.models.get(number(3)).name}.safetensors` };
  if (is('GET', ['documents', '*', 'changes'])) return jobs.changes.get(Number(query.get('from')))?.get(doc().id) ?? { document: doc().id, external_id: doc().external_id, text: doc().text, sections: doc().sections, model_before: null, model_after: null, marks: [], n_same: 0 };
  if (is('GET', ['documents', '*'])) return state.shown(doc(), query.get('all') === '1');
  if (is('POST', ['documents', '*', 'decisions'])) {
    const { version, decisions } = body();
    const isOnMarks = decisions.some((one) => one.mark !== undefined || one.marks !== undefined || (one.kind === 'finish' && one.value));
    if (isOnMarks && typeof version !== 'number') throw new Failure(400, 'bad_request', 'the document `version` is missing', 'send the `version` the decision is based on');
    return saved(doc(), state.decide(doc(), body()));
  }
  if (is('POST', ['documents', '*', 'undo'])) return saved(doc(), state.undo(doc(), body().client_id));
  if (is('POST', ['documents', '*', 'redo'])) return saved(doc(), state.redo(doc(), body().client_id));
  if (is('GET', ['documents', '*', 'history'])) return { events: [{ id: 0, kind: 'import', by: 'local', at: doc().imported_at, what: 'imported' }, ...doc().events.map(({ id, kind, by, at, what }) => ({ id, kind, by, at, what }))] };
  if (is('POST', ['documents', '*', 'comments'])) {
    const first = doc().comments.find((one) => one.id === body().parent);
    if (first) first.resolved_by = null;
    doc().comments.push({ id: state.newId(), mark: first ? first.mark : (body().mark ?? null), text: body().text, by: state.me.name, at: state.now(), parent: first?.id ?? null, resolved_by: null });
    return doc().comments.at(-1);
  }
  if (is('PATCH', ['documents', '*', 'comments', '*'])) return Object.assign(doc().comments.find((one) => one.id === number(3)), { resolved_by: body().is_resolved ? state.me.name : null });
  if (is('GET', ['documents', '*', 'candidates'])) {
    const place = { mark: Number(query.get('mark')), start: Number(query.get('start')), end: Number(query.get('end')), q: query.get('q'), type: query.get('type'), under: query.get('under') };
    return { candidates: state.candidates(doc(), place) };
  }
  throw new Failure(404, 'not_found', `not found: ${method} /${path.join('/')}`);
}

function jobOf(id) {
  const job = jobs.jobs.get(id);
  if (!job) throw new Failure(404, 'not_found', `job ${id} not found`);
  return job;
}

function saved(doc, answer) {
  jobs.tell(doc.project_id, 'document', { id: doc.id, version: doc.version });
  return answer;
}

function importFile(project, query, bytes) {
  const text = utf8(bytes);
  const filename = query.get('filename') ?? 'text.txt';
  const asked = query.get('format') ?? 'auto';
  const found = /\.[ct]sv$/.test(filename) ? 'csv' : /^[^|\n]+\|t\|/.test(text) ? 'pubtator' : text.trimStart().startsWith('{') ? 'jsonl' : 'text';
  const format = asked === 'auto' ? found : asked;
  const columns = { text: query.get('text_column') ?? 'text', id: query.get('id_column') ?? 'id' };
  const readers = { pubtator: () => readPubtator(text), jsonl: () => readJsonl(text), csv: () => readTable(text, columns) };
  const read = (readers[format] ?? (() => readText(text, filename)))();
  if (read.error) throw new Failure(422, 'refused', read.error, read.hint);
  if (!read.documents.length) throw new Failure(422, 'refused', 'no documents in this file', 'choose the format, or check the file');
  const report = state.addDocuments(project, read, { isGold: query.get('annotations') === 'gold', renames: query.get('existing') === 'rename' });
  jobs.tell(project, 'import', report);
  return report;
}

function utf8(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure(422, 'refused', 'not UTF-8', 'convert the file to UTF-8');
  }
}

function exportFile(project, query) {
  const sources = (query.get('sources') ?? 'gold,user').toUpperCase().split(',');
  const docs = state.docsOf(project.id).map((doc) => ({ ...doc, marks: doc.marks.filter((mark) => ['accepted', 'open'].includes(mark.state) && sources.includes(mark.source)) }));
  const format = query.get('format') ?? 'pubtator';
  const text = format === 'pubtator' ? writePubtator(docs) : docs.map((doc) => JSON.stringify({ id: doc.external_id, text: doc.text, annotations: doc.marks })).join('\n');
  return { raw: text, name: `${project.name}.${format}` };
}

/** What a format would lose; the mock knows only predictions and discontinuous mentions. */
function lossesOf(project, query) {
  if (query.get('format') !== 'pubtator') return [];
  const sources = (query.get('sources') ?? 'gold,user').toUpperCase().split(',');
  const marks = state.docsOf(project.id).flatMap((doc) => doc.marks).filter((mark) => ['accepted', 'open'].includes(mark.state) && sources.includes(mark.source));
  const nOpen = marks.filter((mark) => mark.source === 'PRED').length;
  const nGaps = marks.filter((mark) => mark.spans.length > 1).length;
  return [
    ...(nOpen ? [`${nOpen} unreviewed predictions will be indistinguishable from ${marks.length - nOpen} reviewed annotations`] : []),
    ...(nGaps ? [`${nGaps} discontinuous ${nGaps === 1 ? 'mention' : 'mentions'} will be written as one span`] : []),
  ];
}

function send(response, status, json) {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify(json));
}

export function serve(port) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (url.pathname === '/health') return send(response, 200, { status: 'ok' });
    if (!url.pathname.startsWith('/api/v1/')) return serveFile(response, url.pathname);
    const path = url.pathname.slice('/api/v1/'.length).split('/').map(decodeURIComponent);
    if (path[0] === 'events') return events(request, response, Number(url.searchParams.get('project')));
    const parts = [];
    for await (const part of request) parts.push(part);
    const bytes = () => Buffer.concat(parts);
    try {
      if (request.method !== 'GET' && request.headers['x-canonym'] !== '1') throw new Failure(403, 'forbidden', 'missing header `X-Canonym`');
      const answer = routes(request.method, path, { query: url.searchParams, bytes, body: () => JSON.parse(bytes().toString('utf8')) });
      if (answer.raw !== undefined) {
        response.writeHead(200, { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Disposition': `attachment; filename="${answer.name}"` });
        return response.end(answer.raw);
      }
      send(response, answer.status ?? 200, answer.json ?? answer);
    } catch (error) {
      send(response, error.status ?? 500, { error: { code: error.code ?? 'internal', message: error.message, hint: error.hint ?? null } });
    }
  });
  // A slow machine may reuse a connection that would just be closed.
  server.keepAliveTimeout = 60_000;
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server)));
}

function events(request, response, project) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
  response.write(': hello\n\n');
  const stop = jobs.listen(project, (event, data, of) => response.write(`${project ? '' : `id: ${of}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
  request.on('close', stop);
}

/** A project with three documents, to explore by hand. */
export function fill() {
  const project = state.createProject({ name: 'Side effects', description: 'Three made-up reports', guideline: 'Mark diseases, symptoms and drugs. Take the longest name. If nothing fits, press n.' });
  state.addDocuments(project.id, readPubtator(samples));
  return project;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.argv[2] ?? 5179);
  fill();
  await serve(port);
  console.log(`mock of canonym at http://127.0.0.1:${port}/`);
}
