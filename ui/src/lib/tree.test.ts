import { expect, test } from 'vitest';
import { placeOf, visibleRows, type TreeNode } from './tree';

const node = (id: string, n_children = 0): TreeNode => ({ id, name: id, n_children });
const children = new Map([['A', [node('B', 1), node('C')]], ['B', [node('A', 2)]]]);
const shown = (...open: string[][]) => visibleRows([node('A', 2), node('C')], children, new Set(open.map(placeOf))).map((row) => row.path.join('/'));

test('children of open nodes follow them', () => {
  expect(shown()).toEqual(['A', 'C']);
  expect(shown(['A'])).toEqual(['A', 'A/B', 'A/C', 'C']);
});
test('a cycle ends', () => expect(shown(['A'], ['A', 'B'], ['A', 'B', 'A'])).toEqual(['A', 'A/B', 'A/B/A', 'A/C', 'C']));
