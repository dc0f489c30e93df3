import { expect, test } from 'vitest';
import { threadsOf } from './threads';

test('replies belong to their first comment', () => {
  const one = (id: number, parent: number | null, resolved_by: string | null = null) => ({ id, parent, resolved_by, mark: null, text: `${id}`, by: 'ada', at: '' });
  const threads = threadsOf([one(1, null, 'ben'), one(2, null), one(3, 1), one(4, 1)]);
  expect(threads.map(({ first, replies, isResolved }) => [first.id, replies.map((reply) => reply.id), isResolved])).toEqual([[1, [3, 4], true], [2, [], false]]);
});
