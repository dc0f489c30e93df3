import { expect, test } from 'vitest';
import { actionOf, KEYMAP, keymapWith, mainKey, printed, refusal } from './keys';

const press = (key: string, more = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, isTyping: false, ...more });

function check(key: string, expected: string | null, more = {}): void {
  expect(actionOf(press(key, more))?.action ?? null).toBe(expected);
}

test('keys are case-sensitive', () => {
  check('j', 'next-open');
  check('J', 'next-document');
  check('u', 'undo');
  check('U', 'redo');
});
test('a digit picks a candidate', () => expect(actionOf(press('3'))).toEqual({ action: 'pick', row: 2 }));
test('typing into a field decides nothing', () => {
  check('a', null, { isTyping: true });
  check('Escape', 'escape', { isTyping: true });
});
test('key combinations belong to the browser, except undo', () => {
  check('a', null, { ctrlKey: true });
  check('z', 'undo', { ctrlKey: true });
  check('Z', 'redo', { metaKey: true });
  check('z', null, { ctrlKey: true, isTyping: true });
});
test('keys are unique', () => {
  const keys = KEYMAP.flatMap((row) => row.keys);
  expect(new Set(keys).size).toBe(keys.length);
});
test('digits are printed as a range', () => expect(printed(KEYMAP.find((row) => row.action === 'pick')!)).toEqual(['1', '…', '9']));

test('single-key shortcuts can be turned off, other keys stay', () => {
  const press = (key: string, hasLetters: boolean) => actionOf({ key, ctrlKey: false, metaKey: false, altKey: false, isTyping: false, hasLetters })?.action ?? null;
  expect([press('a', true), press('a', false), press('/', false), press('3', false), press('Escape', false), press('Enter', false)]).toEqual(['accept', null, null, null, 'escape', 'pick-first']);
});

test('keys can be changed, and a key has one action', () => {
  const keymap = keymapWith({ accept: 'y', pick: 'q' });
  expect([actionOf(press('y'), keymap)?.action, actionOf(press('a'), keymap), mainKey(keymap, 'accept'), mainKey(keymap, 'pick')]).toEqual(['accept', null, 'y', '1']);
  expect([refusal(keymap, 'reject', 'y'), refusal(keymap, 'reject', 'a'), refusal(keymap, 'accept', 'y')]).toEqual(['This key is used for “accept”; change that one first.', null, null]);
  expect([' ', 'Tab', 'ArrowUp', 'Escape', '3'].map((key) => refusal(keymap, 'reject', key) !== null)).toEqual([true, true, true, true, true]);
  expect(refusal(keymap, 'reject', 'F2')).toBe(null);
});
