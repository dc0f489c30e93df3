// Events that the server sends of a project. The browser connects again by itself.

import { api } from './app.svelte';
import type { ImportReport, Job } from './types';

export interface Handlers {
  job?: (job: Job) => void;
  document?: (changed: { id: number; version: number }) => void;
  import?: (report: ImportReport) => void;
  /** The connection is back: what happened meanwhile is not known. */
  again?: () => void;
}

/** Listens until the function that it gives is called. */
export function events(project: number, handlers: Handlers): () => void {
  const source = new EventSource(api.eventsAddress(project));
  let wasLost = false;
  const on = <T>(name: string, handle?: (data: T) => unknown) => {
    if (!handle) return;
    source.addEventListener(name, (event) => {
      try {
        handle(JSON.parse((event as MessageEvent<string>).data) as T);
      } catch {
        // An event that cannot be read says nothing; the next load of the page shows what is so.
      }
    });
  };
  on('job', handlers.job);
  on('document', handlers.document);
  on('import', handlers.import);
  source.addEventListener('error', () => (wasLost = true));
  source.addEventListener('open', () => {
    if (wasLost) handlers.again?.();
    wasLost = false;
  });
  return () => source.close();
}
