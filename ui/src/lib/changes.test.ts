import { expect, test } from 'vitest';
import { extentOf, changeText } from './changes';
import type { ChangedMark } from './types';

const side = (name: string | null, score: number) => ({ concept: name ? { id: 'X:1', name } : null, score });
const mark = (fields: Partial<ChangedMark>): ChangedMark => ({ mark: 1, change: 'added', spans: [[0, 5]], text: 'fever', type: '', before: null, after: null, ...fields });

test('a change names the prediction before it', () => {
  expect(changeText(mark({ after: side('Fever', 0.62) }))).toBe('“fever”, added: Fever .62');
  expect(changeText(mark({ change: 'removed', before: side(null, 0.5) }))).toBe('“fever”, removed: not linked .50');
  expect(changeText(mark({ change: 'relinked', before: side('Pain', 0.51), after: side('Fever', 0.62) }))).toBe('“fever”, relinked: Fever .62 (was Pain .51)');
});

test('the extent covers all parts', () => {
  expect(extentOf([[7, 9], [2, 4]])).toEqual([2, 9]);
});
