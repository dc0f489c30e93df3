// What curators do beyond single decisions, from the sample project on; with the mock or, by CANONYM_URL, with a server that uses the starter terminology.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { call, open, serious, until } from './browser.mjs';

let it, page, project;
const api = (method, path, body) => call(it.base, method, path, body);
const documents = async (p = project) => (await api('GET', `/projects/${p}/documents?limit=100`)).documents;
const marks = async (id) => (await api('GET', `/documents/${id}`)).marks;
const saved = () => page.locator('[data-save=saved]').waitFor();

before(async () => {
  it = await open();
  page = it.page;
});
after(async () => {
  await it?.close();
});

test('a newcomer reads what this is, and decides in a sample project after one click', async () => {
  await page.goto('/');
  await page.getByText('links each to a concept of a terminology').waitFor();
  const isFirst = !(await api('GET', '/projects')).projects.length;
  if (isFirst) await page.getByRole('button', { name: 'Create sample project' }).click();
  else {
    project = (await api('POST', '/projects/sample', {})).id;
    const [first] = (await api('GET', `/projects/${project}/queue`)).documents;
    await page.goto(`/projects/${project}/annotate/${first.id}`);
  }
  await page.waitForURL(/\/projects\/\d+\/annotate\/\d+$/);
  project = Number(/projects\/(\d+)/.exec(page.url())[1]);
  assert.equal((await documents()).length, 10);
  const id = Number(/\d+$/.exec(page.url())[0]);
  const [first] = (await api('GET', `/projects/${project}/queue`)).documents;
  assert.equal(first.id, id, 'the first document of the queue');
  await page.locator('aside .chip.pred').waitFor();
  const nOpen = (await marks(id)).filter((mark) => mark.state === 'open').length;
  assert.ok(nOpen, 'something to decide');
  await page.keyboard.press('a');
  await saved();
  await until('the decision', async () => (await marks(id)).filter((mark) => mark.state === 'open').length === nOpen - 1);
});

test('the import page offers JATS and CSV', async () => {
  await page.goto(`/projects/${project}/import`);
  const values = await page.getByLabel('Format').locator('option').evaluateAll((all) => all.map((one) => one.value));
  assert.ok(values.includes('jats') && values.includes('csv'), values.join());
});

const group = (text) => page.locator('.groups button').filter({ has: page.locator('.name', { hasText: new RegExp(`^${text}$`, 'i') }) });
const openOf = async (text) => {
  const { mentions } = await api('GET', `/projects/${project}/groups/mentions?text=${text}&concept=${encodeURIComponent(concepts[text])}`);
  return mentions.length;
};
const concepts = { headache: 'MESH:D006261', fever: 'MESH:D005334', ibuprofen: 'MESH:D007052' };

test('predictions with one text and concept are accepted together and undone as one', async () => {
  project = (await api('POST', '/projects/sample', {})).id;
  await page.goto(`/projects/${project}/review`);
  await group('headache').click();
  const before = await openOf('headache');
  assert.ok(before >= 4, `${before} headaches`);
  await page.getByRole('heading', { name: 'headache' }).waitFor();
  await until('the contexts', async () => (await page.locator('.contexts tbody tr').count()) === before);
  await page.getByRole('button', { name: `Accept ${before}` }).click();
  await page.getByText(`Accepted ${before} mentions of “headache”`).waitFor();
  await group('headache').waitFor({ state: 'detached' });
  assert.equal(await openOf('headache'), 0);
  await page.getByRole('button', { name: 'Undo', exact: true }).first().click();
  await group('headache').waitFor();
  assert.equal(await openOf('headache'), before);
});

test('a selection of a group is rejected, and the rest relinked', async () => {
  await group('fever').click();
  await page.getByRole('heading', { name: 'fever' }).waitFor();
  const before = await openOf('fever');
  await until('the contexts', async () => (await page.locator('.contexts tbody tr').count()) === before);
  await page.getByLabel('Select all').click();
  await page.getByRole('button', { name: 'Reject 0' }).waitFor();
  await page.locator('.contexts tbody input').first().click();
  await page.getByRole('button', { name: 'Reject 1' }).click();
  await page.getByText('Rejected 1 mention of “fever” in 1 document.').waitFor();
  await until('one is gone', async () => (await page.locator('.contexts tbody tr').count()) === before - 1);
  await page.keyboard.press('/');
  await page.getByLabel('Concept to link to').fill('Cough');
  await page.getByRole('list', { name: 'Concepts found' }).getByRole('button', { name: 'MESH:D003371' }).click();
  await page.getByText(`Linked to Cough: ${before - 1} mentions of “fever”`).waitFor();
  await group('fever').waitFor({ state: 'detached' });
  const found = await api('GET', `/projects/${project}/mentions?concept=MESH:D003371&limit=100`);
  assert.equal(found.mentions.filter((row) => /^fever$/i.test(row.text) && row.state === 'accepted').length, before - 1);
});

