import { expect, test } from 'vitest';
import { OffsetMap, textOf } from './offsets';

/** Every code point of a text and back again. */
function check(text: string): void {
  const map = new OffsetMap(text);
  const points = [...text];
  expect(map.nPoints).toBe(points.length);
  let unit = 0;
  for (let point = 0; point <= points.length; point++) {
    expect(map.toUnits(point)).toBe(unit);
    expect(map.toPoints(unit)).toBe(point);
    unit += points[point]?.length ?? 0;
  }
  expect(map.toUnits(points.length)).toBe(text.length);
}

test('ascii offsets stay', () => check('dry cough'));
test('emoji are one code point and two units', () => check('😀 fever 🤒🤒 x'));
test('joined emoji are several code points', () => check('👩‍⚕️ saw 👨‍👩‍👧'));
test('combining marks count for themselves', () => check('ne\u0301phrite a\u0308\u0323'));
test('letters outside of the basic plane', () => check('𝛼-synuclein 𐍈'));
test('line ends of two characters stay two', () => check('One.\r\nTwo 😀.\r\n'));
test('a lone surrogate is a code point', () => {
  const map = new OffsetMap('a\ud83d b');
  expect(map.nPoints).toBe(4);
});
test('an offset inside a pair is rounded down', () => {
  const map = new OffsetMap('a😀b');
  expect(map.toPoints(2)).toBe(1);
});
test('offsets beyond the text are its end', () => {
  const map = new OffsetMap('a😀');
  expect([map.toPoints(99), map.toUnits(99), map.toUnits(-1)]).toEqual([2, 3, 0]);
});
test('text of a discontinuous mention', () => {
  const text = '😀 breast and lung cancer';
  expect(textOf(text, new OffsetMap(text), [[2, 8], [18, 24]])).toBe('breast cancer');
});
