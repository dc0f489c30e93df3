import { expect, test } from 'vitest';
import { selectionAfter } from './select';
import type { Span } from './types';

const TEXT = 'A boy had fever.';
const check = (now: Span | null, more: object, expected: string | null) => {
  const found = selectionAfter(TEXT, now, { anchor: now?.[0] ?? 0, here: 2, isForward: true, extends: false, step: 'token', ...more });
  expect(found && TEXT.slice(...found.span)).toBe(expected);
};

test('the first key selects the word at the focused mention', () => check(null, {}, 'boy'));
test('keys move to the next and the previous word', () => {
  check([2, 5], {}, 'had');
  check([6, 9], { isForward: false }, 'boy');
});
test('Shift moves one end and never crosses the other', () => {
  check([2, 5], { extends: true }, 'boy had');
  check([2, 9], { extends: true, isForward: false }, 'boy');
  check([2, 5], { extends: true, isForward: false }, null);
});
