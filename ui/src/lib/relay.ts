// One stream of events for all tabs of a browser: over HTTP/1.1 a browser opens six connections to a server, and a stream in each
// tab would leave none for decisions.

/** What a tab hears: an event of a project, or that the stream was lost and is back. */
export type RelayMessage = { kind: 'event'; project: number; event: string; data: string } | { kind: 'again' };

/** What the stream tells of. */
export const EVENTS = ['job', 'document', 'import', 'deleted'] as const;

/** After how long a stream that the server refused, because nobody was logged in, is asked for again. */
const RETRY = 5000;

export interface Stream {
  addEventListener(name: string, hear: (event: { data?: string; lastEventId?: string }) => void): void;
  close(): void;
  readonly readyState: number;
}

/** Holds the stream while anybody listens. */
export class Relay {
  private readonly listeners = new Set<(message: RelayMessage) => void>();
  private stream: Stream | null = null;

  constructor(
    private readonly connect: () => Stream,
    private readonly later: (milliseconds: number, run: () => void) => void = (milliseconds, run) => void setTimeout(run, milliseconds),
  ) {}

  /** Listens until the function that it gives is called. */
  listen(listener: (message: RelayMessage) => void): () => void {
    this.listeners.add(listener);
    if (!this.stream) this.open(false);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size) return;
      this.stream?.close();
      this.stream = null;
    };
  }

  private open(isAgain: boolean): void {
    const stream = this.connect();
    this.stream = stream;
    let wasLost = isAgain;
    for (const event of EVENTS) {
      stream.addEventListener(event, ({ data = '', lastEventId = '' }) => this.broadcast({ kind: 'event', project: Number(lastEventId), event, data }));
    }
    stream.addEventListener('open', () => {
      if (wasLost) this.broadcast({ kind: 'again' });
      wasLost = false;
    });
    stream.addEventListener('error', () => {
      wasLost = true;
      // A browser connects again by itself, but not where it was refused.
      if (stream.readyState !== 2 || this.stream !== stream) return;
      this.stream = null;
      this.later(RETRY, () => {
        if (!this.stream && this.listeners.size) this.open(true);
      });
    });
  }

  private broadcast(message: RelayMessage): void {
    for (const listener of this.listeners) listener(message);
  }
}
