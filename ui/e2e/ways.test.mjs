// Ways through the application: the palette, links between pages, where annotators land, and what pages say when nothing is there.
// With the mock or, by CANONYM_URL, with a server that uses the starter terminology.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { call, open, serious, until } from './browser.mjs';

const withMock = { skip: process.env.CANONYM_URL ? 'needs the mock' : false };
let it, page;
const api = (method, path, body) => call(it.base, method, path, body);
const importText = (project, name, text) => call(it.base, 'POST', `/projects/${project}/import?format=text&filename=${name}.txt`, text, 'text/plain');
const documents = async (project) => (await api('GET', `/projects/${project}/documents`)).documents;

before(async () => {
  it = await open({ width: 1280, height: 800 });
  page = it.page;
});
after(async () => {
  await it?.close();
});

async function command(typed, option) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Command' }).fill(typed);
  await page.getByRole('option', { name: option, exact: true }).click();
  await page.getByRole('combobox', { name: 'Command' }).waitFor({ state: 'detached' });
}

test('the first page says what comes out and where texts go, and has one main button', async () => {
  await page.goto('/');
  await page.getByText('The result is an annotated corpus to export and a model of your own. Texts stay on this').waitFor();
  await page.locator('.columns').waitFor();
  await until('the projects', async () => (await page.locator('.page button.main').count()) === 1);
  assert.deepEqual(await serious(page), []);
});

test('the palette has the sample project, exports, predictions and every page', async () => {
  await page.goto('/projects');
  await command('sample', 'Projects: Create sample project');
  await page.waitForURL(/annotate\/\d+$/);
  await page.locator('aside .chip.pred').waitFor();
  await command('export', 'Project: Export annotations');
  await page.getByRole('dialog', { name: 'Export annotations' }).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.keyboard.press('Escape');
  await command('quality', 'Page: Quality checks');
  await page.waitForURL(/terminology\?checks/);
  await command('new project', 'Projects: New project');
  await page.getByRole('form', { name: 'New project' }).waitFor();
  await command('train', 'Project: Train a model');
  await page.waitForURL(/\/jobs$/);
  await command('predict', 'Project: Predict');
  await page.getByText('Prediction started.').waitFor();
  await page.locator('[data-state=SUCCEEDED]').first().waitFor({ timeout: 60_000 });
});

test('without a current project, the palette names the project of an action', async () => {
  const name = `Elsewhere ${Date.now()}`;
  const { id } = await api('POST', '/projects', { name });
  await page.goto('/settings');
  await command(name, `${name}: Train a model`);
  await page.waitForURL(new RegExp(`/projects/${id}/jobs$`));
});

test('the annotation page leads to its project and its export', async () => {
  const name = `Back ${Date.now()}`;
  const project = (await api('POST', '/projects', { name })).id;
  await importText(project, 'a', 'She had fever.');
  const [{ id }] = await documents(project);
  await page.goto(`/projects/${project}/annotate/${id}`);
  const queue = page.getByRole('navigation', { name: 'Queue' });
  await queue.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('dialog', { name: 'Export annotations' }).getByRole('link', { name: 'Download' }).waitFor();
  await page.keyboard.press('Escape');
  await queue.getByRole('link', { name }).click();
  await page.getByRole('heading', { name }).waitFor();
});

test('the sample project can be created beside others', async () => {
  await api('POST', '/projects', { name: `Other ${Date.now()}` });
  await page.goto('/projects');
  await page.getByRole('button', { name: 'New project' }).waitFor();
  await page.getByRole('button', { name: 'Create sample project' }).click();
  await page.waitForURL(/annotate\/\d+$/);
});

test('the first page of the sample says which keys to press, until the first decision', async () => {
  const { id } = await api('POST', '/projects/sample', {});
  const [first] = (await api('GET', `/projects/${id}/queue`)).documents;
  await page.goto(`/projects/${id}/annotate/${first.id}`);
  const line = page.getByText(/Press a if the suggestion is right, x if it is wrong/);
  await line.waitFor();
  assert.deepEqual(await serious(page), []);
  await page.keyboard.press('a');
  await line.waitFor({ state: 'detached' });
  await page.locator('[data-save=saved]').waitFor();
  await page.reload();
  await page.locator('aside .chip').first().waitFor();
  assert.equal(await line.count(), 0);
});

