// What needs the real server: contexts by rules, the hierarchy, proposals, decisions that spread, types by key, lists and templates.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { call, drag, serious, until } from '../browser.mjs';
import { browse, serve } from './server.mjs';

let server, it, page, project;
const api = (method, path, body) => call(server.url, method, path, body);
const documents = async () => (await api('GET', `/projects/${project}/documents?limit=100`)).documents;
const saved = () => page.locator('[data-save=saved]').waitFor();
const marks = async (row) => (await api('GET', `/documents/${(await documents())[row].id}`)).marks;
const markOf = async (row, text) => (await marks(row)).find((mark) => mark.text === text);

/** Opens a document and focuses a mention. */
async function openAt(row, text) {
  await page.goto(`/projects/${project}/annotate/${(await documents())[row].id}`);
  await page.locator('.text .marked mark', { hasText: new RegExp(`^${text}$`) }).first().click();
  await page.locator('aside .mention', { hasText: text }).waitFor();
  await page.locator('.candidate').first().waitFor();
}

before(async () => {
  server = await serve({ hierarchy: true });
  it = await browse(server);
  page = it.page;
  project = (await api('POST', '/projects', { name: 'Ward' })).id;
});
after(async () => {
  await it?.close();
  await server?.stop();
});

test('each line of a pasted list is a document', async () => {
  await page.goto(`/projects/${project}/import`);
  await page.getByLabel('Format').selectOption('list');
  await page.getByLabel('Or paste text').fill('Denies fever. Her mother had asthma.\nA patient with brain fog and fever took Pepcid.\nn-3\tFever, brain fog, delirium.\nFever again, then delirium.');
  await page.getByRole('button', { name: 'Import text' }).click();
  await page.getByText('4 documents').first().waitFor();
  assert.deepEqual((await documents()).map((row) => row.external_id), ['pasted-1', 'pasted-2', 'n-3', 'pasted-4']);
  await api('POST', `/projects/${project}/jobs`, { kind: 'predict' });
  await until('predictions', async () => (await api('GET', `/projects/${project}/jobs`)).jobs[0].state === 'SUCCEEDED');
});

test('contexts are predicted, shown in the text, and corrected by key', async () => {
  await openAt(0, 'fever');
  assert.deepEqual([(await markOf(0, 'fever')).contexts, (await markOf(0, 'asthma')).contexts], [['negated'], ['family']]);
  assert.deepEqual(await page.locator('.marked mark[data-context]').evaluateAll((all) => all.map((one) => `${one.textContent} ${one.dataset.context}`)), ['fever neg', 'asthma fam']);
  const group = page.getByRole('group', { name: 'Context' });
  await group.getByRole('button', { name: 'negated', pressed: true }).waitFor();
  await page.keyboard.press('P');
  await group.getByRole('button', { name: 'possible', pressed: true }).waitFor();
  await saved();
  assert.deepEqual((await markOf(0, 'fever')).contexts, ['possible']);
  await group.getByRole('button', { name: 'historical' }).click();
  await saved();
  assert.deepEqual((await markOf(0, 'fever')).contexts, ['possible', 'historical']);
  const exported = await api('GET', `/projects/${project}/export?format=jsonl`);
  assert.match(exported, /"temporality"/);
  assert.deepEqual(await serious(page), []);
});

test('the terminology is browsed as a tree by key, and a concept picked from it', async () => {
  await openAt(2, 'delirium');
  await page.keyboard.press('b');
  const tree = page.getByRole('tree');
  await tree.getByRole('treeitem', { name: 'Delirium T:2' }).waitFor();
  // It opens at the highlighted candidate.
  assert.deepEqual(await tree.locator('[aria-selected=true]').allTextContents().then((all) => all.map((text) => text.replace(/\s+/g, ' ').trim())), ['▸ Delirium T:2 1']);
  await page.keyboard.press('ArrowRight');
  await tree.getByRole('treeitem', { name: 'Emergence Delirium' }).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await saved();
  assert.equal((await markOf(2, 'delirium')).concept.id, 'T:3');
  await page.keyboard.press('u');
  await saved();
});

