// Disagreements, tokens, accounts and members. Needs the mock, where signing in changes the current user.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { samples } from '../mock/samples.mjs';
import { call, open, serious } from './browser.mjs';

const withMock = { skip: process.env.CANONYM_URL ? 'the server has no people to disagree' : false };
let it, page, project, documents;
const api = (method, path, body) => call(it.base, method, path, body);
const as = (name) => api('POST', '/login', { name, password: 'correct horse' });
const marks = async (id) => (await api('GET', `/documents/${id}?all=1`)).marks;
const left = async () => (await api('GET', `/projects/${project}/disagreements`)).n_open;
let nth = 0;
const decide = async (id, ...decisions) => api('POST', `/documents/${id}/decisions`, { version: (await api('GET', `/documents/${id}`)).version, client_id: `settle-${nth++}`, decisions });

before(async () => {
  if (withMock.skip) return;
  it = await open();
  page = it.page;
  for (const [name, role] of [['ada', 'admin'], ['bob', 'annotator'], ['cyd', 'curator']]) await api('POST', '/people', { name, password: 'correct horse', role });
  project = (await api('POST', '/projects', { name: 'Settle' })).id;
  await call(it.base, 'POST', `/projects/${project}/import?format=pubtator&annotations=gold&filename=a.pubtator`, samples, 'text/plain');
  documents = (await api('GET', `/projects/${project}/documents`)).documents.map((row) => row.id);
  const gold = async (id, text) => (await marks(id)).find((mark) => mark.text === text).id;
  const [delirium, cancer] = [await gold(documents[0], 'delirium'), await gold(documents[2], 'lung cancer')];
  await as('ada');
  await decide(documents[0], { kind: 'accept', mark: delirium });
  await decide(documents[1], { kind: 'add', spans: [[75, 90]], concept: 'MESH:D003920' });
  await decide(documents[2], { kind: 'accept', mark: cancer });
  await as('bob');
  await decide(documents[0], { kind: 'concept', mark: delirium, concept: 'MESH:D003221' });
  await decide(documents[1], { kind: 'add', spans: [[82, 90]], concept: 'MESH:D003920' });
  await decide(documents[2], { kind: 'reject', mark: cancer });
  await as('cyd');
});
after(async () => {
  await it?.close();
});

const here = (text) => page.locator('section h2', { hasText: text }).waitFor();

test('the tab shows the number of disagreements, and figures show the agreement', withMock, async () => {
  await page.goto(`/projects/${project}`);
  await page.locator('.tabs a', { hasText: 'Disagreements' }).locator('.chip', { hasText: '3' }).waitFor();
  await page.locator('.tabs a', { hasText: 'Disagreements' }).click();
  await here('delirium');
  await page.getByText('Cohen’s kappa').waitFor();
  assert.deepEqual(await page.locator('.answer .who').allTextContents(), ['ada', 'bob']);
});

for (const theme of ['light', 'dark']) {
  test(`axe finds nothing serious in ${theme}, and nothing sticks out`, withMock, async () => {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    assert.deepEqual(await serious(page), []);
    for (const width of [1024, 768]) {
      await page.setViewportSize({ width, height: 768 });
      assert.equal(await page.evaluate(() => globalThis.document.querySelector('main').scrollWidth - globalThis.document.querySelector('main').clientWidth), 0);
    }
    await page.setViewportSize({ width: 1280, height: 860 });
  });
}

test('keys move, accept an answer, and undo it', withMock, async () => {
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await here('lung cancer');
  await page.keyboard.press('k');
  await page.keyboard.press('k');
  await here('delirium');
  await page.keyboard.press('2');
  await here('diabetes');
  await page.getByText('Confusion').waitFor();
  assert.equal(await left(), 2);
  const mark = (await marks(documents[0])).find((one) => one.text === 'delirium');
  assert.deepEqual([mark.concept.id, mark.by], ['MESH:D003221', 'cyd']);
  await page.keyboard.press('u');
  await here('delirium');
  assert.equal(await left(), 3);
  await page.keyboard.press('1');
  await here('diabetes');
});

test('another concept is picked with other boundaries', withMock, async () => {
  await page.keyboard.press('e');
  await page.keyboard.press('/');
  await page.keyboard.type('type 2 diabetes');
  await page.keyboard.press('Enter');
  await here('lung cancer');
  const kept = (await marks(documents[1])).filter((mark) => mark.state === 'accepted' && mark.spans[0][0] >= 75 && mark.spans[0][1] <= 90);
  assert.deepEqual(kept.map((mark) => [mark.spans, mark.concept.id]), [[[[82, 90]], 'MESH:D003924']]);
});

