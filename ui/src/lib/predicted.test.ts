import { expect, test } from 'vitest';
import { wasPredicted } from './predicted';
import type { HistoryEvent, Job } from './types';

const history: HistoryEvent[] = [{ id: 1, kind: 'import', by: 'local', at: '2026-11-30T03:00:00Z', what: 'imported with 0 annotations' }];
const job = (started_at: string, state = 'SUCCEEDED') => ({ id: 1, kind: 'predict', state, started_at }) as unknown as Job;

test('a finished run after the import has predicted the document', () => {
  expect(wasPredicted(history, [job('2026-11-30T03:00:05.5Z')])).toBe(true);
  expect(wasPredicted(history, [job('2026-11-30T02:59:00Z')])).toBe(false);
  expect(wasPredicted(history, [job('2026-11-30T03:01:00Z', 'FAILED')])).toBe(false);
  expect(wasPredicted([], [job('2026-11-30T03:01:00Z')])).toBe(false);
});
