// One event stream for all tabs of a browser: over HTTP/1.1 a browser opens six connections to a server, and a stream in each tab
// would leave none for decisions.

/** A message to a tab: an event of a project, or that the stream was reconnected. */
export type RelayMessage = { kind: 'event'; project: number; event: string; data: string } | { kind: 'again' };

/** The event types of the stream. */
export const EVENTS = ['job', 'document', 'import', 'deleted'] as const;

/** Milliseconds until a stream that the server refused, because nobody was signed in, is requested again. */
const RETRY = 5000;

export interface Stream {
  addEventListener(name: string, handle: (event: { data?: string; lastEventId?: string }) => void): void;
  close(): void;
  readonly readyState: number;
}

/** Keeps the stream open while there are listeners. */
export class Relay {
  private readonly listeners = new Set<(message: RelayMessage) => void>();
  private stream: Stream | null = null;

  constructor(
    private readonly connect: () => Stream,
    private readonly later: (milliseconds: number, run: () => void) => void = (milliseconds, run) => void setTimeout(run, milliseconds),
  ) {}

  /** Adds a listener; returns the function to remove it. */
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
      // A browser reconnects by itself unless it was refused.
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
