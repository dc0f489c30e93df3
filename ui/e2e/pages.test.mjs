// Every page: accessibility by axe in both themes, layout, keyboard, console errors.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { samples } from '../mock/samples.mjs';
import { call, open, serious, until } from './browser.mjs';

let it, page, project, document, job;

before(async () => {
  it = await open();
  page = it.page;
  project = (await call(it.base, 'POST', '/projects', { name: `Pages ${Date.now()}`, guideline: 'Mark all.' })).id;
  const unique = samples.replaceAll('90000', `${Date.now()}`);
  await call(it.base, 'POST', `/projects/${project}/import?format=pubtator&annotations=gold&filename=a.pubtator`, unique, 'text/plain');
  job = (await call(it.base, 'POST', `/projects/${project}/jobs`, { kind: 'predict' })).id;
  await until('predictions', async () => (await call(it.base, 'GET', `/jobs/${job}`)).state === 'SUCCEEDED');
  document = (await call(it.base, 'GET', `/projects/${project}/documents`)).documents[0].id;
});
after(async () => {
  await it?.close();
});

const TEXT = encodeURIComponent('She took ibuprofen for headaches and fever.');
const pages = () => ({
  'link, empty': ['/', 'textarea'],
  link: [`/#text=${TEXT}`, '.result mark'],
  terminology: ['/terminology', 'input'],
  'a search': ['/terminology?q=headache', '.results a'],
  'a concept': ['/terminology?q=headache&id=MESH%3AD006261', 'article h2'],
  'quality checks': ['/terminology?checks', 'details'],
  projects: ['/projects', 'a.card'],
  queue: [`/projects/${project}`, '.queue-table'],
  review: [`/projects/${project}/review`, '.contexts td'],
  focus: [`/projects/${project}/focus/${document}`, '.three .candidate, .focus .main'],
  documents: [`/projects/${project}/documents`, 'table'],
  import: [`/projects/${project}/import`, 'textarea'],
  jobs: [`/projects/${project}/jobs`, '[data-job]'],
  dashboard: [`/projects/${project}/dashboard`, 'figure svg'],
  assignment: [`/projects/${project}/assignment`, '.intro'],
  proposals: [`/projects/${project}/proposals`, '.empty'],
  members: [`/projects/${project}/members`, 'section[aria-label="Members"] p'],
  'no disagreements': [`/projects/${project}/disagreements`, '.empty'],
  annotate: [`/projects/${project}/annotate/${document}`, '.candidates .candidate'],
  changes: [`/projects/${project}/changes/${job}/${document}`, 'button.change'],
  models: [`/models?project=${project}`, 'table'],
  settings: ['/settings', 'h2'],
  'not found': ['/nowhere', 'h1'],
});

async function visit([path, sign]) {
  await page.goto('about:blank');
  await page.goto(it.base + path);
  await page.locator(sign).first().waitFor();
}

for (const [theme, forcedColors] of [['light', 'none'], ['dark', 'none'], ['light', 'active']]) {
  test(`axe finds nothing serious in ${theme}${forcedColors === 'active' ? ' with forced colours' : ''}`, async () => {
    await page.emulateMedia({ colorScheme: theme, forcedColors, reducedMotion: 'reduce' });
    const found = [];
    for (const [name, where] of Object.entries(pages())) {
      await visit(where);
      await page.waitForTimeout(250);
      found.push(...(await serious(page)).map((fault) => `${name}: ${fault}`));
    }
    assert.deepEqual(found, []);
    await page.emulateMedia({ forcedColors: 'none' });
  });
}