test('the picker searches a type or a branch, and shows the path to the root', async () => {
  await openAt(2, 'delirium');
  const detail = page.getByRole('group', { name: /^About / });
  await detail.getByText('Disease › Confusion › Delirium').waitFor();
  await page.getByLabel('Type of concepts').selectOption('Drug');
  await page.getByLabel('Search concepts').fill('e');
  await page.getByText(/^No match/).waitFor();
  await page.getByLabel('Search concepts').fill('famo');
  await page.locator('.candidate', { hasText: 'T:6' }).waitFor();
  await page.getByLabel('Search concepts').fill('');
  await page.getByLabel('Type of concepts').selectOption('');
  await page.locator('.candidate', { hasText: 'T:2' }).first().waitFor();
  await page.getByRole('button', { name: 'Browse' }).click();
  await page.getByRole('button', { name: 'Search below it' }).click();
  await page.getByRole('button', { name: /not only below/ }).waitFor();
  await page.getByLabel('Search concepts').fill('fever');
  await page.getByText(/^No match/).waitFor();
  await page.getByRole('button', { name: /not only below/ }).click();
  await page.locator('.candidate', { hasText: 'T:7' }).waitFor();
  await page.getByLabel('Search concepts').fill('');
});

test('a new concept is proposed, used at once, and exported', async () => {
  await page.goto(`/projects/${project}/annotate/${(await documents())[1].id}`);
  await page.locator('.text .marked').waitFor();
  await drag(page, 'brain fog');
  await page.locator('aside .mention', { hasText: 'brain fog' }).waitFor();
  await page.keyboard.press('p');
  const dialog = page.getByRole('dialog', { name: 'Propose' });
  await dialog.getByLabel('New concept').check();
  assert.equal(await dialog.getByLabel('Name').inputValue(), 'brain fog');
  await dialog.getByLabel('Broader concept').fill('confusion');
  await dialog.getByRole('list', { name: 'Concepts found' }).getByRole('button', { name: 'T:8' }).click();
  await dialog.getByLabel('Definition (optional)').fill('Slow thinking.');
  assert.deepEqual(await serious(page), []);
  await dialog.getByRole('button', { name: 'Propose' }).click();
  await page.getByText(/Proposed “brain fog”/).waitFor();
  await saved();
  await until('the mention', async () => (await markOf(1, 'brain fog'))?.concept?.id === 'PROPOSED:1');
  assert.equal((await markOf(2, 'brain fog')).concept.id, 'PROPOSED:1');
  // A synonym, from the tab.
  await page.locator('body').press('Escape');
  await page.goto(`/projects/${project}/proposals`);
  await page.getByRole('row', { name: /brain fog/ }).waitFor();
  await page.getByRole('button', { name: 'Propose' }).click();
  await dialog.getByLabel('Synonym', { exact: true }).first().check();
  await dialog.getByRole('textbox', { name: 'Synonym' }).fill('high temperature');
  await dialog.getByLabel('Concept of the synonym').fill('fever');
  await dialog.getByRole('list', { name: 'Concepts found' }).getByRole('button', { name: 'T:7' }).first().click();
  await dialog.getByRole('button', { name: 'Propose' }).click();
  await page.getByRole('row', { name: /high temperature/ }).waitFor();
  for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    assert.deepEqual(await serious(page), []);
  }
  // The table is read beside the terminology.
  const table = await api('GET', `/projects/${project}/proposals/file?format=tsv`);
  writeFileSync(join(server.folder, 'proposals.tsv'), table);
  const run = (...args) => execFileSync(server.program, args, { encoding: 'utf8', stdio: 'pipe' });
  run('kb', 'build', join(server.folder, 'ward.jsonl'), join(server.folder, 'proposals.tsv'), '--out', join(server.folder, 'new.kb'));
  assert.match(run('kb', 'search', join(server.folder, 'new.kb'), 'high temperature'), /T:7/);
  assert.match(run('kb', 'search', join(server.folder, 'new.kb'), 'brain fog'), /PROPOSED:1/);
  assert.match(await api('GET', `/projects/${project}/proposals/file?format=sssom`), /skos:broadMatch\tT:8\tConfusion/);
});