test('a document without predictions says whether it was predicted', async () => {
  const project = (await api('POST', '/projects', { name: `Empty ${Date.now()}` })).id;
  await importText(project, 'a', 'The weather was fine.');
  const [{ id }] = await documents(project);
  await page.goto(`/projects/${project}/annotate/${id}`);
  await page.getByText('No mentions yet.').waitFor();
  await page.locator('.middle .why', { hasText: 'No predictions' }).waitFor();
  const job = await api('POST', `/projects/${project}/jobs`, { kind: 'predict' });
  await until('predictions', async () => (await api('GET', `/jobs/${job.id}`)).state === 'SUCCEEDED');
  await page.locator('.middle .why', { hasText: 'Nothing found' }).waitFor();
  await page.getByText('The model found nothing in this document.').waitFor();
  assert.equal(await page.getByRole('link', { name: 'pre-annotate with the model' }).count(), 0);
  await page.reload();
  await page.locator('.middle .why', { hasText: 'Nothing found' }).waitFor();
});

test('an annotator lands on the assigned documents, and reads when all are finished', withMock, async () => {
  const { id } = await api('POST', '/projects', { name: `Assigned ${Date.now()}` });
  await importText(id, 'a', 'She had fever.');
  const [{ id: document }] = await documents(id);
  await api('POST', '/people', { name: 'cleo', password: 'correct horse', role: 'annotator' });
  await api('POST', '/login', { name: 'cleo', password: 'correct horse' });
  try {
    await page.route('**/api/v1/projects', async (route) => {
      const response = await route.fetch();
      const { projects } = await response.json();
      await route.fulfill({ json: { projects: projects.map((one) => (one.id === id ? { ...one, annotator: 'cleo', parent: 1 } : one)) } });
    });
    await page.goto('/');
    await page.waitForURL(new RegExp(`/projects/${id}$`));
    await page.getByRole('link', { name: 'Start annotating' }).click();
    await page.locator('.text .marked .line').first().waitFor();
    await page.keyboard.press('f');
    await page.getByRole('navigation', { name: 'Queue' }).getByText('All your documents are finished. Thank you.').waitFor();
    assert.equal(await page.getByText('Train a model').count(), 0);
    await page.goto(`/projects/${id}`);
    await page.getByText('All your documents are finished. Thank you.').waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Link' }).click();
    await page.getByRole('heading', { name: 'Link text to concepts' }).waitFor();
    assert.ok((await api('GET', `/documents/${document}`)).is_finished);
  } finally {
    await page.unroute('**/api/v1/projects');
    await api('POST', '/logout', {});
  }
});

test('without a hierarchy, nothing is to browse, and the scope has types only', withMock, async () => {
  await page.route('**/api/v1/kb/tree*', (route) => route.fulfill({ json: { path: [], concepts: [], n_concepts: 0 } }));
  try {
    const { id } = await api('POST', '/projects/sample', {});
    const [first] = (await api('GET', `/projects/${id}/queue`)).documents;
    await page.goto(`/projects/${id}/annotate/${first.id}`);
    await page.locator('.candidate').first().waitFor();
    await page.getByLabel('Type of concepts').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Browse' }).count(), 0);
    await page.keyboard.press('b');
    await page.getByText('mock has no hierarchy to browse.').waitFor();
    await page.goto(`/projects/${id}`);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByText('Scope: whole terminology').click();
    await page.getByText('mock has no hierarchy, so only types limit the scope.').waitFor();
    await page.getByRole('checkbox', { name: 'Drug' }).waitFor();
    assert.equal(await page.getByText('Branches', { exact: true }).count(), 0);
    assert.equal(await page.getByLabel('Add a branch').count(), 0);
    assert.deepEqual(await serious(page), []);
  } finally {
    await page.unroute('**/api/v1/kb/tree*');
  }
});

test('a mention without a type offers to set one', async () => {
  const project = (await api('POST', '/projects', { name: `Types ${Date.now()}` })).id;
  await importText(project, 'a', 'The weather was fine.');
  const [{ id }] = await documents(project);
  const { version } = await api('GET', `/documents/${id}`);
  await api('POST', `/documents/${id}/decisions`, { version, client_id: `type-${id}`, decisions: [{ kind: 'add', spans: [[4, 11]], concept: null, is_nil: true }] });
  await page.goto(`/projects/${project}/annotate/${id}`);
  await page.locator('aside .mention', { hasText: 'weather' }).waitFor();
  await page.locator('aside').getByRole('button', { name: 'Set type' }).click();
  await page.getByRole('dialog', { name: /^Type of/ }).waitFor();
  await page.keyboard.press('Escape');
});

