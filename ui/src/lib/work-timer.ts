// Time spent on a document: the time between user activity, without idle periods and hidden tabs.

/** A longer gap without activity, in milliseconds, counts as idle. */
export const IDLE_AFTER = 60_000;

export class Stopwatch {
  private last: number | null = null;
  private total: number;

  /** Starts from the time measured before, in milliseconds. */
  constructor(before = 0) {
    this.total = before;
  }

  /** Records user activity at a time in milliseconds. */
  activity(at: number): void {
    this.add(at);
    this.last = at;
  }

  /** Pauses until the next activity: the page was hidden. */
  hide(at: number): void {
    this.add(at);
    this.last = null;
  }

  /** The time measured so far, in milliseconds. */
  get milliseconds(): number {
    return this.total;
  }

  /** The time measured so far, in seconds; resets the stopwatch. */
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

/** Measures the time spent on a document until stopped; time not yet sent is stored in the browser. */
export class WorkTimer {
  private readonly watch: Stopwatch;

  constructor(private readonly document: number) {
    this.watch = new Stopwatch(this.stored());
    if (globalThis.document.visibilityState === 'visible') this.watch.activity(Date.now());
    for (const name of ACTIVITY) addEventListener(name, this.onActivity, { passive: true, capture: true });
    globalThis.document.addEventListener('visibilitychange', this.onVisibility);
    addEventListener('pagehide', this.onVisibility);
  }

  /** The seconds to send; resets the timer. */
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
      // Without storage, only the time of this visit counts.
    }
  }
}
