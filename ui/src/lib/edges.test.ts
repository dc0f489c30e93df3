import { expect, test } from 'vitest';
import { hold, joined, move, nextHeld } from './edges';

const text = 'breast and lung cancer found';
const shown = (edges: ReturnType<typeof hold>) => edges.spans.map((span) => text.slice(...span)).join('|');

test('the end of the last part is held first', () => {
  const edges = hold(1, [[0, 6], [16, 22]]);
  expect(edges.held).toBe(3);
  expect(shown(move(text, edges, 1, 'token'))).toBe('breast|cancer found');
});
test('the other edges follow in order', () => {
  const edges = nextHeld(hold(1, [[11, 22]]));
  expect(edges.held).toBe(0);
  expect(shown(move(text, edges, -1, 'token'))).toBe('and lung cancer');
  expect(shown(move(text, edges, 1, 'token'))).toBe('cancer');
});
test('by character', () => expect(shown(move(text, hold(1, [[0, 6]]), -1, 'character'))).toBe('breas'));
test('a part is never emptied', () => expect(shown(move(text, hold(1, [[0, 6]]), -1, 'token'))).toBe('breast'));
test('parts do not run into each other', () => {
  const edges = { ...hold(1, [[0, 6], [7, 10]]), held: 1 };
  expect(shown(move(text, edges, 1, 'token'))).toBe('breast|and');
});
test('parts that touch become one', () => expect(joined([[16, 22], [0, 6], [6, 10]])).toEqual([[0, 10], [16, 22]]));
