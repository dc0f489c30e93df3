import { expect, test } from 'vitest';
import { grab, mergeSpans, moveBoundary, grabNext } from './boundaries';

const text = 'breast and lung cancer found';
const shown = (boundaries: ReturnType<typeof grab>) => boundaries.spans.map((span) => text.slice(...span)).join('|');

test('the end of the last part is held first', () => {
  const boundaries = grab(1, [[0, 6], [16, 22]]);
  expect(boundaries.active).toBe(3);
  expect(shown(moveBoundary(text, boundaries, 1, 'token'))).toBe('breast|cancer found');
});
test('the other boundaries follow in order', () => {
  const boundaries = grabNext(grab(1, [[11, 22]]));
  expect(boundaries.active).toBe(0);
  expect(shown(moveBoundary(text, boundaries, -1, 'token'))).toBe('and lung cancer');
  expect(shown(moveBoundary(text, boundaries, 1, 'token'))).toBe('cancer');
});
test('by character', () => expect(shown(moveBoundary(text, grab(1, [[0, 6]]), -1, 'character'))).toBe('breas'));
test('a part is never emptied', () => expect(shown(moveBoundary(text, grab(1, [[0, 6]]), -1, 'token'))).toBe('breast'));
test('parts do not run into each other', () => {
  const boundaries = { ...grab(1, [[0, 6], [7, 10]]), active: 1 };
  expect(shown(moveBoundary(text, boundaries, 1, 'token'))).toBe('breast|and');
});
test('parts that touch become one', () => expect(mergeSpans([[16, 22], [0, 6], [6, 10]])).toEqual([[0, 10], [16, 22]]));
