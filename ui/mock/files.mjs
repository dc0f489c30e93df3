// Serves the built files with the content security policy of the application.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = fileURLToPath(new URL('../dist/', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };
const POLICY = "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** A file, or the application if the path has no dot. */
export function serveFile(response, path) {
  const wanted = normalize(join(dist, path));
  const isFile = wanted.startsWith(dist) && existsSync(wanted) && statSync(wanted).isFile();
  if (!isFile && extname(path)) {
    response.writeHead(404).end();
    return;
  }
  const file = isFile ? wanted : join(dist, 'index.html');
  response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': POLICY });
  createReadStream(file).pipe(response);
}
