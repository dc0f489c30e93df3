import { expect, test } from 'vitest';
import { contextLabel, toggled } from './contexts';

test('contexts of one kind exclude each other', () => {
  expect(toggled(['negated', 'family'], 'possible')).toEqual(['possible', 'family']);
  expect(toggled(['possible', 'family'], 'possible')).toEqual(['family']);
  expect(toggled(['family'], 'historical')).toEqual(['historical', 'family']);
});
test('contexts are shown in short', () => expect(contextLabel(['family', 'negated'])).toBe('neg fam'));
