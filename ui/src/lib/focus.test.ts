import { expect, test } from 'vitest';
import { contextOf, threeOf } from './focus';
import type { Mark, PickerCandidate } from './types';

test('the context is cut between words and keeps the parts of a mention apart', () => {
  const text = `${'before '.repeat(60)}breast and lung cancer${' after'.repeat(60)}`;
  const at = text.indexOf('breast');
  const parts = contextOf(text, [[at, at + 6], [at + 16, at + 22]]);
  expect(parts.filter((part) => part.isMention).map((part) => part.text)).toEqual(['breast', 'cancer']);
  expect(parts.map((part) => part.text).join('')).toMatch(/^… before .*before breast and lung cancer after.* after …$/);
  expect(contextOf('fever', [[0, 5]])).toEqual([{ text: 'fever', isMention: true }]);
});

test('the candidates of the prediction come first, others fill up to three', () => {
  const mark = { candidates: [{ id: 'A', name: 'a', score: 0.7 }, { id: 'B', name: 'b', score: 0.2 }] } as Mark;
  const other = (id: string, how: string) => ({ id, name: id, score: 0.5, how, definition: `${id}?` }) as PickerCandidate;
  expect(threeOf(mark, []).map((one) => one.id)).toEqual(['A', 'B']);
  expect(threeOf(mark, [other('B', 'model'), other('C', 'fuzzy'), other('D', 'fuzzy')]).map((one) => [one.id, one.score, one.definition])).toEqual([['A', 0.7, null], ['B', 0.2, 'B?'], ['C', null, 'C?']]);
});
