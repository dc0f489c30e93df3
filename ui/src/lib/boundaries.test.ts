import { expect, test } from 'vitest';
import { editBoundaries, mergeSpans, moveBoundary, activateNext } from './boundaries';

const text = 'breast and lung cancer found';
const shown = (boundaries: ReturnType<typeof editBoundaries>) => boundaries.spans.map((span) => text.slice(...span)).join('|');

test('the end of the last part is active first', () => {
  const boundaries = editBoundaries(1, [[0, 6], [16, 22]]);
  expect(boundaries.active).toBe(3);
  expect(shown(moveBoundary(text, boundaries, 1, 'token'))).toBe('breast|cancer found');
});
test('the other boundaries follow in order', () => {
  const boundaries = activateNext(editBoundaries(1, [[11, 22]]));
  expect(boundaries.active).toBe(0);
  expect(shown(moveBoundary(text, boundaries, -1, 'token'))).toBe('and lung cancer');
  expect(shown(moveBoundary(text, boundaries, 1, 'token'))).toBe('cancer');
});
test('by character', () => expect(shown(moveBoundary(text, editBoundaries(1, [[0, 6]]), -1, 'character'))).toBe('breas'));
test('a part is never emptied', () => expect(shown(moveBoundary(text, editBoundaries(1, [[0, 6]]), -1, 'token'))).toBe('breast'));
test('parts do not run into each other', () => {
  const boundaries = { ...editBoundaries(1, [[0, 6], [7, 10]]), active: 1 };
  expect(shown(moveBoundary(text, boundaries, 1, 'token'))).toBe('breast|and');
});
test('touching parts are merged', () => expect(mergeSpans([[16, 22], [0, 6], [6, 10]])).toEqual([[0, 10], [16, 22]]));
