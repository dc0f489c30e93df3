// Disagreements, as far as tests need them: on one mark, or between overlapping marks.

import { docsOf } from './state.mjs';

const SILENT = ['unsure', 'undo', 'redo'];
const isKept = (mark) => mark !== undefined && mark.state !== 'rejected' && mark.state !== 'deleted';
const keyOf = (mark) => (isKept(mark) ? JSON.stringify([mark.spans, mark.concept?.id ?? null]) : 'none');
const overlap = (a, b) => a.spans.some(([start, end]) => b.spans.some(([from, to]) => start < to && from < end));

/** The last decision of each annotator on each mark. */
function lastSaid(doc) {
  const said = [];
  const put = (one) => {
    const at = said.findIndex((other) => other.by === one.by && other.mark.id === one.mark.id);
    if (at >= 0) said.splice(at, 1);
    said.push(one);
  };
  for (const event of doc.events) {
    if (event.isUndone || !event.after || SILENT.includes(event.kind)) continue;
    const was = new Map(event.before.marks.map((mark) => [mark.id, JSON.stringify(mark)]));
    const isNamed = (id) => event.decisions.some((one) => one.mark === id || one.marks?.includes(id));
    const touched = event.after.marks.filter((mark) => isNamed(mark.id) || was.get(mark.id) !== JSON.stringify(mark));
    if (event.kind === 'settle') for (const mark of touched) for (const other of said.filter((one) => one.mark.id === mark.id)) said.splice(said.indexOf(other), 1);
    for (const mark of touched) put({ by: event.by, mark, at: event.at, isSettled: event.kind === 'settle' });
  }
  return said;
}

function placesOf(doc) {
  const said = lastSaid(doc);
  const groups = [];
  for (const [row, a] of said.entries()) {
    for (const b of said.slice(row + 1)) {
      if (a.by === b.by || keyOf(a.mark) === keyOf(b.mark)) continue;
      const knows = (by, id) => said.some((one) => one.by === by && one.mark.id === id);
      const isSame = a.mark.id === b.mark.id;
      if (!isSame && (!overlap(a.mark, b.mark) || knows(a.by, b.mark.id) || knows(b.by, a.mark.id) || !isKept(a.mark) || !isKept(b.mark))) continue;
      const there = groups.filter((group) => group.has(a.mark.id) || group.has(b.mark.id));
      const joined = new Set([a.mark.id, b.mark.id, ...there.flatMap((group) => [...group])]);
      for (const group of there) groups.splice(groups.indexOf(group), 1);
      groups.push(joined);
    }
  }
  return groups.map((group) => place(doc, said.filter((one) => group.has(one.mark.id)), [...group].sort((a, b) => a - b)));
}

function place(doc, said, marks) {
  const points = [...doc.text];
  const spans = said.flatMap((one) => one.mark.spans);
  const [start, end] = [Math.min(...spans.map((span) => span[0])), Math.max(...spans.map((span) => span[1]))];
  const answers = new Map();
  for (const by of new Set(said.map((one) => one.by))) {
    const own = said.filter((one) => one.by === by);
    const claims = own.filter((one) => isKept(one.mark)).map(({ mark }) => ({ mark: mark.id, spans: mark.spans, text: mark.text, concept: mark.concept }));
    const key = JSON.stringify(claims.map((claim) => [claim.spans, claim.concept?.id]));
    const answer = answers.get(key) ?? { people: [], claims };
    answer.people.push({ name: by, at: own.at(-1).at });
    answers.set(key, answer);
  }
  return {
    document: doc.id, external_id: doc.external_id, version: doc.version, marks, start, end,
    text: points.slice(start, end).join(''),
    before: points.slice(Math.max(0, start - 220), start).join(''),
    behind: points.slice(end, end + 220).join(''),
    answers: [...answers.values()].sort((a, b) => b.people.length - a.people.length),
    is_reopened: said.some((one) => one.isSettled),
  };
}

export function disagreements(project, { cursor, limit }) {
  const all = docsOf(project).flatMap(placesOf).sort((a, b) => a.document - b.document || a.start - b.start);
  const from = Number(cursor ?? 0);
  const rows = all.slice(from, from + limit);
  return { disagreements: rows, next_cursor: from + limit < all.length ? String(from + limit) : null, n_open: all.length };
}

/** Made-up agreement figures in the form of the server's. */
export function agreement(project) {
  const said = docsOf(project).flatMap(lastSaid).filter((one) => !one.isSettled);
  const people = [...new Set(said.map((one) => one.by))];
  const several = new Map();
  for (const one of said) several.set(one.mark.id, [...(several.get(one.mark.id) ?? []), keyOf(one.mark)]);
  const both = [...several.values()].filter((keys) => keys.length > 1);
  if (people.length < 2 || !both.length) return null;
  const alike = both.filter((keys) => keys.every((key) => key === keys[0])).length / both.length;
  return { cohen_kappa: Math.max(0, 1.4 * alike - 0.4), krippendorff_alpha: Math.max(0, 1.5 * alike - 0.5), span_f1: alike, n_both: both.length, n_several: both.length, n_people: people.length };
}
