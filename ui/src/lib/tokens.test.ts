import { expect, test } from 'vitest';
import { boundaryAfter, boundaryBefore, snapToWords, tokens, trimSpan } from './tokens';

const text = 'A 😀 dry-cough, né\u0301ph (CKD).';

function check(from: string, expected: string | null, at = text.indexOf(from)): void {
  const span = snapToWords(text, [at, at + from.length]);
  expect(span && text.slice(...span)).toBe(expected);
}

test('a selection expands to whole words', () => check('oug', 'cough'));
test('surrounding whitespace is trimmed', () => check(' dry', 'dry'));
test('a selection of whitespace is empty', () => check(' ', null));
test('marks stay with their letters', () => check('\u0301', 'né\u0301ph'));
test('brackets are not included', () => check('KD', 'CKD'));
test('an emoji is kept whole', () => {
  expect(trimSpan(text, [3, 4])).toEqual([2, 4]);
  expect(trimSpan(text, [2, 4])).toEqual([2, 4]);
});
test('tokens are words and single symbols', () => {
  expect(tokens(text).map((span) => text.slice(...span))).toEqual(['A', '😀', 'dry', '-', 'cough', ',', 'né\u0301ph', '(', 'CKD', ')', '.']);
});

test('the end moves by token', () => {
  const dry = text.indexOf('dry') + 3;
  const hyphen = boundaryAfter(text, dry, 'end', 'token');
  expect(text.slice(0, hyphen)).toBe('A 😀 dry-');
  expect(boundaryAfter(text, hyphen, 'end', 'token')).toBe(text.indexOf(','));
  expect(boundaryBefore(text, hyphen, 'end', 'token')).toBe(dry);
});
test('the start moves by token', () => {
  const cough = text.indexOf('cough');
  expect(boundaryBefore(text, cough, 'start', 'token')).toBe(cough - 1);
  expect(boundaryBefore(text, text.indexOf('dry'), 'start', 'token')).toBe(2);
  expect(boundaryAfter(text, 2, 'start', 'token')).toBe(text.indexOf('dry'));
});
test('boundaries move by whole characters', () => {
  expect(boundaryAfter(text, 2, 'end', 'character')).toBe(4);
  expect(boundaryBefore(text, 4, 'end', 'character')).toBe(2);
  const n = text.indexOf('né') + 1;
  expect(boundaryAfter(text, n, 'end', 'character')).toBe(n + 2);
});
test('boundaries stay inside the text', () => {
  expect(boundaryAfter(text, text.length, 'end', 'token')).toBe(text.length);
  expect(boundaryBefore(text, 0, 'start', 'token')).toBe(0);
});
