// Starts Debian's chromium and, unless CANONYM_URL names a server, the mock. `apt-get install -y chromium` brings the browser.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { existsSync, readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Serious and critical violations by axe. */
export async function serious(page) {
  // The content security policy allows no added scripts, so axe is injected by the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(globalThis.document, { resultTypes: ['violations'] }));
  const told = (one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.any[0]?.message ?? ''}`).join('; ')}`;
  return violations.filter((one) => ['serious', 'critical'].includes(one.impact)).map(told);
}

/** Makes key presses wait for the first paint of the page: Chromium drops earlier ones. */
function pressWhenPainted(page) {
  for (const name of ['press', 'type']) {
    const press = page.keyboard[name].bind(page.keyboard);
    page.keyboard[name] = async (...given) => {
      await page.waitForFunction(() => globalThis.performance.getEntriesByName('first-contentful-paint').length > 0);
      await press(...given);
    };
  }
}

export async function open({ width = 1280, height = 860, colorScheme = 'light' } = {}) {
  const server = process.env.CANONYM_URL ? null : await (await import('../mock/server.mjs')).serve(0);
  const base = process.env.CANONYM_URL?.replace(/\/$/, '') || `http://127.0.0.1:${server.address().port}`;
  const executablePath = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
  assert.ok(executablePath, 'chromium is missing: apt-get install -y chromium');
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, baseURL: base, acceptDownloads: true });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: base });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  pressWhenPainted(page);
  /** Console errors; a test clears those that it provokes. */
  const complaints = [];
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  return {
    base,
    browser,
    context,
    page,
    complaints,
    async close() {
      await browser.close();
      server?.closeAllConnections();
      server?.close();
    },
  };
}

/** A request to the API outside of the browser, to prepare a test. */
export async function call(base, method, path, body, type = 'application/json') {
  const headers = { 'X-Canonym': '1', 'Content-Type': type };
  const response = await fetch(`${base}/api/v1${path}`, { method, headers, body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body) });
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${response.ok ? '' : await response.text()}`);
  const text = await response.text();
  return response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text;
}

/** Waits for a state of the server that no page shows. */
export async function until(what, holds, milliseconds = 60_000) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) assert.fail(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Selects text with the mouse. */
export async function drag(page, words) {
  const box = await page.evaluate((wanted) => {
    const root = document.querySelector('.text .marked');
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const at = node.data.indexOf(wanted);
      if (at < 0) continue;
      node.parentElement.scrollIntoView({ block: 'nearest' });
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      const { left, right, top, bottom } = range.getBoundingClientRect();
      return { left, right, y: (top + bottom) / 2 };
    }
    return null;
  }, words);
  assert.ok(box, `“${words}” is not in the text`);
  await page.mouse.move(box.left + 2, box.y);
  await page.mouse.down();
  await page.mouse.move(box.right - 2, box.y, { steps: 5 });
  await page.mouse.up();
}
