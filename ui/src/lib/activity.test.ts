import { expect, test } from 'vitest';
import { PAUSE, Stopwatch } from './activity';

test('pauses and hidden tabs are left out', () => {
  const watch = new Stopwatch();
  watch.sign(0);
  watch.sign(10_000);
  watch.sign(10_000 + PAUSE);
  watch.sign(10_000 + 2 * PAUSE + 1);
  expect(watch.milliseconds).toBe(70_000);
  watch.hide(200_000);
  watch.sign(210_000);
  watch.sign(215_000);
  expect(watch.milliseconds).toBe(75_000);
});

test('what was taken is not counted again, and what was measured before is', () => {
  const watch = new Stopwatch(4_000);
  watch.sign(0);
  expect(watch.take(1_250)).toBe(5.3);
  watch.sign(2_250);
  expect(watch.milliseconds).toBe(1_000);
});

test('a clock that goes back counts nothing', () => {
  const watch = new Stopwatch();
  watch.sign(5_000);
  watch.sign(1_000);
  expect(watch.milliseconds).toBe(0);
});
