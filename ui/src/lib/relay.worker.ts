// The worker that all tabs share; it holds the one stream of events.

import { Relay, type Stream } from './relay';

const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null };
const address = new URL('/api/v1/events', self.location.origin);
const relay = new Relay(() => new EventSource(address) as unknown as Stream);

scope.onconnect = (event) => {
  const port = event.ports[0]!;
  let stop = relay.listen((message) => port.postMessage(message));
  // A tab says when it leaves.
  port.onmessage = () => {
    stop();
    stop = () => {};
  };
};
