// Unsaved decisions. Each is kept in the browser's storage until the server has it, is sent in order, and has an id of its own, so that
// sending it twice applies it once.

import { ApiError } from './api';
import type { Decision, DecisionAnswer } from './types';

export interface Entry {
  client_id: string;
  document: number;
  kind: 'decide' | 'undo' | 'redo';
  decisions: Decision[];
  version: number | null;
  /** The temporary, negative id of the first added mark. */
  firstId: number;
  /** Position among all entries of this browser. */
  order: number;
}

export type SaveState = 'saved' | 'saving' | 'offline';

export interface Store {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
  readonly length: number;
  key(row: number): string | null;
}

export interface Hooks {
  send(entry: Entry): Promise<DecisionAnswer>;
  /** The server has the entry. May change waiting entries with `rewrite`. */
  acknowledged(entry: Entry, answer: DecisionAnswer): void;
  /** The server rejected the entry; it is dropped. */
  refused(entry: Entry, error: unknown): void;
  changed(state: SaveState, nWaiting: number): void;
  /** Schedules a retry; a test controls the time. */
  later(milliseconds: number, run: () => void): void;
}

const PREFIX = 'canonym.outbox.';
const MAX_DELAY = 15_000;
/** The number of attempts when the server fails; one bad entry must not block all others. */
const MAX_ATTEMPTS = 5;

export class Outbox {
  private entries: Entry[] = [];
  private isSending = false;
  private isOffline = false;
  private nFailures = 0;
  private nextOrder = 1;

  constructor(
    private readonly store: Store,
    private readonly hooks: Hooks,
  ) {
    for (let row = 0; row < store.length; row++) {
      const key = store.key(row);
      if (!key?.startsWith(PREFIX)) continue;
      const entry = read(store.getItem(key));
      if (entry) this.entries.push(entry);
    }
    this.entries.sort((a, b) => a.order - b.order);
    this.nextOrder = (this.entries.at(-1)?.order ?? 0) + 1;
  }

  get state(): SaveState {
    if (!this.entries.length) return 'saved';
    return this.isOffline ? 'offline' : 'saving';
  }

  get nWaiting(): number {
    return this.entries.length;
  }

  /** The waiting entries of a document, in order. */
  of(document: number): readonly Entry[] {
    return this.entries.filter((entry) => entry.document === document);
  }

  add(entry: Omit<Entry, 'order'>): void {
    const kept = { ...entry, order: this.nextOrder++ };
    this.entries.push(kept);
    this.keep(kept);
    this.report();
    void this.flush();
  }

  /** Withdraws the last entry of a document if it was not sent yet. */
  withdraw(document: number): Entry | null {
    const last = this.entries.findLast((entry) => entry.document === document);
    if (!last || last.kind !== 'decide' || (this.isSending && last === this.entries[0])) return null;
    this.drop(last);
    this.report();
    return last;
  }

  /** Changes the waiting entries of a document. */
  rewrite(document: number, change: (entry: Entry) => Entry): void {
    this.entries = this.entries.map((entry) => {
      if (entry.document !== document) return entry;
      const changed = change(entry);
      this.keep(changed);
      return changed;
    });
  }

  /** Sends the waiting entries one by one; if the server is unreachable, stops and retries later. */
  async flush(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    try {
      while (this.entries.length) {
        const entry = this.entries[0]!;
        try {
          const answer = await this.hooks.send(entry);
          this.nFailures = 0;
          this.isOffline = false;
          this.drop(entry);
          this.hooks.acknowledged(entry, answer);
        } catch (error) {
          if (error instanceof ApiError && this.isRetryable(error)) {
            this.isOffline = true;
            this.nFailures++;
            const wait = error.retryAfter ? error.retryAfter * 1000 : 500 * 2 ** Math.min(this.nFailures, 6);
            this.hooks.later(Math.min(wait, MAX_DELAY), () => void this.flush());
            return;
          }
          this.nFailures = 0;
          this.drop(entry);
          this.hooks.refused(entry, error);
        }
        this.report();
      }
    } finally {
      this.isSending = false;
      this.report();
    }
  }

  private isRetryable(error: ApiError): boolean {
    return error.isTemporary || error.kind === 'login' || (error.kind === 'server' && this.nFailures + 1 < MAX_ATTEMPTS);
  }

  private drop(entry: Entry): void {
    this.entries = this.entries.filter((other) => other.client_id !== entry.client_id);
    this.store.removeItem(PREFIX + entry.client_id);
  }

  private keep(entry: Entry): void {
    try {
      this.store.setItem(PREFIX + entry.client_id, JSON.stringify(entry));
    } catch {
      // With full storage, the decision is still sent, only without a backup.
    }
  }

  private report(): void {
    this.hooks.changed(this.state, this.nWaiting);
  }
}

/** The text of the save indicator. */
export function saveText(state: SaveState, nWaiting: number): string {
  if (state === 'saved') return 'saved';
  return state === 'saving' ? 'saving …' : `offline, ${nWaiting} unsaved`;
}

function read(text: string | null): Entry | null {
  try {
    const entry = JSON.parse(text ?? '') as Entry;
    return typeof entry.client_id === 'string' && Array.isArray(entry.decisions) ? entry : null;
  } catch {
    return null;
  }
}
