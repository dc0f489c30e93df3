import { expect, test } from 'vitest';
import { apply, idsOfAdded, merge, withIds } from './decisions';
import type { AnnotatedDocument, Decision, Mark } from './types';

const mark = (id: number, fields: Partial<Mark> = {}): Mark => ({
  id, spans: [[2, 7]], text: 'fever', type: 'Disease', source: 'PRED', state: 'open', concept: { id: 'A:1', name: 'Fever' }, is_nil: false,
  is_unsure: false, contexts: [], is_spread: false, score: 0.5, p_mention: null, p_link: null, candidates: [], disagrees: [], by: null, at: '', model: 'm1', ...fields,
});
const doc: AnnotatedDocument = {
  id: 1, project_id: 1, external_id: 'a', text: '😀 fever and cough', sections: [], version: 3, is_finished: false, reason: null, agreed: {},
  marks: [mark(1), mark(2, { source: 'GOLD', spans: [[12, 17]] })], comments: [],
};
const names = (id: string) => ({ 'A:9': 'Cough' })[id];

function check(decision: Decision, id: number, expected: Partial<Mark> | null): void {
  const found = apply(doc, [decision], -1, names, 'ada').marks.find((one) => one.id === id);
  if (expected === null) expect(found).toBeUndefined();
  else expect(found).toMatchObject(expected);
}

test('an accepted prediction is the user’s and keeps its concept', () =>
  check({ kind: 'accept', mark: 1 }, 1, { source: 'USER', state: 'accepted', concept: { id: 'A:1', name: 'Fever' }, by: 'ada' }));
test('a rejected mark is gone', () => check({ kind: 'reject', mark: 1 }, 1, null));
test('a picked concept has its name', () => check({ kind: 'concept', mark: 1, concept: 'A:9' }, 1, { concept: { id: 'A:9', name: 'Cough' } }));
test('NIL is a decision', () => check({ kind: 'nil', mark: 2 }, 2, { concept: null, is_nil: true, source: 'USER' }));
test('unsure leaves the source', () => check({ kind: 'unsure', mark: 2, value: true }, 2, { is_unsure: true, source: 'GOLD' }));
test('contexts are a decision', () => check({ kind: 'context', mark: 1, contexts: ['negated'] }, 1, { contexts: ['negated'], source: 'USER' }));
test('moved spans have their text, counted in code points', () => check({ kind: 'spans', mark: 1, spans: [[2, 11]] }, 1, { text: 'fever and' }));
test('a moved discontinuous mark joins its parts', () => check({ kind: 'spans', mark: 1, spans: [[2, 7], [12, 17]] }, 1, { text: 'fever cough' }));
test('an added mark is the user’s', () => check({ kind: 'add', spans: [[12, 17]], concept: 'A:9' }, -1, { text: 'cough', source: 'USER' }));
test('finishing removes predictions that contradict annotations', () => {
  const human = mark(8, { source: 'USER', state: 'accepted', concept: { id: 'X', name: 'x' }, type: 'Disease', spans: [[2, 7]] });
  const nested = mark(9, { concept: { id: 'Y', name: 'y' }, type: 'Anatomy', spans: [[2, 4]] });
  const marks = [human, mark(10, { concept: { id: 'Z', name: 'z' }, type: 'Disease', spans: [[2, 7]] }), mark(11, { concept: null, type: '', spans: [[2, 4]] }), nested];
  const made = apply({ ...doc, marks }, [{ kind: 'finish', value: true, accepts: 3 }], -1, () => undefined, 'me');
  expect(made.marks.map((one) => [one.id, one.state])).toEqual([[8, 'accepted'], [9, 'accepted']]);
});
test('finishing accepts open predictions', () => check({ kind: 'finish', value: true }, 1, { source: 'USER', state: 'accepted' }));
test('a prediction that repeats a decision is removed', () => {
  const gold = mark(3, { source: 'GOLD', state: 'accepted', concept: null });
  const three = { ...doc, marks: [...doc.marks, gold] };
  const linked = apply(three, [{ kind: 'concept', mark: 3, concept: 'A:1' }], -1, names, 'ada');
  expect(linked.marks.map((one) => one.id)).toEqual([2, 3]);
  const marked = apply(doc, [{ kind: 'add', spans: [[2, 7]], concept: 'A:9' }], -1, names, 'ada');
  expect(marked.marks.map((one) => [one.id, one.source])).toEqual([[2, 'GOLD'], [-1, 'USER']]);
  const answer = { version: 4, marks: [mark(1, { source: 'USER' })], removed: [], events: [], is_finished: false };
  expect([...idsOfAdded([{ kind: 'add', spans: [[2, 7]], concept: 'A:9' }], -1, answer, new Set([1, 2]))]).toEqual([[-1, 1]]);
});
test('the document itself is left as it was', () => expect(doc.marks[0]!.state).toBe('open'));

test('an answer replaces, adds and removes', () => {
  const merged = merge(doc, { version: 4, marks: [mark(1, { source: 'USER' }), mark(5)], removed: [2], events: [], is_finished: false });
  expect(merged.marks.map((one) => [one.id, one.source])).toEqual([[1, 'USER'], [5, 'PRED']]);
  expect(merged.version).toBe(4);
});
test('added marks get the ids of the server', () => {
  const decisions: Decision[] = [{ kind: 'add', spans: [[12, 17]], concept: null }, { kind: 'add', spans: [[2, 7]], concept: null }];
  const answer = { version: 4, marks: [mark(8), mark(9, { spans: [[12, 17]] })], removed: [], events: [], is_finished: false };
  const ids = idsOfAdded(decisions, -4, answer, new Set([1, 2]));
  expect([...ids]).toEqual([[-4, 9], [-5, 8]]);
  expect(withIds({ kind: 'nil', mark: -4 }, ids)).toEqual({ kind: 'nil', mark: 9 });
  expect(withIds({ kind: 'finish', value: true }, ids)).toEqual({ kind: 'finish', value: true });
});