test('Enter opens the document, and x means not a mention', withMock, async () => {
  await page.keyboard.press('Enter');
  await page.waitForURL(/annotate\/\d+\?span=\d+-\d+/);
  await page.locator('aside .mention', { hasText: 'lung cancer' }).waitFor();
  await page.goBack();
  await here('lung cancer');
  await page.keyboard.press('x');
  await page.getByText('No disagreements').waitFor();
  assert.equal(await left(), 0);
});

test('a rejected resolution is reported and stays open', withMock, async () => {
  await as('bob');
  const mark = (await marks(documents[0])).find((one) => one.text === 'delirium').id;
  await decide(documents[0], { kind: 'nil', mark });
  await as('cyd');
  await page.reload();
  await page.locator('.chip', { hasText: 'reopened' }).waitFor();
  const error = { code: 'conflict', message: 'mark 1 was changed meanwhile', hint: null };
  await page.route('**/decisions', (route) => route.fulfill({ status: 409, json: { error } }), { times: 1 });
  await page.keyboard.press('1');
  await page.getByText('Nothing was resolved').waitFor();
  await here('delirium');
  assert.equal(await left(), 1);
  it.complaints.length = 0;
});

test('annotators see answers and cannot resolve them', withMock, async () => {
  await as('bob');
  await page.reload();
  await here('delirium');
  assert.ok(await page.locator('.answer').first().isDisabled());
  await page.keyboard.press('1');
  await page.getByText('Only curators and admins can resolve disagreements. You can').waitFor();
  assert.equal(await left(), 1);
  await api('POST', '/logout', {});
});

test('a token is shown once, and revoked', withMock, async () => {
  await page.goto('/settings');
  await page.getByLabel('Token name').fill('nightly');
  await page.getByRole('button', { name: 'Create token' }).click();
  const secret = await page.getByLabel('Token', { exact: true }).inputValue();
  assert.ok(secret.length > 30);
  await page.getByRole('button', { name: 'Copy' }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  await page.reload();
  await page.getByRole('cell', { name: 'nightly', exact: true }).waitFor();
  assert.equal(await page.getByText(secret).count(), 0);
  await page.getByRole('button', { name: 'Revoke nightly' }).click();
  await page.getByText('No tokens yet.').waitFor();
});

test('accounts get another role, a new password, and are deactivated', withMock, async () => {
  await page.getByLabel('Role of bob').selectOption('curator');
  await page.getByText('Changed the role of bob to curator.').waitFor();
  await page.getByRole('button', { name: 'Reset password of bob' }).click();
  assert.deepEqual(await serious(page), []);
  await page.getByLabel('New password (at least 8 characters)').fill('another horse');
  await page.getByRole('button', { name: 'Reset password', exact: true }).click();
  await page.getByText('Reset the password of bob.').waitFor();
  await page.getByRole('button', { name: 'Deactivate bob', exact: true }).click();
  await page.getByText('Deactivated bob.').waitFor();
  await page.getByRole('row', { name: /bob/ }).getByText('deactivated').waitFor();
  const { people } = await api('GET', '/people');
  assert.deepEqual(people.filter((one) => one.name === 'bob').map((one) => [one.role, one.is_active]), [['curator', false]]);
  await page.getByRole('button', { name: 'Activate bob', exact: true }).click();
  await page.getByText('Activated bob.', { exact: true }).waitFor();
});

test('members of a project are added and removed', withMock, async () => {
  await page.goto(`/projects/${project}/members`);
  await page.getByRole('cell', { name: 'local' }).waitFor({ state: 'detached' });
  await page.getByLabel('Account').selectOption('bob (curator)');
  await page.getByRole('button', { name: 'Add member' }).click();
  await page.getByText('Added bob to this project.').waitFor();
  assert.deepEqual(await serious(page), []);
  const names = async () => (await api('GET', `/projects/${project}/people`)).people.map((one) => one.name);
  assert.ok((await names()).includes('bob'));
  await page.getByRole('button', { name: 'Remove bob' }).click();
  await page.getByText('Removed bob from this project.').waitFor();
  assert.ok(!(await names()).includes('bob'));
});

test('no console errors', withMock, () => assert.deepEqual(it.complaints, []));
