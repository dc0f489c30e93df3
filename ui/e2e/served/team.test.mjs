// Blind annotation by two annotators, from assignment to adjudication, with accounts on a server.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serious, until } from '../browser.mjs';
import { browse, serve, signIn, signInPage } from './server.mjs';

let server, it, page, ada, project;
const people = {};

before(async () => {
  server = await serve({ admin: 'ada' });
  ada = await signIn(server, 'ada');
  for (const name of ['ben', 'cleo']) {
    await ada('POST', '/people', { name, password: 'correct horse', role: 'annotator' });
    people[name] = await signIn(server, name);
  }
  project = (await ada('POST', '/projects', { name: 'Notes', guideline: '- Diseases and symptoms' })).id;
  const lines = ['Fever and headache.', 'Headache after ibuprofen, no fever.', 'Headache again.'].map((text, row) => JSON.stringify({ id: `note-${row + 1}`, text, annotations: [] }));
  await ada('POST', `/projects/${project}/import?format=jsonl&filename=a.jsonl`, lines.join('\n'));
  await ada('POST', `/projects/${project}/jobs`, { kind: 'predict' });
  await until('predictions', async () => (await ada('GET', `/projects/${project}/jobs`)).jobs[0].state === 'SUCCEEDED');
  it = await browse(server);
  page = it.page;
  await signInPage(page, 'ada');
  // Before the sign-in, requests are refused.
  it.complaints.length = 0;
});
after(async () => {
  await it?.close();
  await server?.stop();
});

test('a curator assigns every document to two annotators', async () => {
  await page.goto(`/projects/${project}/assignment`);
  await page.getByLabel('ben', { exact: false }).check();
  await page.getByLabel('cleo', { exact: false }).check();
  await page.getByLabel('Annotators per document').fill('2');
  assert.deepEqual(await serious(page), []);
  await page.getByRole('button', { name: 'Assign 3 documents' }).click();
  await page.getByText('Assigned 3 documents to 2 annotators each.').waitFor();
  const rows = page.getByRole('region', { name: 'Progress' }).locator('tbody tr');
  assert.deepEqual(await rows.locator('td:nth-child(3)').allTextContents(), ['0 of 3', '0 of 3']);
});

test('an annotator sees only the own copies, and works on them as on any document', async () => {
  const other = await browse(server);
  try {
    await signInPage(other.page, 'ben');
    await other.page.waitForURL(/\/projects\/\d+$/);
    await other.page.getByText('copies of ben').waitFor();
    await other.page.goto('/projects');
    await other.page.getByText('assigned to you').waitFor();
    assert.equal(await other.page.locator('a.card').count(), 1);
    await other.page.locator('a.card').click();
    await other.page.getByRole('link', { name: 'Start annotating' }).click();
    await other.page.locator('aside .chip.pred').first().waitFor();
    await other.page.keyboard.press('i');
    await other.page.getByRole('region', { name: 'Guideline' }).getByText('Diseases and symptoms').waitFor();
  } finally {
    await other.close();
  }
  const ben = await people.ben('GET', '/projects');
  assert.deepEqual(ben.projects.map((one) => [one.parent, one.annotator]), [[project, 'ben']]);
});

/** Finishes all copies of an annotator; `decide` makes decisions on a document first. */
async function finishAll(name, decide) {
  const api = people[name];
  const [{ id }] = (await api('GET', '/projects')).projects;
  for (const row of (await api('GET', `/projects/${id}/documents`)).documents) {
    let document = await api('GET', `/documents/${row.id}`);
    const decisions = document.marks.flatMap(decide);
    if (decisions.length) await api('POST', `/documents/${row.id}/decisions`, { version: document.version, decisions });
    document = await api('GET', `/documents/${row.id}`);
    const accepts = document.marks.filter((mark) => mark.state === 'open').length;
    await api('POST', `/documents/${row.id}/decisions`, { version: document.version, decisions: [{ kind: 'finish', value: true, accepts, seconds: 20 }] });
  }
}

test('progress is shown by person, and answers come together when both have finished', async () => {
  await finishAll('ben', () => []);
  const row = page.getByRole('region', { name: 'Progress' }).locator('tbody tr', { hasText: 'ben' });
  await row.getByText('3 of 3').waitFor();
  await row.getByText('20 s').waitFor();
  await page.getByRole('region', { name: 'Assigned documents' }).getByText('1 of 2 finished').first().waitFor();
  // Cleo takes every headache for another concept.
  await finishAll('cleo', (mark) => (/headache/i.test(mark.text) ? [{ kind: 'concept', mark: mark.id, concept: 'MESH:D010146' }] : []));
  await page.getByRole('link', { name: '1 disagreement' }).first().waitFor();
});

for (const [theme, forced] of [['light', 'none'], ['dark', 'none'], ['light', 'active']]) {
  test(`axe finds nothing serious in the assignment in ${theme}${forced === 'active' ? ' and forced colours' : ''}`, async () => {
    await page.emulateMedia({ colorScheme: theme, forcedColors: forced, reducedMotion: 'reduce' });
    assert.deepEqual(await serious(page), []);
    await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' });
  });
}

test('disagreements with the same answers are adjudicated together, undone as one, and finish the documents', async () => {
  await page.locator('.tabs a', { hasText: 'Disagreements' }).click();
  await page.getByText('Cohen’s kappa').waitFor();
  await page.getByRole('button', { name: 'Grouped by text and answers' }).click();
  const group = page.getByRole('region', { name: 'Groups of disagreements' }).locator('button', { hasText: /headache/i }).first();
  await group.getByText('3 ×').waitFor();
  assert.deepEqual(await serious(page), []);
  await page.locator('.answers button', { hasText: 'MESH:D006261' }).click();
  await page.getByText(/“headache”: Headache, in 3 disagreements\./i).waitFor();
  const open = async () => (await ada('GET', `/projects/${project}/disagreements`)).n_open;
  assert.equal(await open(), 0);
  assert.equal((await ada('GET', `/projects/${project}`)).n_finished, 3);
  await page.getByRole('button', { name: 'Undo', exact: true }).click();
  await until('all open again', async () => (await open()) === 3);
  assert.equal((await ada('GET', `/projects/${project}`)).n_finished, 0);
  await page.reload();
  await page.getByRole('button', { name: 'Grouped by text and answers' }).click();
  await page.locator('.answers button', { hasText: 'MESH:D006261' }).click();
  await until('resolved', async () => (await open()) === 0);
  await page.goto(`/projects/${project}/assignment`);
  await until('all adjudicated', async () => (await page.getByText('adjudicated').count()) === 3);
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
