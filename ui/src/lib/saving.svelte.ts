// The outbox of this window, and the open documents that listen to it.

import { api, announce, notify } from './app.svelte';
import { ApiError, errorText } from './api';
import { uuid } from './ids';
import { Outbox, saveText, type Entry, type SaveState, type Store } from './outbox';
import type { DecisionAnswer } from './types';

export const saving = $state({ state: 'saved' as SaveState, nWaiting: 0 });

export interface Listener {
  acknowledged(entry: Entry, answer: DecisionAnswer): void;
  refused(entry: Entry, error: unknown): void;
}

const listeners = new Map<number, Listener>();

export const outbox = new Outbox(storage(), {
  send(entry) {
    if (entry.kind === 'undo') return api.undo(entry.document, entry.client_id);
    if (entry.kind === 'redo') return api.redo(entry.document, entry.client_id);
    return api.decide(entry.document, entry.version, entry.client_id, entry.decisions);
  },
  acknowledged: (entry, answer) => listeners.get(entry.document)?.acknowledged(entry, answer),
  refused(entry, error) {
    const listener = listeners.get(entry.document);
    if (listener) listener.refused(entry, error);
    else notify(`A decision on document ${entry.document} was not saved: ${errorText(error)}`, 'error');
  },
  changed(state, nWaiting) {
    if (state === 'offline' && saving.state !== 'offline') announce(saveText(state, nWaiting));
    saving.state = state;
    saving.nWaiting = nWaiting;
  },
  later: (milliseconds, run) => void setTimeout(run, milliseconds),
});

/** Undoes the last decision on a document, sent or not. */
export function undoIn(document: number): void {
  if (!outbox.withdraw(document)) outbox.add({ client_id: uuid(), document, kind: 'undo', decisions: [], version: null, firstId: 0 });
}

/** Resolves when all decisions are saved or the server is unreachable. */
export async function saved(): Promise<void> {
  while (saving.state === 'saving') await new Promise((resolve) => setTimeout(resolve, 25));
}

export function listen(document: number, listener: Listener): () => void {
  listeners.set(document, listener);
  return () => {
    if (listeners.get(document) === listener) listeners.delete(document);
  };
}

/** Whether an error says that another user changed the same mark. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.kind === 'conflict';

export function startSaving(): void {
  addEventListener('online', () => void outbox.flush());
  // Unsaved decisions are sent at the next visit; warn before leaving while offline.
  addEventListener('beforeunload', (event) => {
    if (saving.state === 'offline') event.preventDefault();
  });
  void outbox.flush();
}

function storage(): Store {
  try {
    localStorage.getItem('canonym.outbox');
    return localStorage;
  } catch {
    const items = new Map<string, string>();
    return {
      getItem: (key) => items.get(key) ?? null,
      setItem: (key, value) => void items.set(key, value),
      removeItem: (key) => void items.delete(key),
      get length() {
        return items.size;
      },
      key: (row) => [...items.keys()][row] ?? null,
    };
  }
}
