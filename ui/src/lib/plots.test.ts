import { expect, test } from 'vitest';
import { label, line, runningMedian, scale, ticks } from './plots';

test('ticks are round and cover the range', () => {
  expect(ticks(0, 10)).toEqual([0, 2.5, 5, 7.5, 10]);
  expect(ticks(0.12, 1.6)).toEqual([0, 0.5, 1, 1.5, 2]);
  expect(ticks(0, 240)).toEqual([0, 100, 200, 300]);
  expect(ticks(3, 3)).toEqual([3]);
  expect(ticks(0, 1, 4, true)).toEqual([0, 1]);
  expect(ticks(0, 6, 4, true)).toEqual([0, 2, 4, 6]);
});
test('a scale maps ends to ends, also reversed', () => {
  const y = scale([0, 2], [100, 0]);
  expect([y(0), y(1), y(2)]).toEqual([100, 50, 0]);
  expect(scale([1, 1], [0, 9])(1)).toBe(0);
});
test('a line starts with a move', () => expect(line([[0, 1], [2.345, 3]])).toBe('M0 1L2.3 3'));
test('axis labels are short', () => expect([label(0.5), label(20_000), label(7), label(-0.25)]).toEqual(['.5', '20k', '7', '-.25']));

test('a running median ignores an outlier', () => {
  const points: [number, number][] = [[1, 5], [2, 900], [3, 6], [4, 4]];
  expect(runningMedian(points, 3).map(([, y]) => y)).toEqual([900, 6, 6, 6]);
  expect(runningMedian([], 3)).toEqual([]);
});
