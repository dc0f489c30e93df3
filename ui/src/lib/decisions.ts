// The effect of decisions on the marks of a document, shown before the server has answered.
// The server's answer replaces it.

import { OffsetMap, textOf } from './offsets';
import type { AnnotatedDocument, Decision, DecisionAnswer, Mark, ConceptRef } from './types';

/** Looks up the name of a concept. */
export type Names = (id: string) => string | undefined;

/** A copy of the document after some decisions. Marks the server has not seen have negative ids, from `firstId` downwards. */
export function apply(doc: AnnotatedDocument, decisions: Decision[], firstId: number, names: Names, by: string): AnnotatedDocument {
  let { marks, is_finished } = doc;
  let nextId = firstId;
  const named = (id: string): ConceptRef => ({ id, name: names(id) ?? id });
  for (const decision of decisions) {
    if (decision.kind === 'add') {
      const made = added(doc, decision, nextId--, named, by);
      marks = [...marks.filter((mark) => !(isOpen(mark) && sameSpans(mark, made))), made];
    } else if (decision.kind === 'finish') {
      is_finished = decision.value;
      if (decision.value) marks = marks.filter((mark) => !isContradicted(mark, marks)).map((mark) => (isOpen(mark) ? { ...mark, state: 'accepted', source: 'USER', by } : mark));
    } else if (decision.kind === 'settle') {
      // Disagreements are resolved on a page of their own, which waits for the server.
      continue;
    } else if (decision.kind === 'reject' || decision.kind === 'delete') {
      marks = marks.filter((mark) => mark.id !== decision.mark);
    } else {
      marks = marks.map((mark) => (mark.id === decision.mark ? changed(doc, mark, decision, named, by) : mark));
    }
    const decided = 'mark' in decision ? marks.find((mark) => mark.id === decision.mark) : decision.kind === 'add' ? marks.at(-1) : undefined;
    if (decided && decided.source !== 'PRED' && decision.kind !== 'unsure') marks = marks.filter((mark) => mark === decided || !isRepeated(mark, decided));
  }
  return { ...doc, marks, is_finished };
}

const sameSpans = (one: Mark, other: Mark) => JSON.stringify(one.spans) === JSON.stringify(other.spans);

const overlaps = (one: Mark, other: Mark) => one.spans.some(([from, to]) => other.spans.some(([start, end]) => from < end && start < to));

/** Whether a prediction contradicts an annotation of a person, so finishing the document removes it. Of two linked ones of different types, one may be nested in the other. */
export function isContradicted(mark: Mark, marks: Mark[]): boolean {
  const hull = (one: Mark) => [one.spans[0]![0], one.spans.at(-1)![1]] as const;
  const has = ([start, end]: readonly [number, number], [from, to]: readonly [number, number]) => start <= from && to <= end && end - start > to - from;
  const isNested = (other: Mark) => !!other.concept && !!mark.concept && other.type !== mark.type && (has(hull(other), hull(mark)) || has(hull(mark), hull(other)));
  const isLeftOpen = (other: Mark) => !other.concept && !other.is_nil && !!mark.concept;
  const contradicts = (other: Mark) => other.source !== 'PRED' && other.state !== 'rejected' && (other.concept?.id ?? null) !== (mark.concept?.id ?? null);
  return isOpen(mark) && marks.some((other) => contradicts(other) && overlaps(mark, other) && !isNested(other) && !isLeftOpen(other));
}

/** Whether an open prediction repeats a decision: same concept, overlapping span. */
function isRepeated(mark: Mark, decided: Mark): boolean {
  return isOpen(mark) && !mark.is_unsure && overlaps(mark, decided) && (mark.concept?.id ?? null) === (decided.concept?.id ?? null);
}

/** The document with the server's answer merged in. */
export function merge(doc: AnnotatedDocument, answer: DecisionAnswer): AnnotatedDocument {
  const gone = new Set(answer.removed);
  const fresh = new Map(answer.marks.map((mark) => [mark.id, mark]));
  const marks = doc.marks.filter((mark) => !gone.has(mark.id)).map((mark) => take(fresh, mark.id) ?? mark);
  marks.push(...fresh.values());
  // A mention that changed is not the one that others agreed on.
  const agreed = Object.fromEntries(Object.entries(doc.agreed).filter(([id]) => !answer.marks.some((mark) => String(mark.id) === id)));
  return { ...doc, version: answer.version, agreed, marks: marks.filter((mark) => mark.state !== 'rejected') };
}

/** The server's ids of added marks by their temporary ids. */
export function idsOfAdded(decisions: Decision[], firstId: number, answer: DecisionAnswer, known: Set<number>): Map<number, number> {
  const ids = new Map<number, number>();
  // A mention added at the span of a prediction replaces it and takes its id.
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

/** A decision with temporary ids replaced by the server's. */
export function withIds(decision: Decision, ids: Map<number, number>): Decision {
  if (!('mark' in decision)) return decision;
  const id = ids.get(decision.mark);
  return id === undefined ? decision : { ...decision, mark: id };
}

/** Whether nobody has reviewed the mark. */
export function isOpen(mark: Mark): boolean {
  return mark.state === 'open' && mark.source === 'PRED';
}

function added(doc: AnnotatedDocument, decision: Decision & { kind: 'add' }, id: number, named: (id: string) => ConceptRef, by: string): Mark {
  return {
    id,
    spans: decision.spans,
    text: textOf(doc.text, new OffsetMap(doc.text), decision.spans),
    type: decision.type ?? '',
    source: 'USER',
    state: 'accepted',
    concept: decision.concept ? named(decision.concept) : null,
    is_nil: decision.is_nil ?? false,
    is_unsure: false,
    contexts: [],
    score: null,
    p_mention: null,
    p_link: null,
    candidates: [],
    disagrees: [],
    by,
    at: '',
    model: null,
    is_spread: false,
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
    case 'context':
      return { ...decided, contexts: decision.contexts };
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