test('a type is set by key, and new mentions without a concept inherit it', async () => {
  await openAt(1, 'fever');
  await page.keyboard.press('t');
  const dialog = page.getByRole('dialog', { name: /^Type of/ });
  await dialog.getByRole('button').first().waitFor();
  assert.deepEqual(await serious(page), []);
  await dialog.getByLabel(/Find/).fill('Sign');
  await page.keyboard.press('Enter');
  await saved();
  assert.equal((await markOf(1, 'fever')).type, 'Sign');
  await drag(page, 'patient');
  await page.keyboard.press('n');
  await saved();
  const added = await markOf(1, 'patient');
  assert.deepEqual([added.type, added.is_nil], ['Sign', true]);
});

test('a correction spreads to identical mentions of other documents, which are reviewed in bulk', async () => {
  await openAt(3, 'delirium');
  await page.keyboard.press('/');
  await page.keyboard.type('confusion');
  await page.locator('.candidate', { hasText: 'T:8' }).first().waitFor();
  await page.keyboard.press('Enter');
  await saved();
  await until('the spread', async () => (await markOf(2, 'delirium')).concept.id === 'T:8');
  assert.equal((await markOf(2, 'delirium')).is_spread, true);
  await page.goto(`/projects/${project}/review`);
  await page.getByLabel(/Only those spread from decisions/).check();
  await page.locator('.groups button', { hasText: 'from decisions' }).first().waitFor();
  await page.getByRole('button', { name: /^a? ?Accept/ }).click();
  await page.getByText(/^Accepted/).waitFor();
  await until('accepted', async () => (await markOf(2, 'delirium')).state === 'accepted');
});

const PUBMED = `<?xml version="1.0"?><PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>900001</PMID><Article><Journal><JournalIssue><PubDate><Year>2019</Year></PubDate></JournalIssue><Title>Made-up Reports</Title></Journal><ArticleTitle>Fever on a ward.</ArticleTitle><Abstract><AbstractText>Two children had fever.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>`;
const JATS = `<?xml version="1.0"?><article><front><article-meta><article-id pub-id-type="pmc">900002</article-id><title-group><article-title>Asthma in winter</article-title></title-group><abstract><p>Asthma was common.</p></abstract></article-meta></front><body><sec><title>Results</title><p>Fever was rare.</p></sec></body></article>`;

test('files of PubMed and PMC and tables are imported, with metadata to search, sort and filter by', async () => {
  const made = (await api('POST', '/projects', { name: 'Files' })).id;
  await page.goto(`/projects/${made}/import`);
  const upload = async (name, format, text) => {
    await page.getByLabel('Format').selectOption(format);
    await page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
    await page.getByRole('region', { name: 'Report' }).getByText(name).first().waitFor();
  };
  await upload('a.xml', 'pubmed-xml', PUBMED);
  await upload('b.xml', 'jats', JATS);
  await upload('c.csv', 'auto', 'id,text,ward\nrow-1,Delirium at night.,7\nrow-2,Cough.,8\n');
  const { documents: rows } = await api('GET', `/projects/${made}/documents`);
  assert.equal(rows.length, 4, JSON.stringify(rows.map((row) => row.external_id)));
  await page.goto(`/projects/${made}/documents`);
  await page.getByRole('searchbox').first().fill('winter');
  await page.getByRole('row', { name: /Asthma in winter/ }).waitFor();
  await until('one row', async () => (await page.locator('tbody tr').count()) === 1);
});

test('a project begins with a template', async () => {
  await page.goto('/projects');
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByLabel('Name', { exact: true }).fill('From a template');
  await page.getByLabel('Template').selectOption('Findings in clinical notes');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.waitForURL(/\/projects\/\d+\/import$/);
  const { projects } = await api('GET', '/projects');
  const made = projects.at(-1);
  assert.match(made.guideline, /negated/);
  assert.equal(made.name, 'From a template');
});

test('no console errors', () => assert.deepEqual(it.complaints, []));
