// A new user's path through the application, with the mock or, by CANONYM_URL, with a server that uses the starter terminology.
// Only the API is used, never what the mock does beyond it.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pubtator } from '../mock/samples.mjs';
import { call, drag, open, until } from './browser.mjs';

const stamp = Date.now();
const EMOJI = `e${stamp}`;
const NESTED = `n${stamp}`;
const NIL = `z${stamp}`;
const corpus = [
  pubtator(EMOJI, 'Headaches 🙂 and fever', 'A boy 👩‍⚕️ with fever took ibuprofen for headaches. The fever stayed; his anaemia did not.', [['Headaches', 'Symptom', 'MESH:D006261']]),
  pubtator(NESTED, 'Chronic kidney disease in two sisters', 'Both had chronic kidney disease and took ibuprofen for headaches.', [['Chronic kidney disease', 'Disease', 'MESH:D051436'], ['kidney disease', 'Disease', 'MESH:D007674']]),
  pubtator(NIL, 'A rare glimmer syndrome', 'The glimmer syndrome came with fever.', [['glimmer syndrome', 'Disease', '-1']]),
].join('\n');

let it, page, project;
const api = (method, path, body) => call(it.base, method, path, body);
const documents = async () => Object.fromEntries((await api('GET', `/projects/${project}/documents?state=all`)).documents.map((row) => [row.external_id, row.id]));
const marks = async (id) => (await api('GET', `/documents/${id}`)).marks;
const saved = () => page.locator('[data-save=saved]').waitFor();

before(async () => {
  it = await open();
  page = it.page;
});
after(async () => {
  await it?.close();
});

async function annotate(externalId) {
  const id = (await documents())[externalId];
  await page.goto(`/projects/${project}/annotate/${id}`);
  await page.locator('.text .marked .line').first().waitFor();
  await page.locator('.text .marked mark').first().waitFor();
  return id;
}

/** Focuses the mark whose text, or whose run, is this. */
async function focus(text) {
  await page.locator('.text .marked mark', { hasText: text }).first().click();
  await page.locator('aside .mention', { hasText: text }).waitFor();
}

test('a project is created and a file imported', async () => {
  await page.goto('/projects');
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByLabel('Name', { exact: true }).fill(`Flow ${stamp}`);
  await page.getByLabel(/guideline/).fill('Mark everything.');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.waitForURL(/\/projects\/\d+\/import/);
  project = Number(/projects\/(\d+)/.exec(page.url())[1]);
  const file = join(mkdtempSync(join(tmpdir(), 'canonym-')), 'three.pubtator');
  writeFileSync(file, corpus);
  await page.locator('select.annotations').selectOption('gold');
  await page.locator('input[type=file]').setInputFiles(file);
  await page.getByText('3 documents').first().waitFor();
  await page.getByText('4 annotations').waitFor();
});

test('documents that already exist are skipped', async () => {
  await page.getByLabel('Or paste text').fill(corpus);
  await page.locator('.format select').selectOption('pubtator');
  await page.getByRole('button', { name: 'Import text' }).click();
  await page.getByText('3 documents skipped').waitFor();
  assert.equal(Object.keys(await documents()).length, 3);
});

test('a file in Windows-1252 is converted on request', async () => {
  const made = (await api('POST', '/projects', { name: `Encoding ${stamp}` })).id;
  await page.goto(`/projects/${made}/import`);
  await page.locator('input[type=file]').setInputFiles({ name: 'ward.txt', mimeType: 'text/plain', buffer: Buffer.from('Ménière disease.', 'latin1') });
  await page.getByText('looks like Windows-1252').waitFor();
  await page.getByRole('button', { name: 'Convert and import' }).click();
  await page.getByText('1 document').first().waitFor();
  const [row] = (await api('GET', `/projects/${made}/documents`)).documents;
  assert.equal((await api('GET', `/documents/${row.id}`)).text, 'Ménière disease.');
  it.complaints.length = 0;
});

test('gold annotations have the offsets of the file, also after an emoji', async () => {
  await annotate(EMOJI);
  assert.deepEqual(await page.locator('.text .marked mark.gold').allTextContents(), ['Headaches']);
  await annotate(NESTED);
  const runs = await page.locator('.text .marked [data-marked]').allTextContents();
  assert.deepEqual(runs, ['Chronic ', 'kidney disease']);
  assert.equal(await page.locator('.text .marked mark.gold mark.gold').textContent(), 'kidney disease');
  await annotate(NIL);
  await page.locator('aside .concept', { hasText: 'No matching concept' }).waitFor();
});