for (const [width, height] of [[1024, 768], [768, 1024], [640, 430], [375, 812]]) {
  test(`nothing overflows at ${width} pixels`, async () => {
    await page.setViewportSize({ width, height });
    const wide = [];
    for (const [name, where] of Object.entries(pages())) {
      await visit(where);
      const by = await page.evaluate(() => Math.max(...['main', 'html'].map((one) => globalThis.document.querySelector(one)).map((one) => one.scrollWidth - one.clientWidth)));
      if (by > 0) wide.push(`${name}: ${by} px`);
      const down = await page.evaluate(() => globalThis.document.documentElement.scrollHeight - globalThis.innerHeight);
      if (down > 0) wide.push(`${name}: a second scrollbar, ${down} px`);
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    assert.deepEqual(wide, []);
  });
}

for (const [width, height] of [[1280, 860], [640, 430], [375, 812]]) {
  test(`no text covers the buttons of the annotation page at ${width} pixels`, async () => {
    await page.setViewportSize({ width, height });
    await visit(pages().annotate);
    const covered = await page.evaluate(() => {
      const found = [];
      for (const button of globalThis.document.querySelectorAll('.annotate button:not(:disabled)')) {
        button.scrollIntoView({ block: 'center' });
        const { left, top, width: w, height: h } = button.getBoundingClientRect();
        const there = globalThis.document.elementFromPoint(left + w / 2, top + h / 2);
        if (!button.contains(there)) found.push(`${button.textContent.trim()}: ${there?.outerHTML.slice(0, 80)}`);
      }
      return found;
    });
    const text = await page.locator('.text').evaluate((one) => one.clientHeight);
    await page.setViewportSize({ width: 1280, height: 860 });
    assert.deepEqual(covered, []);
    assert.ok(text > 90, `the text has ${text} px`);
  });
}

test('the text is reached by few presses of Tab', async () => {
  await visit(pages().annotate);
  const n = await page.evaluate(() => {
    const text = globalThis.document.querySelector('.text .marked');
    const stops = [...globalThis.document.querySelectorAll('a[href], button:not(:disabled), select, input, [tabindex]')].filter((one) => one.tabIndex >= 0);
    return stops.filter((one) => one.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING).length;
  });
  assert.ok(n <= 12, `${n} stops before the text`);
});

test('pages have titles of their own', async () => {
  const titles = new Set();
  for (const name of ['link', 'a concept', 'queue', 'documents', 'annotate', 'models']) {
    await visit(pages()[name]);
    titles.add(await page.title());
  }
  assert.equal(titles.size, 6, [...titles].join(', '));
});

test('single-key shortcuts can be turned off', async () => {
  await visit(pages().settings);
  await page.getByLabel(/Single-key shortcuts/).uncheck();
  await visit(pages().annotate);
  const before = (await call(it.base, 'GET', `/documents/${document}/history`)).events.length;
  await page.keyboard.press('x');
  await page.waitForTimeout(200);
  assert.equal((await call(it.base, 'GET', `/documents/${document}/history`)).events.length, before);
  await visit(pages().settings);
  await page.getByLabel(/Single-key shortcuts/).check();
});

test('the focused mention has an outline with forced colours', async () => {
  await page.emulateMedia({ forcedColors: 'active' });
  await visit(pages().annotate);
  const outline = await page.locator('.marked mark.is-focused').first().evaluate((one) => globalThis.getComputedStyle(one).outlineStyle);
  await page.emulateMedia({ forcedColors: 'none' });
  assert.equal(outline, 'solid');
});

test('a server with accounts asks to sign in, and axe finds nothing serious', async () => {
  await page.route('**/api/v1/about', (route) => route.fulfill({ json: { version: '0', kb: { name: '', n_concepts: 0, n_names: 0, fingerprint: '' }, model: { name: '' }, user: null, needs_login: true } }));
  await page.goto(`${it.base}/projects`);
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.unroute('**/api/v1/about');
});

test('missing pages show an error', async () => {
  await page.goto(`${it.base}/projects/987654321`);
  await page.getByRole('alert').waitFor();
  await page.goto(`${it.base}/projects/${project}/annotate/987654321`);
  await page.getByText('Nothing was changed.').waitFor();
  it.complaints.length = 0;
});

test('axe finds nothing serious in dialogs', async () => {
  await visit(pages().annotate);
  for (const key of ['?', 'h']) {
    await page.keyboard.press(key);
    await page.getByRole('dialog').waitFor();
    assert.deepEqual(await serious(page), []);
    await page.keyboard.press('Escape');
  }
});

test('axe finds a fault', async () => {
  await page.evaluate(() => globalThis.document.querySelector('main').append(globalThis.document.createElement('button')));
  assert.match((await serious(page)).join(), /button-name/);
});

test('a text is linked as you type and is in the URL', async () => {
  await page.goto(`${it.base}/`);
  await page.getByRole('textbox', { name: 'Text' }).fill('😀 She had headaches.');
  await page.locator('.result mark', { hasText: 'headaches' }).waitFor();
  assert.ok(page.url().includes('#text='));
  await page.locator('aside .candidate', { hasText: 'MESH:D006261' }).first().waitFor();
  await page.getByRole('button', { name: 'PubTator' }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /^\S+\|t\|😀 She had headaches\.\n\S+\|a\|\n\S+\t10\t19\theadaches\t/);
});

test('the evidence is visible on a narrow screen', async () => {
  await page.setViewportSize({ width: 768, height: 1024 });
  const long = encodeURIComponent('She took ibuprofen for headaches and fever. '.repeat(12));
  await visit([`/#text=${long}`, '.result mark']);
  await page.locator('.result mark').first().click();
  const box = await page.locator('aside h2').boundingBox();
  await page.setViewportSize({ width: 1280, height: 860 });
  assert.ok(box.y > 0 && box.y + box.height < 1024, JSON.stringify(box));
});

test('a search result shows how it matched and links to its concept', async () => {
  await page.goto(`${it.base}/terminology`);
  await page.getByRole('searchbox').fill('hedache');
  await page.locator('.results a', { hasText: 'MESH:D006261' }).click();
  await page.locator('article h2', { hasText: 'Headache' }).waitFor();
  await page.goBack();
  await page.locator('article').waitFor({ state: 'detached' });
});

test('a concept shows similar concepts and mentions', async () => {
  await page.goto(`${it.base}/projects/${project}`);
  await page.locator('.queue-table').waitFor();
  await page.goto(`${it.base}/terminology?id=MESH%3AD003693`);
  await page.getByRole('region', { name: 'Similar concepts' }).locator('li a').first().waitFor();
  await page.getByRole('region', { name: 'Mentions' }).locator('select').selectOption(String(project));
  await page.locator('a.line', { hasText: 'delirium' }).first().click();
  await page.waitForURL(/annotate\/\d+\?span=\d+-\d+/);
  await page.locator('aside .mention', { hasText: /delirium/i }).waitFor();
});

test('quality checks of the terminology have examples that link to their concepts', async () => {
  await page.goto(`${it.base}/terminology`);
  await page.getByRole('link', { name: 'Quality checks' }).click();
  await page.getByText('Not every issue is an error').waitFor({ timeout: 60_000 });
  const checks = page.getByRole('region', { name: 'Quality checks' });
  assert.ok(!(await checks.innerText()).includes('`'));
  const one = page.locator('details', { has: page.locator('.ids a') }).first();
  await one.locator('summary').click();
  await one.locator('.ids a').first().click();
  await page.locator('article h2').waitFor();
});

test('changes are stepped through by keyboard', async () => {
  await page.goto(`${it.base}/projects/${project}/jobs`);
  await page.locator('section[aria-label="Changes"] a').first().click();
  await page.locator('button.change').first().waitFor();
  assert.equal(await page.locator('button.change').count(), await page.locator('.diff .marked mark.added[data-mark]').evaluateAll((all) => new Set(all.map((one) => one.dataset.mark)).size));
  await page.keyboard.press('j');
  await page.locator('button.change.here').nth(0).waitFor();
  assert.equal(await page.locator('button.change').evaluateAll((all) => all.findIndex((one) => one.classList.contains('here'))), 1);
  const text = await page.locator('button.change.here strong').textContent();
  await page.keyboard.press('J');
  await page.locator('h1', { hasText: /2$/ }).waitFor();
  await page.keyboard.press('K');
  await page.locator('h1', { hasText: /1$/ }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(/span=/);
  await page.locator('aside .mention', { hasText: text }).waitFor();
});

test('the theme is kept', async () => {
  await page.goto(`${it.base}/settings`);
  await page.getByLabel('Dark').check();
  await page.reload();
  assert.equal(await page.evaluate(() => globalThis.document.documentElement.dataset.theme), 'dark');
  await page.getByLabel('System').check();
});

test('a long document is laid out', async () => {
  const long = Array.from({ length: 500 }, (_, row) => `Line ${row}: she had headaches and fever after ibuprofen, said the ward, and then slept for nine hours in all.`).join('\n');
  await call(it.base, 'POST', `/projects/${project}/import?format=text&filename=long${Date.now()}.txt`, long, 'text/plain');
  const job = await call(it.base, 'POST', `/projects/${project}/jobs`, { kind: 'predict' });
  await until('predictions', async () => (await call(it.base, 'GET', `/jobs/${job.id}`)).state === 'SUCCEEDED');
  const rows = (await call(it.base, 'GET', `/projects/${project}/documents`)).documents;
  const id = rows.at(-1).id;
  await page.goto(`${it.base}/projects/${project}/annotate/${id}`);
  await page.locator('.text .marked mark').first().waitFor();
  const n = await page.evaluate(() => globalThis.document.querySelectorAll('.text .marked *').length);
  assert.ok(n < 8000, `${n} elements`);
  // Every key leads to the next mention and shows its candidates.
  const focused = () => page.evaluate(() => globalThis.document.querySelector('.marked mark.is-focused')?.dataset.mark);
  for (let row = 0; row < 5; row++) {
    const before = await focused();
    await page.keyboard.press(']');
    await page.waitForFunction((old) => globalThis.document.querySelector('.marked mark.is-focused')?.dataset.mark !== old, before);
    await page.locator('.candidate').first().waitFor();
  }
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
