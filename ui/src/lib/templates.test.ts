import { expect, test } from 'vitest';
import { TEMPLATES, typesOf } from './templates';

test('a template annotates those of its types that the terminology has', () => {
  const [notes, drugs] = TEMPLATES;
  expect(typesOf(notes!, ['Anatomy', 'Disease', 'Drug', 'Symptom'])).toEqual(['Disease', 'Symptom']);
  expect(typesOf(drugs!, ['Anatomy', 'Disease', 'Drug', 'Symptom'])).toEqual(['Disease', 'Drug', 'Symptom']);
  expect(typesOf(notes!, ['Disease'])).toEqual([]);
});