test('a threshold selects predictions by score', async () => {
  await group('ibuprofen').click();
  await page.getByRole('heading', { name: 'ibuprofen' }).waitFor();
  await page.locator('.contexts tbody tr').first().waitFor();
  await page.getByLabel('Score from').fill('1');
  await page.getByRole('button', { name: 'Accept 0' }).waitFor();
  await page.getByLabel('Score from').fill('0.1');
  await page.getByRole('button', { name: `Accept ${await openOf('ibuprofen')}` }).waitFor();
  assert.deepEqual(await serious(page), []);
});

test('the picker shows at most eight candidates, the evidence for each, and details beside the list', async () => {
  await page.setViewportSize({ width: 1600, height: 900 });
  const [{ id }] = (await documents()).filter((row) => row.external_id === 'sample-04');
  const focus = async (text) => {
    await page.locator('.text .marked mark', { hasText: new RegExp(`^${text}$`) }).last().click();
    await page.locator('aside .mention', { hasText: text }).waitFor();
    await page.locator('.candidate').first().waitFor();
  };
  await page.goto(`/projects/${project}/annotate/${id}`);
  await focus('CKD');
  assert.ok((await page.locator('.candidate').count()) <= 8);
  const evidence = page.locator('.candidate .evidence').first();
  await page.locator('.candidate .evidence', { hasText: /model \.\d\d, exact synonym “CKD”/ }).first().waitFor();
  const detail = page.getByRole('group', { name: /^About / });
  await detail.getByText('Renal Insufficiency, Chronic').first().waitFor();
  // The starter has no hierarchy.
  const { path } = await api('GET', '/kb/concepts/MESH:D051436');
  if (path.length > 1) await detail.getByText(path.map((one) => one.name).join(' › ')).waitFor();
  const [list, beside] = [await page.locator('.choices').boundingBox(), await detail.boundingBox()];
  assert.ok(beside.x >= list.x + list.width, 'beside, not below');
  await page.keyboard.press('1');
  await saved();
  await focus('CKD');
  await evidence.getByText('chosen once here').waitFor();
  await page.keyboard.press('u');
  await saved();
  await page.setViewportSize({ width: 1280, height: 860 });
});

test('predictions and the picker keep to the scope of the project', async () => {
  const scoped = (await api('POST', '/projects/sample', {})).id;
  await page.goto(`/projects/${scoped}`);
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByText('Scope: whole terminology').click();
  await page.getByRole('checkbox', { name: 'Drug' }).check();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('Scope: Drug').waitFor();
  const all = (await Promise.all((await documents(scoped)).map((row) => marks(row.id)))).flat();
  assert.ok(all.length && all.every((mark) => mark.type === 'Drug'), 'only drugs are left');
  const [row] = (await documents(scoped)).filter((one) => one.n_open);
  await page.goto(`/projects/${scoped}/annotate/${row.id}`);
  await page.locator('.candidate').first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('headache');
  await page.getByText(/in the scope of the project \(Drug\)|acetaminophen/i).first().waitFor();
  assert.equal(await page.locator('.candidate', { hasText: 'MESH:D006261' }).count(), 0);
  await page.keyboard.press('Escape');
});

/** Opens the first document of a new sample project; its number. */
async function openSample() {
  project = (await api('POST', '/projects/sample', {})).id;
  const [first] = (await api('GET', `/projects/${project}/queue`)).documents;
  await page.goto(`/projects/${project}/annotate/${first.id}`);
  await page.locator('aside .chip.pred').waitFor();
  await page.locator('.candidate').first().waitFor();
  return first.id;
}