test('selected text gets a concept by keyboard and is saved at once', async () => {
  const id = await annotate(EMOJI);
  await drag(page, 'ibuprofe');
  await page.locator('aside .mention', { hasText: 'ibuprofen' }).waitFor();
  // Pressed before or after the candidates of the new place have come.
  await page.keyboard.press('1');
  await page.locator('.text .marked mark.user', { hasText: 'ibuprofen' }).waitFor();
  await saved();
  const made = (await marks(id)).find((mark) => mark.source === 'USER');
  assert.deepEqual([made.text, made.concept.id], ['ibuprofen', 'MESH:D007052']);
});

test('a reload keeps it', async () => {
  await page.reload();
  await page.locator('.text .marked mark.user', { hasText: 'ibuprofen' }).waitFor();
});

test('text is selected by keys and the search picks by enter', async () => {
  const id = await annotate(EMOJI);
  await page.locator('.text .marked').focus();
  for (let row = 0; row < 6; row++) await page.keyboard.press('ArrowRight');
  const words = await page.evaluate(() => document.getSelection().toString());
  await page.keyboard.press('Shift+ArrowRight');
  const more = await page.evaluate(() => document.getSelection().toString());
  assert.deepEqual([words, more], ['boy', 'boy 👩‍⚕️']);
  await page.keyboard.press('Shift+ArrowLeft');
  assert.equal(await page.evaluate(() => document.getSelection().toString()), words);
  await page.keyboard.press('Escape');
  await drag(page, 'anaemia');
  await page.locator('aside .mention', { hasText: 'anaemia' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('anemia');
  // Enter takes what was searched, not what stood there while the search was on its way.
  await page.keyboard.press('Enter');
  await page.locator('.text .marked mark.user', { hasText: 'anaemia' }).waitFor();
  await saved();
  assert.equal((await marks(id)).find((mark) => mark.text === 'anaemia').concept.id, 'MESH:D000740');
});

test('undo and redo go through reloads', async () => {
  await page.keyboard.press('u');
  await page.locator('.text .marked mark.user', { hasText: 'anaemia' }).waitFor({ state: 'detached' });
  await saved();
  await page.reload();
  await page.locator('.text .marked mark').first().waitFor();
  assert.equal(await page.locator('.text .marked mark.user', { hasText: 'anaemia' }).count(), 0);
  await page.keyboard.press('U');
  await page.locator('.text .marked mark.user', { hasText: 'anaemia' }).waitFor();
  await saved();
});

test('boundaries move by token and by character', async () => {
  await focus('anaemia');
  await page.keyboard.press('e');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.locator('aside .mention', { hasText: 'anaemia did' }).waitFor();
  await page.keyboard.press('e');
  await page.keyboard.press('Shift+ArrowLeft');
  await page.keyboard.press('Enter');
  await page.locator('aside .mention', { hasText: /anaemia di”/ }).waitFor();
  await page.keyboard.press('u');
  await page.keyboard.press('u');
  await page.locator('aside .mention', { hasText: /“anaemia”/ }).waitFor();
  await saved();
});

test('offline decisions survive a reload and are sent', async () => {
  let isOffline = true;
  await page.route('**/decisions', (route) => (isOffline ? route.abort() : route.continue()));
  const id = await annotate(EMOJI);
  await focus('Headaches');
  await page.keyboard.press('s');
  await page.keyboard.press('n');
  await page.locator('[data-save=offline]', { hasText: 'offline, 2 unsaved' }).waitFor();
  assert.equal((await marks(id)).find((mark) => mark.text === 'Headaches').is_nil, false);
  page.once('dialog', (dialog) => dialog.accept());
  await page.reload();
  await page.locator('.text .marked mark.nil', { hasText: 'Headaches' }).waitFor();
  isOffline = false;
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await saved();
  assert.equal((await marks(id)).find((mark) => mark.text === 'Headaches').is_nil, true);
  await page.keyboard.press('u');
  await page.keyboard.press('u');
  await page.locator('.text .marked mark.gold', { hasText: 'Headaches' }).waitFor();
  await saved();
  await page.unroute('**/decisions');
  it.complaints.length = 0;
});

test('a conflicting decision is reported and can be overwritten', async () => {
  const id = await annotate(EMOJI);
  await focus('Headaches');
  const error = { code: 'conflict', message: 'the mark was changed by ada meanwhile', hint: null };
  await page.route('**/decisions', (route) => route.fulfill({ status: 409, json: { error } }), { times: 1 });
  await page.keyboard.press('n');
  await page.getByText('The mark was changed by ada meanwhile').waitFor();
  await page.locator('.text .marked mark.gold', { hasText: 'Headaches' }).waitFor();
  await page.getByRole('button', { name: 'Overwrite' }).click();
  await saved();
  await until('the decision', async () => (await marks(id)).find((mark) => mark.text === 'Headaches').is_nil);
  await page.keyboard.press('u');
  await page.locator('.text .marked mark.gold', { hasText: 'Headaches' }).waitFor();
  await saved();
  it.complaints.length = 0;
});

test('a comment is kept', async () => {
  await page.keyboard.press('c');
  await page.keyboard.type('Is it meant?');
  await page.keyboard.press('Enter');
  await page.locator('.comment', { hasText: 'Is it meant?' }).waitFor();
  await page.reload();
  await page.locator('.comment', { hasText: 'Is it meant?' }).waitFor();
});

test('a prediction run reports progress and adds mentions with probabilities', async () => {
  await page.goto(`/projects/${project}/jobs`);
  await page.getByRole('button', { name: 'Predict', exact: true }).click();
  await page.locator('[data-job]').first().waitFor();
  await page.locator('[data-state=SUCCEEDED]').first().waitFor({ timeout: 120_000 });
  const ids = await documents();
  const predicted = (await marks(ids[EMOJI])).filter((mark) => mark.source === 'PRED');
  assert.ok(predicted.length && predicted.every((mark) => mark.score > 0 && mark.score <= 1 && mark.state === 'open'));
});

test('the queue starts with the lowest confidence', async () => {
  await page.goto(`/projects/${project}`);
  await page.locator('.queue-table tbody tr').first().waitFor();
  const shown = (await page.locator('.queue-table tbody tr td:last-child').allTextContents()).map((text) => (text === '–' ? Infinity : Number(text)));
  assert.deepEqual(shown, [...shown].sort((a, b) => a - b));
  const reasons = await page.locator('.queue-table tbody tr td:nth-child(3)').allTextContents();
  assert.ok(reasons.every((reason) => reason.trim()));
});

test('predictions are accepted, rejected and corrected by keys', async () => {
  const id = await annotate(EMOJI);
  const open = (await marks(id)).filter((mark) => mark.source === 'PRED' && mark.state === 'open');
  assert.ok(open.length >= 2, 'the starter knows fever and headaches');
  const first = (await page.locator('aside .mention').textContent()).replace(/[“”]/g, '');
  await page.keyboard.press('a');
  await page.keyboard.press('x');
  await saved();
  const now = await until('two decisions', async () => {
    const all = await marks(id);
    return all.filter((mark) => mark.state === 'open' && mark.source === 'PRED').length === open.length - 2 && all;
  });
  assert.ok(now.some((mark) => mark.text === first && mark.source === 'USER' && mark.state === 'accepted'));
  await page.keyboard.press('u');
  await saved();
  await page.locator('aside .chip.pred').waitFor();
  await page.keyboard.press('n');
  await saved();
  assert.equal((await marks(id)).filter((mark) => mark.is_nil && mark.source === 'USER').length, 1);
});

test('a decision is applied to identical mentions after a preview', async () => {
  const ids = await documents();
  await annotate(NESTED);
  await focus('ibuprofen');
  await page.keyboard.press('a');
  await focus('ibuprofen');
  await saved();
  const before = await marks(ids[EMOJI]);
  await page.keyboard.press('g');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Whole project').click();
  await dialog.getByRole('button', { name: /Apply to \d+ mentions?/ }).waitFor();
  assert.deepEqual(await marks(ids[EMOJI]), before, 'a preview changes nothing');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
});

test('a decision is applied to identical mentions in another document, and undone', async () => {
  const made = (await api('POST', '/projects', { name: `Identical ${stamp}` })).id;
  for (const [name, text] of [['a', 'She had fever.'], ['b', 'Fever came back, then more fever.']]) await call(it.base, 'POST', `/projects/${made}/import?format=text&filename=${name}.txt`, text, 'text/plain');
  const [a, b] = (await api('GET', `/projects/${made}/documents`)).documents.map((row) => row.id);
  await page.goto(`/projects/${made}/annotate/${a}`);
  await page.locator('.text .marked .line').first().waitFor();
  await drag(page, 'fever');
  await page.locator('aside .mention', { hasText: 'fever' }).waitFor();
  await page.keyboard.press('1');
  // A pick waits for its candidates; "saved" alone may still mean the state before it.
  await until('the decision', async () => (await marks(a)).length === 1);
  await saved();
  await page.keyboard.press('g');
  await page.getByRole('button', { name: 'Apply to 2 mentions' }).click();
  await page.getByText('Applied to 2 mentions in 1 document.').waitFor();
  assert.deepEqual((await marks(b)).map((mark) => mark.source), ['USER', 'USER']);
  await page.getByRole('button', { name: 'Undo', exact: true }).click();
  // What the decision spread to stays a prediction.
  await until('the undo', async () => (await marks(b)).every((mark) => mark.source === 'PRED'));
  assert.equal((await marks(a)).length, 1, 'the decision itself stays');
});

test('the last decision, also a rejection, is applied to identical mentions', async () => {
  const ids = await documents();
  await annotate(EMOJI);
  const open = (await marks(ids[EMOJI])).filter((mark) => mark.state === 'open' && mark.source === 'PRED');
  assert.ok(open.length, 'something is open');
  await focus(open[0].text);
  await page.keyboard.press('x');
  // The focus went on; the key means what was decided.
  await page.keyboard.press('g');
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`“${open[0].text}”: rejected`).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.keyboard.press('u');
  await saved();
});

test('finishing asks before it accepts predictions, and undo reverts it', async () => {
  const ids = await documents();
  await annotate(NIL);
  const before = await marks(ids[NIL]);
  const nOpen = before.filter((mark) => mark.state === 'open' && mark.source === 'PRED').length;
  assert.ok(nOpen, 'something is open');
  const here = page.url();
  await page.keyboard.press('f');
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`${nOpen} unreviewed prediction`).first().waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.deepEqual(await marks(ids[NIL]), before, 'nothing happens before somebody says yes');
  await page.keyboard.press('f');
  await dialog.getByRole('button', { name: /Accept \d+ predictions? and finish/ }).click();
  await page.waitForURL((url) => url.href !== here);
  await page.locator('.text .marked mark').first().waitFor();
  // Undo means what was done last, not something in the document that follows.
  await page.keyboard.press('u');
  await page.waitForURL(here);
  await until('the document is open again', async () => !(await api('GET', `/documents/${ids[NIL]}`)).is_finished);
  const states = (all) => all.map((mark) => `${mark.text} ${mark.source} ${mark.state}`).sort();
  assert.deepEqual(states(await marks(ids[NIL])), states(before));
});

