// What decisions do to the marks of a document, so that they show before the server has answered.
// The server's answer replaces what is computed here.

import { OffsetMap, textOf } from './offsets';
import type { AnnotatedDocument, Decision, DecisionAnswer, Mark, ConceptRef } from './types';

/** Marks that the server has not seen have ids below zero. */
export type Names = (id: string) => string | undefined;

/** The document after some decisions; the document given is left as it is. `firstId` is the id of the first mark added. */
export function apply(doc: AnnotatedDocument, decisions: Decision[], firstId: number, names: Names, by: string): AnnotatedDocument {
  let { marks, is_finished } = doc;
  let nextId = firstId;
  const named = (id: string): ConceptRef => ({ id, name: names(id) ?? id });
  for (const decision of decisions) {
    if (decision.kind === 'add') {
      const made = added(doc, decision, nextId--, named, by);
      marks = [...marks.filter((mark) => !(isOpen(mark) && samePlace(mark, made))), made];
    } else if (decision.kind === 'finish') {
      is_finished = decision.value;
      if (decision.value) marks = marks.map((mark) => (isOpen(mark) ? { ...mark, state: 'accepted', source: 'USER', by } : mark));
    } else if (decision.kind === 'settle') {
      // Places are settled on a page of their own, which asks the server.
      continue;
    } else if (decision.kind === 'reject' || decision.kind === 'delete') {
      marks = marks.filter((mark) => mark.id !== decision.mark);
    } else {
      marks = marks.map((mark) => (mark.id === decision.mark ? changed(doc, mark, decision, named, by) : mark));
    }
    const said = 'mark' in decision ? marks.find((mark) => mark.id === decision.mark) : decision.kind === 'add' ? marks.at(-1) : undefined;
    if (said && said.source !== 'PRED' && decision.kind !== 'unsure') marks = marks.filter((mark) => mark === said || !isRepeated(mark, said));
  }
  return { ...doc, marks, is_finished };
}

const samePlace = (one: Mark, other: Mark) => JSON.stringify(one.spans) === JSON.stringify(other.spans);

/** Whether an open prediction says what somebody now says there. */
function isRepeated(mark: Mark, said: Mark): boolean {
  const across = mark.spans.some(([from, to]) => said.spans.some(([start, end]) => from < end && start < to));
  return isOpen(mark) && !mark.is_unsure && across && (mark.concept?.id ?? null) === (said.concept?.id ?? null);
}

/** The document after the server has answered. */
export function merge(doc: AnnotatedDocument, answer: DecisionAnswer): AnnotatedDocument {
  const gone = new Set(answer.removed);
  const fresh = new Map(answer.marks.map((mark) => [mark.id, mark]));
  const marks = doc.marks.filter((mark) => !gone.has(mark.id)).map((mark) => take(fresh, mark.id) ?? mark);
  marks.push(...fresh.values());
  return { ...doc, version: answer.version, marks: marks.filter((mark) => mark.state !== 'rejected') };
}

/** The ids that the server gave to added marks, by the ids they had here. */
export function idsOfAdded(decisions: Decision[], firstId: number, answer: DecisionAnswer, known: Set<number>): Map<number, number> {
  const ids = new Map<number, number>();
  // A mention marked where a prediction stood takes its place, and its id.
  const fresh = answer.marks.filter((mark) => !known.has(mark.id) || mark.source === 'USER');
  let nextId = firstId;
  for (const decision of decisions) {
    if (decision.kind !== 'add') continue;
    const row = fresh.findIndex((mark) => JSON.stringify(mark.spans) === JSON.stringify(decision.spans));
    if (row >= 0) ids.set(nextId, fresh.splice(row, 1)[0]!.id);
    nextId--;
  }
  return ids;
}

/** A decision about a mark of which the server has told the id. */
export function withIds(decision: Decision, ids: Map<number, number>): Decision {
  if (!('mark' in decision)) return decision;
  const id = ids.get(decision.mark);
  return id === undefined ? decision : { ...decision, mark: id };
}

/** Whether somebody still has to decide. */
export function isOpen(mark: Mark): boolean {
  return mark.state === 'open' && mark.source === 'PRED';
}

function added(doc: AnnotatedDocument, decision: Decision & { kind: 'add' }, id: number, named: (id: string) => ConceptRef, by: string): Mark {
  return {
    id,
    spans: decision.spans,
    text: textOf(doc.text, new OffsetMap(doc.text), decision.spans),
    type: decision.type ?? null,
    source: 'USER',
    state: 'accepted',
    concept: decision.concept === null ? null : named(decision.concept),
    is_nil: decision.is_nil ?? false,
    is_unsure: false,
    score: null,
    candidates: [],
    disagrees: [],
    by,
    at: '',
    model: null,
  };
}

function changed(doc: AnnotatedDocument, mark: Mark, decision: Decision, named: (id: string) => ConceptRef, by: string): Mark {
  const decided: Mark = { ...mark, source: 'USER', state: 'accepted', by };
  switch (decision.kind) {
    case 'accept':
      return decided;
    case 'concept':
      return { ...decided, concept: named(decision.concept), is_nil: false };
    case 'nil':
      return { ...decided, concept: null, is_nil: true };
    case 'spans':
      return { ...decided, spans: decision.spans, text: textOf(doc.text, new OffsetMap(doc.text), decision.spans) };
    case 'type':
      return { ...decided, type: decision.type };
    case 'unsure':
      return { ...mark, is_unsure: decision.value };
    default:
      return mark;
  }
}

function take(fresh: Map<number, Mark>, id: number): Mark | undefined {
  const mark = fresh.get(id);
  fresh.delete(id);
  return mark;
}
