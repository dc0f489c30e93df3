// The keyboard on the annotation page: Esc, proposals, Enter in dialogs, and messages that cover nothing. With the mock or, by CANONYM_URL, with a server.

import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { call, drag, open, serious, until } from './browser.mjs';

let it, page, project;
const api = (method, path, body) => call(it.base, method, path, body);
const marks = async (id) => (await api('GET', `/documents/${id}`)).marks;
const saved = () => page.locator('[data-save=saved]').waitFor();
const dialog = () => page.getByRole('dialog');

before(async () => {
  it = await open({ width: 1280, height: 800 });
  page = it.page;
});
after(async () => {
  await it?.close();
});

/** Opens a document with predictions in a new project; its number. */
async function openNew() {
  project = (await api('POST', '/projects', { name: `Keys ${Date.now()}` })).id;
  const texts = { a: 'The pump buzzed loudly and leaked. She had fever and headache.', b: 'Fever again.', c: 'More fever, and a headache.' };
  for (const [name, text] of Object.entries(texts)) await call(it.base, 'POST', `/projects/${project}/import?format=text&filename=${name}.txt`, text, 'text/plain');
  const job = await api('POST', `/projects/${project}/jobs`, { kind: 'predict' });
  await until('predictions', async () => (await api('GET', `/jobs/${job.id}`)).state === 'SUCCEEDED');
  const { id } = (await api('GET', `/projects/${project}/documents`)).documents.find((row) => row.external_id === 'a');
  await page.goto(`/projects/${project}/annotate/${id}`);
  await page.locator('aside .chip.pred').waitFor();
  return id;
}

let id;
beforeEach(async () => {
  id = await openNew();
});

const mention = (text) => page.locator('aside .mention', { hasText: text });

test('Esc leaves the search and keeps the selection, which is what is proposed and linked', async () => {
  await drag(page, 'buzzed loudly');
  await mention('buzzed loudly').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('zzzz');
  await page.keyboard.press('Escape');
  await mention('buzzed loudly').waitFor();
  await page.keyboard.press('p');
  const about = page.getByRole('dialog', { name: 'Propose for “buzzed loudly”' });
  await about.getByLabel('New concept').check();
  assert.equal(await about.getByLabel('Name').inputValue(), 'buzzed loudly');
  const before = await marks(id);
  await about.getByRole('button', { name: 'Propose', exact: true }).click();
  await page.getByText('Proposed “buzzed loudly”').waitFor();
  await saved();
  const after = await until('the mention', async () => {
    const all = await marks(id);
    return all.some((mark) => mark.text === 'buzzed loudly' && mark.source === 'USER') && all;
  });
  const others = (all) => all.filter((mark) => mark.text !== 'buzzed loudly').map((mark) => `${mark.text} ${mark.source} ${mark.concept?.id}`);
  assert.deepEqual(others(after), others(before), 'no other mention is changed');
});

test('a second Esc clears the selection, and a proposal is still about its words', async () => {
  await drag(page, 'leaked');
  await mention('leaked').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await mention('leaked').waitFor({ state: 'detached' });
  await page.keyboard.press('p');
  await page.getByRole('dialog', { name: 'Propose for “leaked”' }).waitFor();
  await page.keyboard.press('Escape');
  await dialog().waitFor({ state: 'detached' });
  await mention('leaked').waitFor();
  // After moving on, it is about the mention in focus.
  await page.keyboard.press('Escape');
  await page.keyboard.press(']');
  const focused = (await page.locator('aside .mention').textContent()).replace(/[“”]/g, '');
  await page.keyboard.press('p');
  await page.getByRole('dialog', { name: `Propose for “${focused}”` }).waitFor();
  await page.keyboard.press('Escape');
});

test('a name that the terminology has is told before it is proposed', async () => {
  await drag(page, 'headache');
  await mention('headache').waitFor();
  await page.keyboard.press('p');
  await dialog().getByText(/is already a name of/).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.keyboard.press('Escape');
});

test('Enter proposes', async () => {
  await drag(page, 'pump');
  await mention('pump').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('headache');
  await page.locator('.candidate', { hasText: 'MESH:D006261' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('p');
  await page.getByRole('dialog', { name: 'Propose for “pump”' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByText('Proposed “pump”').waitFor();
  await dialog().waitFor({ state: 'detached' });
});

test('Enter finishes, and so does a second f', async () => {
  await page.keyboard.press('f');
  await dialog().getByRole('button', { name: /and finish/ }).waitFor();
  await page.keyboard.press('Enter');
  await until('finished', async () => (await api('GET', `/documents/${id}`)).is_finished);
  await page.waitForURL((url) => !url.pathname.endsWith(`/${id}`));
  await page.locator('aside .chip.pred').waitFor();
  const next = Number(/\d+$/.exec(page.url())[0]);
  await page.keyboard.press('f');
  await dialog().getByRole('button', { name: /and finish/ }).waitFor();
  await page.keyboard.press('f');
  await until('finished', async () => (await api('GET', `/documents/${next}`)).is_finished);
});

test('Enter applies a decision to identical mentions', async () => {
  await page.locator('.text .marked mark', { hasText: 'fever' }).first().click();
  await mention('fever').waitFor();
  await page.keyboard.press('a');
  await saved();
  await page.keyboard.press('g');
  await dialog().getByRole('button', { name: /Apply to \d+ mentions/ }).waitFor();
  await page.waitForFunction(() => /^Apply to/.test(globalThis.document.activeElement?.textContent ?? ''));
  await page.keyboard.press('Enter');
  await page.getByText(/Applied to \d+ mentions/).waitFor();
});

test('messages cover no control, and one about a finished document replaces the former', async () => {
  for (const _ of ['a', 'b']) {
    const here = page.url();
    await page.locator('aside .chip.pred').waitFor();
    await page.keyboard.press('f');
    await dialog().getByRole('button', { name: /and finish/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.href !== here);
  }
  await page.locator('.candidate').first().waitFor();
  await page.locator('.message').first().waitFor();
  assert.equal(await page.locator('.message').count(), 1);
  const covered = await page.evaluate(() => {
    const messages = [...globalThis.document.querySelectorAll('.message')].map((one) => one.getBoundingClientRect());
    const controls = [...globalThis.document.querySelectorAll('.annotate button, .annotate a, .annotate input, .annotate textarea, .marked mark')].filter((one) => !one.closest('.message'));
    const isHit = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    return controls.filter((one) => messages.some((box) => isHit(one.getBoundingClientRect(), box))).map((one) => one.textContent);
  });
  assert.deepEqual(covered, []);
  assert.deepEqual(await serious(page), []);
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
