// How long somebody works on a document: the time between signs of life, pauses and hidden tabs left out.

/** Who gives no sign of life for so long does something else. */
export const IDLE_AFTER = 60_000;

export class Stopwatch {
  private last: number | null = null;
  private total: number;

  /** Begins with what was measured before, in milliseconds. */
  constructor(before = 0) {
    this.total = before;
  }

  /** Somebody did something at a time in milliseconds. */
  activity(at: number): void {
    this.add(at);
    this.last = at;
  }

  /** The page is not seen any more; the next sign begins anew. */
  hide(at: number): void {
    this.add(at);
    this.last = null;
  }

  /** What was measured so far, in milliseconds. */
  get milliseconds(): number {
    return this.total;
  }

  /** What was measured so far, in seconds; counting begins anew. */
  take(at: number): number {
    this.activity(at);
    const seconds = Math.round(this.total / 100) / 10;
    this.total = 0;
    return seconds;
  }

  private add(at: number): void {
    if (this.last === null) return;
    const gap = at - this.last;
    if (gap > 0 && gap <= IDLE_AFTER) this.total += gap;
  }
}

const ACTIVITY = ['keydown', 'pointerdown', 'pointermove', 'wheel', 'scroll'] as const;
const PREFIX = 'canonym.time.';

/** Measures the work on a document until it is stopped; what is not sent with a decision waits in the browser for the next visit. */
export class WorkTimer {
  private readonly watch: Stopwatch;

  constructor(private readonly document: number) {
    this.watch = new Stopwatch(this.stored());
    if (globalThis.document.visibilityState === 'visible') this.watch.activity(Date.now());
    for (const name of ACTIVITY) addEventListener(name, this.onActivity, { passive: true, capture: true });
    globalThis.document.addEventListener('visibilitychange', this.onVisibility);
    addEventListener('pagehide', this.onVisibility);
  }

  /** Seconds until now, which are then taken to be sent. */
  take(): number {
    const seconds = this.watch.take(Date.now());
    this.store();
    return seconds;
  }

  stop(): void {
    for (const name of ACTIVITY) removeEventListener(name, this.onActivity, { capture: true });
    globalThis.document.removeEventListener('visibilitychange', this.onVisibility);
    removeEventListener('pagehide', this.onVisibility);
    this.watch.hide(Date.now());
    this.store();
  }

  private readonly onActivity = (): void => this.watch.activity(Date.now());

  private readonly onVisibility = (event: Event): void => {
    if (event.type === 'pagehide' || globalThis.document.visibilityState === 'hidden') {
      this.watch.hide(Date.now());
      this.store();
    } else this.onActivity();
  };

  private stored(): number {
    try {
      const stored = Number(localStorage.getItem(PREFIX + this.document));
      return Number.isFinite(stored) && stored > 0 ? stored : 0;
    } catch {
      return 0;
    }
  }

  private store(): void {
    try {
      const milliseconds = Math.round(this.watch.milliseconds);
      if (milliseconds) localStorage.setItem(PREFIX + this.document, String(milliseconds));
      else localStorage.removeItem(PREFIX + this.document);
    } catch {
      // Without storage only the time of this visit is known.
    }
  }
}
