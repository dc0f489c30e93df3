import { expect, test } from 'vitest';
import { boundariesOf, boundariesDiffer, keepAnswer, keepConcept, adjudicationAction, annotatorNames, answerText } from './adjudication';
import type { Answer, Disagreement } from './types';

const claim = (start: number, end: number, concept: string | null) => ({ mark: start, spans: [[start, end] as [number, number]], text: `${start}..${end}`, concept: concept ? { id: concept, name: `name of ${concept}` } : null });
const answer = (names: string[], ...claims: Answer['claims']): Answer => ({ people: names.map((name) => ({ name, at: '' })), claims });
const one = (...answers: Answer[]): Disagreement => ({ document: 1, external_id: 'a', version: 1, marks: [1], start: 0, end: 9, text: '', before: '', behind: '', answers, is_reopened: false });

test('keys accept answers and move', () => {
  expect(adjudicationAction('3')).toEqual({ action: 'pick', row: 2 });
  expect(adjudicationAction('j')).toEqual({ action: 'next', row: 0 });
  expect(adjudicationAction('q')).toBeNull();
});

test('accepting an answer keeps its mentions', () => {
  expect(keepAnswer(answer(['ada'], claim(0, 5, 'X:1'), claim(2, 5, null)))).toEqual([
    { spans: [[0, 5]], concept: 'X:1', is_nil: false },
    { spans: [[2, 5]], concept: null, is_nil: true },
  ]);
  expect(keepAnswer(answer(['ada']))).toEqual([]);
  expect(keepConcept([[0, 5]], null)).toEqual([{ spans: [[0, 5]], concept: null, is_nil: true }]);
});

test('boundaries are listed once each', () => {
  const found = one(answer(['ada'], claim(0, 5, 'X:1')), answer(['bob'], claim(2, 5, 'X:1')), answer(['cyd'], claim(0, 5, 'X:2')));
  expect(boundariesOf(found).map((one) => one.text)).toEqual(['0..5', '2..5']);
  expect(boundariesDiffer(found)).toBe(true);
  expect(boundariesDiffer(one(answer(['ada'], claim(0, 5, 'X:1')), answer(['bob'])))).toBe(false);
});

test('answers in words', () => {
  expect(annotatorNames(answer(['ada', 'bob', 'cyd']))).toBe('ada, bob and cyd');
  expect(answerText(answer(['ada']))).toBe('not a mention');
  expect(answerText(answer(['ada'], claim(0, 5, 'X:1'), claim(2, 5, null)))).toBe('name of X:1 and no matching concept');
});
