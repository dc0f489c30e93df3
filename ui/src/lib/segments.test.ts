import { expect, test } from 'vitest';
import { blocks, inOrder, levels, marksAt, runs, type Placed } from './segments';

const text = 'breast and lung cancer, again';
const nested: Placed[] = [
  { id: 1, spans: [[11, 22]] },
  { id: 2, spans: [[16, 22]] },
  { id: 3, spans: [[0, 6], [16, 22]] },
];

/** Every run as its text and the marks over it. */
function check(marks: Placed[], expected: string[]): void {
  const shown = runs(text.length, marks).map((run) => {
    const ids = run.marks.map((mark) => mark.id).sort();
    return ids.length ? `${text.slice(run.start, run.end)}:${ids}` : text.slice(run.start, run.end);
  });
  expect(shown).toEqual(expected);
}

test('no marks give one run', () => check([], [text]));
test('nested and discontinuous marks are kept', () =>
  check(nested, ['breast:3', ' and ', 'lung :1', 'cancer:1,2,3', ', again']));
test('overlapping marks are split where they overlap', () =>
  check([{ id: 1, spans: [[0, 10]] }, { id: 2, spans: [[7, 15]] }], ['breast :1', 'and:1,2', ' lung:2', ' cancer, again']));
test('two marks of one span are kept', () =>
  check([{ id: 1, spans: [[0, 6]] }, { id: 2, spans: [[0, 6]] }], ['breast:1,2', text.slice(6)]));
test('touching parts of one mark stay open', () => check([{ id: 1, spans: [[0, 6], [6, 10]] }], ['breast:1', ' and:1', text.slice(10)]));
test('spans beyond the text are cut, empty ones left out', () =>
  check([{ id: 1, spans: [[24, 99]] }, { id: 2, spans: [[3, 3]] }], [text.slice(0, 24), 'again:1']));

test('runs cover the text once, whatever the marks', () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  for (let round = 0; round < 200; round++) {
    const marks: Placed[] = Array.from({ length: random(12) }, (_, id) => {
      const start = random(60);
      const middle = start + 1 + random(12);
      const spans: Placed['spans'] = [[start, middle]];
      if (random(3) === 0) spans.push([middle + random(5), middle + 6 + random(9)]);
      return { id, spans };
    });
    const found = runs(60, marks);
    expect(found[0]!.start).toBe(0);
    expect(found.at(-1)!.end).toBe(60);
    found.slice(1).forEach((run, row) => expect(run.start).toBe(found[row]!.end));
    for (let at = 0; at < 60; at++) {
      const run = found.find((one) => one.start <= at && at < one.end)!;
      expect(run.marks.map((mark) => mark.id).sort()).toEqual(marksAt(marks, at).sort());
      expect(new Set(run.marks.map((mark) => mark.level)).size).toBe(run.marks.length);
    }
  }
});

test('the shorter mark lies closer to the text', () => {
  const found = levels(nested);
  expect([found.get(2), found.get(1), found.get(3)]).toEqual([0, 1, 2]);
});
test('a click means the shortest mark first', () => expect(marksAt(nested, 17)).toEqual([2, 1, 3]));
test('marks are in text order', () => expect(inOrder(nested).map((mark) => mark.id)).toEqual([3, 1, 2]));

test('blocks are lines and sections', () => {
  const body = 'Title\r\nOne 😀.\n\nTwo.';
  const found = blocks(body, [{ id: 1, spans: [[4, 10]] }], [{ kind: 'title', start: 0, end: 7 }]);
  expect(found.map((block) => body.slice(block.start, block.end))).toEqual(['Title\r\n', 'One 😀.\n', '\n', 'Two.']);
  expect(found.map((block) => block.kind)).toEqual(['title', 'text', 'text', 'text']);
  expect(found.flatMap((block) => block.runs).map((run) => body.slice(run.start, run.end)).join('')).toBe(body);
});

test('a thousand marks in ten thousand words', () => {
  const long = 'word '.repeat(10_000);
  const marks = Array.from({ length: 1000 }, (_, id) => ({ id, spans: [[id * 50, id * 50 + 14]] as Placed['spans'] }));
  const { runs } = blocks(long, marks)[0]!;
  expect(runs.filter((run) => run.marks.length === 1).length).toBe(1000);
  expect(runs.map((run) => long.slice(run.start, run.end)).join('')).toBe(long);
});
