// The test set, the models that changes compare, and the columns of imported tables. The import runs with the mock or, by CANONYM_URL, with a server;
// the rest needs the mock, whose trainings take a second.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { samples } from '../mock/samples.mjs';
import { call, open, serious, until } from './browser.mjs';

const withMock = { skip: process.env.CANONYM_URL ? 'needs the mock' : false };
let it, page, project, ids;
const api = (method, path, body) => call(it.base, method, path, body);
const rows = async (p, filter = '') => (await api('GET', `/projects/${p}/documents?limit=100${filter}`)).documents;
const shownIds = () => page.locator('tbody tr td:first-child').allTextContents();
const shows = (expected) => until(expected.join(), async () => (await shownIds()).join() === expected.join());

before(async () => {
  it = await open();
  page = it.page;
});
after(async () => {
  await it?.close();
});

async function decide(id, decision) {
  const { version } = await api('GET', `/documents/${id}`);
  await api('POST', `/documents/${id}/decisions`, { client_id: `${decision.kind}-${id}`, version, decisions: [decision] });
}

async function train() {
  const { id } = await api('POST', `/projects/${project}/jobs`, { kind: 'train' });
  await until('the training', async () => (await api('GET', `/jobs/${id}`)).state === 'SUCCEEDED');
}

test('a table is imported by the names of its columns', async () => {
  const made = (await api('POST', '/projects', { name: `Table ${Date.now()}` })).id;
  await page.goto(`/projects/${made}/import`);
  const report = page.getByRole('region', { name: 'Report' });
  const upload = (name) => page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from('note_id,ward,note\nn-7,B2,She had a headache.\nn-8,B3,No fever.\n') });
  await upload('without.csv');
  await report.getByText('name the column with “Text column”', { exact: false }).waitFor();
  assert.deepEqual(await rows(made), []);
  await page.getByLabel('Text column (tables)').fill(' note ');
  await page.getByLabel('ID column (tables)').fill('note_id');
  assert.deepEqual(await serious(page), []);
  await upload('notes.csv');
  await report.getByText('2 documents').waitFor();
  assert.deepEqual((await rows(made)).map((row) => [row.external_id, row.title, row.metadata]), [
    ['n-7', 'She had a headache.', [{ name: 'ward', value: 'B2' }]],
    ['n-8', 'No fever.', [{ name: 'ward', value: 'B3' }]],
  ]);
  // A format without columns has no fields for them.
  await page.getByLabel('Format').selectOption('pubtator');
  assert.equal(await page.getByLabel('Text column (tables)').count(), 0);
  await page.getByLabel('Format').selectOption('csv');
  assert.equal(await page.getByLabel('Text column (tables)').inputValue(), ' note ');
  // What the file did not provoke is a fault.
  it.complaints.splice(0, it.complaints.length, ...it.complaints.filter((one) => !one.includes('422')));
});

test('held-out documents have a badge and a list of their own', withMock, async () => {
  project = (await api('POST', '/projects', { name: `Held out ${Date.now()}` })).id;
  const text = samples.replaceAll('90000', `${Date.now()}`);
  await call(it.base, 'POST', `/projects/${project}/import?format=pubtator&annotations=gold&filename=a.pubtator`, text, 'text/plain');
  ids = (await rows(project)).map((row) => row.id);
  await page.goto(`/projects/${project}/documents`);
  await page.getByLabel('Held out').check();
  await page.getByText('No held-out documents').waitFor();
  for (const id of ids) await decide(id, { kind: 'finish', value: true });
  await train();
  const heldOut = (await rows(project, '&state=held_out')).map((row) => row.external_id);
  const all = (await rows(project)).map((row) => row.external_id);
  assert.ok(heldOut.length > 0 && heldOut.length < all.length, `${heldOut.length} of ${all.length}`);
  await page.goto(`/projects/${project}/documents`);
  await shows(all);
  for (const id of all) {
    const badge = page.getByRole('row', { name: new RegExp(`^${id}`) }).getByText('held out', { exact: true });
    assert.equal(await badge.count(), heldOut.includes(id) ? 1 : 0, id);
  }
  await page.getByLabel('Held out').check();
  await shows(heldOut);
  assert.deepEqual(await serious(page), []);
  await page.getByLabel('All').check();
  await shows(all);
});

test('the training page counts held-out documents among the complete ones', withMock, async () => {
  await page.goto(`/projects/${project}/jobs`);
  const { length } = ids;
  await page.getByText(`${length} complete, 1 of them held out`).waitFor();
  await page.getByText(`${length - 1} documents`, { exact: false }).first().waitFor();
});

test('a correction of the test set is told where scores are compared', withMock, async () => {
  await page.goto(`/projects/${project}/jobs`);
  await page.getByRole('region', { name: 'Scores' }).waitFor();
  assert.equal(await page.getByText('The test set changed since', { exact: false }).count(), 0);
  const [first] = (await api('GET', `/models?project=${project}`)).models.filter((model) => model.project_id === project);
  const [held] = await rows(project, '&state=held_out');
  await decide(held.id, { kind: 'add', spans: [[0, 3]], is_nil: true });
  await train();
  await page.goto(`/projects/${project}/jobs`);
  for (const name of ['Scores', 'Changes']) await page.getByRole('region', { name }).getByText(`The test set changed since “${first.name}”`, { exact: false }).waitFor();
});

test('changes name the models of the run, whichever is in use now', withMock, async () => {
  const models = (await api('GET', `/models?project=${project}`)).models;
  const [used, other] = [models.find((model) => model.is_current), models.find((model) => !model.is_current)];
  const { id } = await api('POST', `/projects/${project}/jobs`, { kind: 'predict' });
  await until('the prediction', async () => (await api('GET', `/jobs/${id}`)).state === 'SUCCEEDED');
  const { model_after: after } = await api('GET', `/projects/${project}/changes?from=${id}`);
  await api('POST', `/projects/${project}/models/${other.id}/use`, {});
  await page.goto(`/projects/${project}/jobs`);
  const section = page.getByRole('region', { name: 'Changes' });
  await section.waitFor();
  assert.equal(await section.getByText(`“${other.name}”`).count(), 0);
  await section.getByText(after ? used.name : 'Nothing was predicted', { exact: false }).first().waitFor();
});

test('the page of a text offers the model of the current project first', withMock, async () => {
  const models = (await api('GET', `/models?project=${project}`)).models;
  const own = models.findLast((model) => model.project_id === project);
  await api('POST', `/projects/${project}/models/${own.id}/use`, {});
  await page.goto(`/projects/${project}`);
  await page.getByRole('link', { name: 'Link', exact: true }).click();
  const select = page.getByLabel('Model:');
  await select.waitFor();
  await until('the model of the project', async () => (await select.inputValue()) === String(project), 5000);
  assert.match((await select.locator('option').allTextContents())[0], new RegExp(`^${own.name.replace(/[()+]/g, '\\$&')} \\(`));
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