test('the guideline is shown as Markdown beside the text, without raw HTML', async () => {
  const id = await openSample();
  await api('PATCH', `/projects/${project}`, { guideline: '## What counts\n- **bold** rule\n\n<b id="raw">raw</b> [bad](javascript:alert(1))' });
  await page.reload();
  await page.getByRole('button', { name: 'Guideline' }).click();
  const guideline = page.getByRole('region', { name: 'Guideline' });
  await guideline.getByRole('heading', { name: 'What counts' }).waitFor();
  assert.equal(await guideline.locator('li strong').textContent(), 'bold');
  assert.equal(await guideline.locator('#raw, a').count(), 0);
  assert.match(await guideline.textContent(), /<b id="raw">raw<\/b> \[bad\]\(javascript:alert\(1\)\)/);
  const [text, beside] = [await page.locator('.text').boundingBox(), await guideline.boundingBox()];
  assert.ok(beside.x >= text.x + text.width - 1 || beside.y >= text.y + text.height - 1);
  assert.deepEqual(await serious(page), []);
  // It stays open in the next document, and a key closes it.
  await page.reload();
  await guideline.waitFor();
  await page.keyboard.press('i');
  await guideline.waitFor({ state: 'detached' });
  assert.equal(Number(/\d+$/.exec(page.url())[0]), id);
});

const left = (n) => page.getByText(new RegExp(`^${n} mentions? left`)).waitFor();

test('focus mode decides on one mention with one key', async () => {
  const id = await openSample();
  const before = (await marks(id)).filter((mark) => mark.state === 'open').length;
  await page.keyboard.press('m');
  await page.waitForURL(/\/focus\/\d+$/);
  await left(before);
  const candidate = page.locator('.three .candidate');
  await candidate.first().waitFor();
  assert.ok((await candidate.count()) <= 3);
  assert.deepEqual(await serious(page), []);
  const text = await page.locator('.context mark').first().textContent();
  await page.keyboard.press('1');
  await left(before - 1);
  await saved();
  assert.ok((await marks(id)).some((mark) => mark.text === text && mark.state === 'accepted' && mark.source === 'USER'));
  await page.keyboard.press('x');
  await left(before - 2);
  await page.keyboard.press('u');
  await left(before - 1);
  for (let n = before - 1; n > 0; n--) {
    await left(n);
    await page.keyboard.press('a');
  }
  await page.getByText('are reviewed').waitFor();
  await page.keyboard.press('f');
  await page.waitForURL((url) => /\/focus\/\d+$/.test(url.pathname) && !url.pathname.endsWith(`/${id}`));
  await until('the document is finished', async () => (await api('GET', `/documents/${id}`)).is_finished);
  await page.locator('.context mark').first().waitFor();
  await page.keyboard.press('Escape');
  await page.waitForURL(/\/annotate\/\d+$/);
});

test('the command palette runs actions and opens pages by name', async () => {
  const id = await openSample();
  const nOpen = async () => (await marks(id)).filter((mark) => mark.state === 'open').length;
  const before = await nOpen();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Command' }).fill('accept');
  await page.getByRole('option', { name: 'Accept' }).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await until('the decision', async () => (await nOpen()) === before - 1);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Command' }).fill('review');
  await page.getByRole('option', { name: 'Project: Review', exact: true }).click();
  await page.waitForURL(/\/review$/);
});

test('keys are changed in the settings, hold on the annotation page, and are reset', async () => {
  await page.goto('/settings');
  await page.getByText('Change keys').click();
  const change = (name) => page.getByRole('button', { name: `Change the key of ${name}`, exact: true });
  await change('accept').click();
  await page.keyboard.press('x');
  await page.getByText('This key is used for “reject”; change that one first.').waitFor();
  await page.keyboard.press('y');
  await page.getByRole('row', { name: 'Accept y' }).waitFor();
  const id = await openSample();
  const nOpen = async () => (await marks(id)).filter((mark) => mark.state === 'open').length;
  const before = await nOpen();
  await page.getByRole('toolbar', { name: 'Decisions' }).getByRole('button', { name: 'y accept' }).waitFor();
  await page.keyboard.press('a');
  await page.keyboard.press('y');
  await until('one decision', async () => (await nOpen()) === before - 1);
  await page.goto('/settings');
  await page.getByText('Change keys').click();
  await page.getByRole('button', { name: 'Reset all keys' }).click();
  await page.getByRole('row', { name: 'Accept a' }).waitFor();
});

test('a comment is answered, resolved and reopened by a reply', async () => {
  const id = await openSample();
  await page.keyboard.press('c');
  await page.keyboard.type('A drug here?');
  await page.keyboard.press('Enter');
  const thread = page.getByRole('group', { name: /^Thread of/ });
  await thread.getByText('A drug here?').waitFor();
  await thread.getByRole('button', { name: 'Reply' }).click();
  await page.keyboard.type('Yes, it is.');
  await page.keyboard.press('Enter');
  await thread.getByText('Yes, it is.').waitFor();
  assert.equal((await documents()).find((row) => row.id === id).n_threads, 1);
  await thread.getByRole('button', { name: 'Resolve' }).click();
  await thread.waitFor({ state: 'detached' });
  assert.equal((await documents()).find((row) => row.id === id).n_threads, 0);
  await page.reload();
  await page.getByRole('button', { name: 'Show 1 resolved' }).click();
  await thread.getByText('resolved by local').waitFor();
  assert.deepEqual(await serious(page), []);
  await thread.getByRole('button', { name: 'Reply' }).click();
  await page.keyboard.type('On second thought …');
  await page.keyboard.press('Enter');
  await thread.getByRole('button', { name: 'Resolve' }).waitFor();
});