test('the losses of an export are sentences with code', async () => {
  const { id } = await api('POST', '/projects/sample', {});
  await page.route('**/export/losses*', (route) => route.fulfill({ json: { lines: ['1 score will be dropped (first in document `pool-04`)', 'lost: 1 comments', 'the finished status of 2 documents is lost'] } }));
  await page.goto(`/projects/${id}`);
  await page.getByRole('button', { name: 'Export' }).click();
  const lost = page.getByRole('region', { name: 'Lost in export' });
  await lost.locator('code', { hasText: 'pool-04' }).waitFor();
  assert.deepEqual(await lost.locator('li').allTextContents(), ['1 score will be dropped (first in document pool-04).', '1 comment will be lost.', 'The finished status of 2 documents will be lost.']);
  await page.unroute('**/export/losses*');
});

test('a list of ids is cut between ids, and the order is on one line', async () => {
  const project = (await api('POST', '/projects', { name: `Metadata ${Date.now()}` })).id;
  await importText(project, 'a', 'Fever.');
  const [{ id }] = await documents(project);
  await api('PATCH', `/documents/${id}`, { metadata: [{ name: 'mesh', value: 'D015492|D000163|D000001|D000002' }] });
  await page.goto(`/projects/${project}/documents`);
  const chip = page.getByRole('button', { name: 'mesh: D015492, D000163, D000001 +1' });
  await chip.waitFor();
  assert.ok(await chip.evaluate((one) => one.scrollWidth <= one.clientWidth), 'not cut off');
  const height = await page.locator('label.sort').evaluate((one) => one.firstChild.parentElement.getClientRects()[0].height);
  assert.ok(height < 48, `${height} px`);
});

test('a document whose annotators agreed is not called adjudicated', withMock, async () => {
  const project = (await api('POST', '/projects', { name: `Agreed ${Date.now()}` })).id;
  await importText(project, 'a', 'Fever.');
  const [{ id }] = await documents(project);
  const row = { document: id, external_id: 'a', annotators: [{ name: 'ben', is_finished: true }, { name: 'ada', is_finished: true }], is_collected: true, is_finished: true, n_conflicts: 0 };
  await page.route('**/assignments', (route) => route.fulfill({ json: { people: [], documents: [row], next_cursor: null, n_assigned: 1, n_unassigned: 0 } }));
  await page.goto(`/projects/${project}/assignment`);
  await page.getByRole('region', { name: 'Assigned documents' }).getByText('agreed', { exact: true }).waitFor();
  assert.equal(await page.getByText('adjudicated').count(), 0);
  await page.unroute('**/assignments');
});

for (const [width, height, n] of [[1280, 800, 5], [1920, 1080, 8]]) {
  test(`at ${width}×${height}, names of candidates are on one line, and the buttons in one row`, withMock, async () => {
    await page.setViewportSize({ width, height });
    const { id } = await api('POST', '/projects/sample', {});
    const [first] = (await api('GET', `/projects/${id}/queue`)).documents;
    const names = ['Atrial Fibrillation', 'Supraventricular', 'Heart Failure', 'Hypertension', 'Fever', 'Cough', 'Pain', 'Asthma'];
    const candidates = names.map((name, row) => ({ id: `T:${row}`, name, types: ['Disease'], definition: 'A state. '.repeat(40), synonyms: [], path: [], score: 0.9 - row / 10, how: 'model', matched: { name, scope: 'exact', how: 'exact', similarity: 1 }, n_chosen: 0 }));
    await page.route('**/candidates*', (route) => route.fulfill({ json: { candidates } }));
    await page.goto(`/projects/${id}/annotate/${first.id}`);
    await page.locator('.candidate').nth(7).waitFor();
    const { lines, nSeen, rows } = await page.evaluate(() => {
      const all = [...globalThis.document.querySelectorAll('.candidate')];
      const detail = globalThis.document.querySelector('.detail').getBoundingClientRect();
      const isSeen = (one) => {
        const { left, bottom } = one.getBoundingClientRect();
        return bottom <= globalThis.innerHeight && (detail.left > left + 20 || bottom <= detail.top);
      };
      const buttons = [...globalThis.document.querySelectorAll('.actions button')];
      return { lines: all.map((one) => one.querySelector('.name').getBoundingClientRect().height), nSeen: all.filter(isSeen).length, rows: new Set(buttons.map((one) => one.offsetTop)).size };
    });
    await page.unroute('**/candidates*');
    await page.setViewportSize({ width: 1280, height: 800 });
    assert.ok(lines.every((one) => one < 30), lines.join());
    assert.equal(rows, 1);
    assert.ok(nSeen >= n, `${nSeen} candidates in sight`);
  });
}

test('no console errors', () => assert.deepEqual(it.complaints, []));
