// The shared worker that holds the event stream.

import { Relay, type Stream } from './relay';

const scope = self as unknown as { onconnect: ((event: MessageEvent) => void) | null };
const address = new URL('/api/v1/events', self.location.origin);
const relay = new Relay(() => new EventSource(address) as unknown as Stream);

scope.onconnect = (event) => {
  const port = event.ports[0]!;
  let stop = relay.listen((message) => port.postMessage(message));
  // A tab sends a message when it is closed.
  port.onmessage = () => {
    stop();
    stop = () => {};
  };
};