test('a project is copied as a template and with annotations, archived and restored', async () => {
  const made = (await api('POST', '/projects/sample', {})).id;
  const name = `Original ${Date.now()}`;
  await api('PATCH', `/projects/${made}`, { name });
  const first = (await documents(made))[0].id;
  const open = (await marks(first)).filter((mark) => mark.state === 'open');
  await api('POST', `/documents/${first}/decisions`, { version: (await api('GET', `/documents/${first}`)).version, client_id: `copy-${made}`, decisions: [{ kind: 'accept', mark: open[0].id }] });
  for (const [choice, n] of [['Settings only', 0], ['documents and their annotations', 10]]) {
    await page.goto(`/projects/${made}`);
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByRole('radio', { name: new RegExp(choice) }).check();
    await page.getByLabel('Name of the copy').fill(`${name} ${n}`);
    await page.getByRole('button', { name: 'Create copy' }).click();
    await page.getByRole('heading', { name: `${name} ${n}` }).waitFor();
    const copy = (await api('GET', '/projects')).projects.find((one) => one.name === `${name} ${n}`);
    assert.equal(copy.n_documents, n);
    assert.match(copy.guideline, /What to annotate/);
    if (n) assert.equal((await marks((await documents(copy.id))[0].id)).filter((mark) => mark.state === 'accepted').length, 1);
  }
  await page.goto(`/projects/${made}`);
  await page.getByRole('button', { name: 'Archive', exact: true }).click();
  await page.locator('h1 .chip', { hasText: 'archived' }).waitFor();
  await page.goto('/projects');
  const link = page.getByRole('link', { name: new RegExp(`^${name} Ten`) });
  await page.getByText(/^Archived \(\d+\)/).waitFor();
  assert.equal(await link.isVisible(), false);
  await page.getByText(/^Archived \(\d+\)/).click();
  assert.deepEqual(await serious(page), []);
  await link.click();
  await page.getByRole('button', { name: 'Restore' }).click();
  await page.getByRole('button', { name: 'Archive', exact: true }).waitFor();
  assert.equal((await api('GET', `/projects/${made}`)).is_archived, false);
});

test('documents are searched, sorted and filtered by their metadata', async () => {
  await openSample();
  await page.goto(`/projects/${project}/documents`);
  const ids = () => page.locator('tbody tr td:first-child').allTextContents();
  const shows = (expected) => until(expected.join(), async () => (await ids()).join() === expected.join());
  await until('ten rows', async () => (await ids()).length === 10);
  for (const [id, year] of [['sample-03', '2021'], ['sample-05', '2019'], ['sample-07', '2021']]) {
    await page.getByRole('button', { name: `Metadata of ${id}` }).click();
    await page.getByLabel('One entry a line').fill(`year: ${year}\nward: 7`);
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('row', { name: new RegExp(`^${id}`) }).getByRole('button', { name: `year: ${year}` }).waitFor();
  }
  assert.deepEqual(await serious(page), []);
  await page.getByLabel('Search documents').fill('asthma');
  await shows(['sample-08']);
  await page.getByLabel('Search documents').fill('2019');
  await shows(['sample-05']);
  await page.getByLabel('Search documents').fill('');
  await page.getByRole('row', { name: /^sample-03/ }).getByRole('button', { name: 'year: 2021' }).click();
  await shows(['sample-03', 'sample-07']);
  await page.getByLabel('Sort by').selectOption('id asc');
  await page.getByLabel('Sort by').selectOption('import asc');
  await page.getByRole('button', { name: 'Remove filter year: 2021' }).click();
  await until('ten rows', async () => (await ids()).length === 10);
  await page.getByLabel('Sort by').selectOption('meta:year asc');
  await until('the order', async () => (await ids()).slice(0, 3).join() === 'sample-05,sample-03,sample-07');
  await page.getByLabel('Search documents').fill('no such words');
  await page.getByText('No document matches').waitFor();
  await page.getByRole('button', { name: 'Show all documents' }).click();
  await until('ten rows', async () => (await ids()).length === 10);
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
