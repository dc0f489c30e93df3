import { expect, test } from 'vitest';
import { IDLE_AFTER, Stopwatch } from './work-timer';

test('pauses and hidden tabs are left out', () => {
  const watch = new Stopwatch();
  watch.activity(0);
  watch.activity(10_000);
  watch.activity(10_000 + IDLE_AFTER);
  watch.activity(10_000 + 2 * IDLE_AFTER + 1);
  expect(watch.milliseconds).toBe(70_000);
  watch.hide(200_000);
  watch.activity(210_000);
  watch.activity(215_000);
  expect(watch.milliseconds).toBe(75_000);
});

test('taken time is not counted again, stored time is', () => {
  const watch = new Stopwatch(4_000);
  watch.activity(0);
  expect(watch.take(1_250)).toBe(5.3);
  watch.activity(2_250);
  expect(watch.milliseconds).toBe(1_000);
});

test('a clock that goes back adds nothing', () => {
  const watch = new Stopwatch();
  watch.activity(5_000);
  watch.activity(1_000);
  expect(watch.milliseconds).toBe(0);
});
