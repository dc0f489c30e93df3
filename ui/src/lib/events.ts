// Events that the server sends of a project, by one stream that all tabs of the browser share. Where a browser has no shared workers, pages ask now and
// then instead: a stream in each tab would use up the connections.

import type { RelayMessage } from './relay';
import type { ImportReport, Job } from './types';

export interface Handlers {
  job?: (job: Job) => void;
  document?: (changed: { id: number; version: number }) => void;
  import?: (report: ImportReport) => void;
  /** The connection is back, or there is none: what happened meanwhile is not known. */
  again?: () => void;
}

/** How often pages ask where there are no shared workers. */
const POLL_INTERVAL = 10_000;

const listeners = new Set<(received: RelayMessage) => void>();
let worker: SharedWorker | null = null;

function broadcast(received: RelayMessage): void {
  for (const listener of listeners) listener(received);
}

function connect(): void {
  if (worker) return;
  worker = new SharedWorker(new URL('./relay.worker.ts', import.meta.url), { type: 'module', name: 'canonym events' });
  worker.port.onmessage = (message: MessageEvent<RelayMessage>) => broadcast(message.data);
  worker.port.start();
  addEventListener('pagehide', (event) => {
    worker?.port.postMessage('leaves');
    worker = null;
    // A page that comes back out of the cache of the browser listens again.
    if (event.persisted) addEventListener('pageshow', () => (connect(), broadcast({ kind: 'again' })), { once: true });
  }, { once: true });
}

/** Listens until the function that it gives is called. */
export function events(project: number, handlers: Handlers): () => void {
  if (typeof SharedWorker === 'undefined') {
    const timer = setInterval(() => handlers.again?.(), POLL_INTERVAL);
    return () => clearInterval(timer);
  }
  connect();
  const listener = (received: RelayMessage) => {
    if (received.kind === 'again') return handlers.again?.();
    if (received.project !== project) return;
    const handle = handlers[received.event as keyof Handlers] as ((data: unknown) => void) | undefined;
    try {
      handle?.(JSON.parse(received.data));
    } catch {
      // An event that cannot be read says nothing; the next load of the page shows what is so.
    }
  };
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
