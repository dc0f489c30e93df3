// Serves `dist` with the strict policy and proxies the API to a real server, to try a build before it is embedded: `node mock/proxy.mjs http://127.0.0.1:7878 [port]`.

import { createServer, request } from 'node:http';
import { serveFile } from './files.mjs';

const target = new URL(process.argv[2] ?? 'http://127.0.0.1:7878');
const port = Number(process.argv[3] ?? 5180);

const server = createServer((incoming, response) => {
  const { pathname } = new URL(incoming.url, 'http://localhost');
  if (!pathname.startsWith('/api/') && pathname !== '/health') return serveFile(response, pathname);
  const { method, headers, url } = incoming;
  const outgoing = request({ host: target.hostname, port: target.port, path: url, method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  response.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/, with the API of ${target.origin}`));