test('seven tabs of one browser save what is decided', async () => {
  const id = (await documents())[NIL];
  const tabs = [];
  for (let row = 0; row < 7; row++) {
    const tab = await it.context.newPage();
    tabs.push(tab);
    await tab.goto(`/projects/${project}/annotate/${id}`);
    await tab.locator('.text .marked mark').first().waitFor();
  }
  const last = tabs.at(-1);
  const n = (await api('GET', `/documents/${id}/history`)).events.length;
  await last.waitForFunction(() => globalThis.performance.getEntriesByName('first-contentful-paint').length > 0);
  await last.keyboard.press('s');
  await until('the decision', async () => (await api('GET', `/documents/${id}/history`)).events.length > n);
  await last.locator('[data-save=saved]').waitFor();
  // The others hear of it by the stream that all share.
  await tabs[0].locator('aside .chip', { hasText: 'unsure' }).waitFor();
  for (const tab of tabs) await tab.close();
  await api('POST', `/documents/${id}/undo`, {});
});

test('finishing goes on to the next document, and the queue is one shorter', async () => {
  const n = (await api('GET', `/projects/${project}/queue`)).documents.length;
  const before = page.url();
  await page.keyboard.press('f');
  await page.getByRole('dialog').getByRole('button', { name: /and finish/ }).click();
  await until('the document is finished', async () => (await api('GET', `/projects/${project}/queue`)).documents.length === n - 1);
  await page.waitForURL((url) => url.href !== before);
});

