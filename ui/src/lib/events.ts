// Server-sent events of a project, over one stream that all tabs of the browser share. Browsers without shared workers poll instead: a stream in each tab
// would use up the connections.

import type { RelayMessage } from './relay';
import type { ImportReport, Job } from './types';

export interface Handlers {
  job?: (job: Job) => void;
  document?: (changed: { id: number; version: number }) => void;
  import?: (report: ImportReport) => void;
  /** The stream was reconnected, or there is none: events may have been missed. */
  again?: () => void;
}

/** Polling interval without shared workers, in milliseconds. */
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
    worker?.port.postMessage('close');
    worker = null;
    // A page restored from the back/forward cache reconnects.
    if (event.persisted) addEventListener('pageshow', () => (connect(), broadcast({ kind: 'again' })), { once: true });
  }, { once: true });
}

/** Subscribes to the events of a project; returns the function to unsubscribe. */
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
      // A malformed event is ignored; the next load of the page shows the current state.
    }
  };
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
