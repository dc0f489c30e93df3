// Review by concept: unreviewed predictions by text and concept.

import { decide as decideIn, docsOf, newId, undo as undoIn, Failure } from './state.mjs';

const folded = (text) => (text === text.toUpperCase() && text !== text.toLowerCase() ? text : text.toLowerCase());
const isOpen = (mark) => mark.state === 'open' && mark.source === 'PRED';
const openOf = (p) => docsOf(p).flatMap((doc) => doc.marks.filter(isOpen).map((mark) => ({ doc, mark })));
const batches = new Map();

function page(all, { cursor, limit }) {
  const from = Number(cursor ?? 0);
  return { rows: all.slice(from, from + limit), next_cursor: from + limit < all.length ? String(from + limit) : null };
}

export function list(p, q, paging) {
  const groups = new Map();
  for (const { doc, mark } of openOf(p)) {
    const key = `${folded(mark.text)}\n${mark.concept?.id ?? ''}`;
    const group = groups.get(key) ?? { text: mark.text, concept: mark.concept, type: mark.type, n_mentions: 0, documents: new Set(), min_score: 1, max_score: 0 };
    group.n_mentions++;
    group.documents.add(doc.id);
    group.min_score = Math.min(group.min_score, mark.score);
    group.max_score = Math.max(group.max_score, mark.score);
    groups.set(key, group);
  }
  const wanted = q.trim().toLowerCase();
  const all = [...groups.values()]
    .map(({ documents, ...group }) => ({ ...group, n_documents: documents.size }))
    .filter((group) => [group.text, group.concept?.id ?? '', group.concept?.name ?? ''].some((text) => text.toLowerCase().includes(wanted)))
    .sort((a, b) => b.n_mentions - a.n_mentions || a.text.localeCompare(b.text));
  const { rows, next_cursor } = page(all, paging);
  return { groups: rows.map((group) => ({ ...group, n_spread: 0 })), n_groups: all.length, n_mentions: all.reduce((sum, group) => sum + group.n_mentions, 0), n_spread: 0, next_cursor };
}

const membersOf = (p, text, concept) => openOf(p).filter(({ mark }) => folded(mark.text) === folded(text) && (mark.concept?.id ?? '') === (concept ?? ''));

export function mentions(p, text, concept, paging) {
  const { rows, next_cursor } = page(membersOf(p, text, concept), paging);
  const row = ({ doc, mark }) => {
    const points = [...doc.text];
    const [start, end] = [mark.spans[0][0], mark.spans.at(-1)[1]];
    return { document: doc.id, external_id: doc.external_id, mark: mark.id, spans: mark.spans, text: mark.text, before: points.slice(Math.max(0, start - 80), start).join(''), behind: points.slice(end, end + 80).join(''), score: mark.score, is_spread: false };
  };
  return { mentions: rows.map(row), next_cursor };
}

export function decide(p, { text, concept, action, to, marks, min_score: least }) {
  let members = membersOf(p, text, concept);
  if (marks) members = members.filter(({ mark }) => marks.includes(mark.id));
  const nSkipped = marks ? marks.length - members.length : 0;
  members = members.filter(({ mark }) => mark.score >= (least ?? 0));
  const docs = [...new Set(members.map(({ doc }) => doc))];
  const batch = members.length ? newId() : null;
  const decision = (mark) => (action === 'relink' ? { kind: 'concept', mark: mark.id, concept: to } : { kind: action, mark: mark.id });
  for (const doc of docs) decideIn(doc, { client_id: `group-${batch}`, decisions: members.filter((one) => one.doc === doc).map(({ mark }) => decision(mark)) });
  batches.set(batch, docs.map((doc) => ({ doc, version: doc.version })));
  return { batch, n_mentions: members.length, n_documents: docs.length, n_skipped: nSkipped };
}

export function undo({ batch }) {
  const of = batches.get(batch);
  if (!of) throw new Failure(409, 'conflict', 'nothing to undo');
  batches.delete(batch);
  const free = of.filter(({ doc, version }) => doc.version === version);
  for (const { doc } of free) undoIn(doc, `group-${newId()}`);
  return { batch: newId(), n_mentions: free.length, n_documents: free.length, n_skipped: of.length - free.length };
}
