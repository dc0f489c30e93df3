import { expect, test } from 'vitest';
import { Relay, type RelayMessage, type Stream } from './relay';

class Fake implements Stream {
  readyState = 1;
  isClosed = false;
  private readonly handlers = new Map<string, (event: { data?: string; lastEventId?: string }) => void>();
  addEventListener(name: string, handle: (event: { data?: string; lastEventId?: string }) => void): void {
    this.handlers.set(name, handle);
  }
  close(): void {
    this.isClosed = true;
  }
  send(name: string, data = '', lastEventId = ''): void {
    this.handlers.get(name)!({ data, lastEventId });
  }
}

function relay() {
  const streams: Fake[] = [];
  const waiting: (() => void)[] = [];
  const made = new Relay(
    () => streams[streams.push(new Fake()) - 1]!,
    (_, run) => void waiting.push(run),
  );
  return { made, streams, waiting };
}

test('all tabs share one stream, which closes with the last', () => {
  const { made, streams } = relay();
  const received: RelayMessage[] = [];
  const stops = Array.from({ length: 7 }, () => made.listen((one) => received.push(one)));
  expect(streams.length).toBe(1);
  streams[0]!.send('document', '{"id":3}', '2');
  expect(received.length).toBe(7);
  expect(received[0]).toEqual({ kind: 'event', project: 2, event: 'document', data: '{"id":3}' });
  stops.forEach((stop) => stop());
  expect(streams[0]!.isClosed).toBe(true);
});

test('a reconnect is reported, and a refused stream is requested again', () => {
  const { made, streams, waiting } = relay();
  const received: RelayMessage[] = [];
  made.listen((one) => received.push(one));
  streams[0]!.send('open');
  expect(received).toEqual([]);
  streams[0]!.send('error');
  streams[0]!.send('open');
  expect(received).toEqual([{ kind: 'again' }]);
  streams[0]!.readyState = 2;
  streams[0]!.send('error');
  waiting[0]!();
  expect(streams.length).toBe(2);
  streams[1]!.send('open');
  expect(received.length).toBe(2);
});