test('the annotation time is sent with the decision', async () => {
  const pace = await until('the time', async () => {
    const found = await api('GET', `/projects/${project}/annotation-speed`);
    return found.n_measured >= 1 && found;
  });
  assert.ok(pace.all.median > 0 && pace.all.median < 120, `${pace.all.median} s`);
  await page.goto(`/projects/${project}/dashboard`);
  await page.getByText('Time per document by annotator').waitFor();
  await page.getByText(/documents? measured in the browser/).waitFor();
});

test('training shows its curves, produces a model, and can be rolled back', async (t) => {
  if ((await api('GET', '/about')).can_train === false) return t.skip('this server does not train');
  const n = (await api('GET', `/models?project=${project}`)).models.length;
  await page.goto(`/projects/${project}/jobs`);
  await page.getByText('Training set').waitFor();
  await page.getByLabel('Steps').fill('66');
  await page.getByText('This run: 66 steps').waitFor();
  await page.getByRole('button', { name: 'Train and predict' }).click();
  await page.locator('[data-job]').getByText('66 steps').first().waitFor();
  await page.locator('article figure').first().waitFor({ timeout: 120_000 });
  await until('a model', async () => (await api('GET', `/models?project=${project}`)).models.length === n + 1, 300_000);
  assert.deepEqual((await api('GET', `/projects/${project}/jobs`)).jobs[0].settings, { steps: 66 });
  await page.goto(`/models?project=${project}`);
  const boxes = page.getByRole('checkbox');
  await boxes.nth(n).check();
  await boxes.nth(0).check();
  await page.locator('section[aria-label=Comparison]').waitFor();
  const before = (await api('GET', `/models?project=${project}`)).models.find((model) => !model.is_current);
  await page.getByRole('row', { name: before.name }).getByRole('button', { name: 'Use' }).click();
  await until('the older model is in use', async () => (await api('GET', `/models?project=${project}`)).models.find((model) => model.id === before.id).is_current);
});

