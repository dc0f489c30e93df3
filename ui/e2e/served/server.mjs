// Starts `canonym serve` on a folder of its own, for what the mock cannot show: accounts, a hierarchy, several people at once.
// CANONYM_BIN names the program; without it, the one that cargo has built is used. With CANONYM_DIST, the pages are those of `dist`.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from '../browser.mjs';

const target = (kind) => fileURLToPath(new URL(`../../../target/${kind}/canonym`, import.meta.url));
const program = process.env.CANONYM_BIN ?? [target('release'), target('debug')].find(existsSync);

/** A short hierarchy with made-up definitions: id, name, type, synonym, parent, definition. */
const TERMS = [
  ['T:1', 'Disease', 'Disease', '', '', 'A state in which the body does not work as it should.'],
  ['T:2', 'Delirium', 'Disease', 'Acute Confusional State', 'T:8', 'A sudden change of attention and awareness.'],
  ['T:3', 'Emergence Delirium', 'Disease', 'Emergence Agitation', 'T:2', 'Restlessness while waking from anaesthesia.'],
  ['T:4', 'Asthma', 'Disease', 'Bronchial Asthma', 'T:1', 'Narrow airways that come and go.'],
  ['T:5', 'Drug', 'Drug', '', '', 'What is given against a disease.'],
  ['T:6', 'Famotidine', 'Drug', 'Pepcid', 'T:5', 'Lowers the acid of the stomach.'],
  ['T:7', 'Fever', 'Disease', 'Pyrexia', 'T:1', 'A raised temperature of the body.'],
  ['T:8', 'Confusion', 'Disease', 'Confusional State', 'T:1', 'Thinking that is slow and unclear.'],
];

const table = TERMS.map(([id, name, type, synonym, parent, definition]) => JSON.stringify({ id, name, synonyms: synonym ? [synonym] : [], types: [type], definition, parents: parent ? [parent] : [] })).join('\n');

/** A server; with an admin, everybody has to sign in. */
export async function serve({ admin = null, hierarchy = false } = {}) {
  assert.ok(program, 'build the program first: cargo build -p canonym-cli, or set CANONYM_BIN');
  const folder = mkdtempSync(join(tmpdir(), 'canonym-e2e-'));
  const kb = [];
  if (hierarchy) {
    writeFileSync(join(folder, 'ward.jsonl'), `${table}\n`);
    execFileSync(program, ['kb', 'build', join(folder, 'ward.jsonl'), '--out', join(folder, 'ward.kb')], { stdio: 'pipe' });
    kb.push('--kb', join(folder, 'ward.kb'));
  }
  const data = ['--data', join(folder, 'data')];
  const env = { ...process.env, CANONYM_PASSWORD: 'correct horse' };
  if (admin) execFileSync(program, ['serve', '--add-admin', admin, ...data], { env, stdio: 'pipe' });
  const running = spawn(program, ['serve', ...kb, '--model', 'lexical', '--bind', '127.0.0.1:0', ...data], { stdio: 'pipe' });
  let told = '';
  const served = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      told += chunk;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(told);
      if (found) resolve(found[0]);
    };
    running.stdout.on('data', read);
    running.stderr.on('data', read);
    running.on('exit', () => reject(new Error(`canonym serve ended: ${told}`)));
    setTimeout(() => reject(new Error(`canonym serve is silent: ${told}`)), 120_000).unref();
  });
  const proxy = process.env.CANONYM_DIST ? spawn('node', [fileURLToPath(new URL('../../mock/proxy.mjs', import.meta.url)), served, '0'], { stdio: ['ignore', 'pipe', 'inherit'] }) : null;
  const url = proxy ? await new Promise((resolve) => proxy.stdout.on('data', (chunk) => resolve(/http:\/\/127\.0\.0\.1:\d+/.exec(chunk)[0]))) : served;
  return {
    url,
    folder,
    program,
    async stop() {
      running.removeAllListeners('exit');
      proxy?.kill();
      running.kill();
      await new Promise((resolve) => running.on('exit', resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A browser at a server. */
export async function browse(server, options) {
  process.env.CANONYM_URL = server.url;
  return open(options);
}

/** Requests of a signed-in person. */
export async function signIn(server, name, password = 'correct horse') {
  const headers = { 'X-Canonym': '1', 'Content-Type': 'application/json' };
  const response = await fetch(`${server.url}/api/v1/login`, { method: 'POST', headers, body: JSON.stringify({ name, password }) });
  assert.ok(response.ok, `login of ${name}: ${response.status}`);
  const cookie = response.headers.getSetCookie().map((one) => one.split(';')[0]).join('; ');
  return async (method, path, body) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, { method, headers: { ...headers, Cookie: cookie }, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body) });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${answer.ok ? '' : await answer.text()}`);
    const text = await answer.text();
    return answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
  };
}

/** Signs in by the page. */
export async function signInPage(page, name, password = 'correct horse') {
  await page.goto('/');
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
}
