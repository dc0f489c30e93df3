// Whether a document was in a prediction run that found nothing in it.

import type { HistoryEvent, Job } from './types';

/** Whether a run that finished began after the document was imported. */
export function wasPredicted(history: HistoryEvent[], jobs: Job[]): boolean {
  const imported = history.find((event) => event.kind === 'import')?.at;
  if (!imported) return false;
  return jobs.some((job) => job.state === 'SUCCEEDED' && !!job.started_at && Date.parse(job.started_at) >= Date.parse(imported));
}