test('the export holds what was decided', async () => {
  await page.goto(`/projects/${project}/documents`);
  await page.getByRole('button', { name: 'Export' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.locator('select').selectOption('pubtator');
  await dialog.getByLabel('Include unreviewed predictions').check();
  await dialog.getByText(/predictions? will/).waitFor();
  await dialog.getByLabel('Include unreviewed predictions').uncheck();
  const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('link', { name: 'Download' }).click()]);
  const text = readFileSync(await download.path(), 'utf8');
  assert.match(text, new RegExp(`${EMOJI}\\t\\d+\\t\\d+\\tibuprofen\\t[^\\t]*\\tMESH:D007052`));
  const again = await api('POST', '/projects', { name: `Again ${stamp}` });
  const report = await call(it.base, 'POST', `/projects/${again.id}/import?format=pubtator&filename=again.pubtator`, text, 'text/plain');
  assert.deepEqual([report.n_documents, report.problems], [3, []]);
});

test('the dashboard shows figures', async () => {
  await page.goto(`/projects/${project}/dashboard`);
  await page.locator('figure svg').first().waitFor();
  assert.ok((await page.locator('figcaption span').first().textContent()).includes('gold'));
});

test('a document and a project are renamed and deleted', async () => {
  const made = (await api('POST', '/projects', { name: `Short-lived ${stamp}` })).id;
  await call(it.base, 'POST', `/projects/${made}/import?format=text&filename=note.txt`, 'Fever.', 'text/plain');
  await page.goto(`/projects/${made}/import`);
  await page.getByLabel('Or paste text').fill('Cough.');
  for (const id of ['pasted', 'pasted-2']) {
    await page.getByLabel('Or paste text').fill(`${id}: cough.`);
    await page.getByRole('button', { name: 'Import text' }).click();
    await until(id, async () => (await api('GET', `/projects/${made}/documents`)).documents.some((row) => row.external_id === id));
    await page.getByText('1 document').first().waitFor();
  }
  await page.goto(`/projects/${made}/documents`);
  await page.getByRole('button', { name: 'Rename note' }).click();
  await page.getByLabel('Document ID').fill('ward note');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('link', { name: 'ward note' }).waitFor();
  await page.getByRole('button', { name: 'Delete pasted-2' }).click();
  await page.getByRole('button', { name: 'Delete document' }).click();
  await page.getByRole('link', { name: 'pasted-2' }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Name', { exact: true }).fill(`Renamed ${stamp}`);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: `Renamed ${stamp}` }).waitFor();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByLabel(/Type the project name/).fill(`Renamed ${stamp}`);
  await page.getByRole('button', { name: 'Delete project' }).click();
  await page.waitForURL(/\/projects$/);
  assert.ok((await api('GET', '/projects')).projects.every((one) => one.id !== made));
});

test('the history lists decisions', async () => {
  await annotate(EMOJI);
  await page.keyboard.press('h');
  await page.getByRole('dialog').locator('li').first().waitFor();
  await page.keyboard.press('Escape');
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
