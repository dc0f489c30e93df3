// The screenshots of docs/guide/annotate.md: `node e2e/pictures.mjs`. CANONYM_URL names a real server to show, which must be new: accounts are created on it.
// All texts are made up.

import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { call, open, until } from './browser.mjs';
import { stories } from './stories.mjs';

const isReal = Boolean(process.env.CANONYM_URL);
const folder = process.env.PICTURES ?? fileURLToPath(new URL('../../docs/images/', import.meta.url));
mkdirSync(folder, { recursive: true });
const PASSWORD = 'correct horse';

const it = await open({ width: 1280, height: 760 });
const { page, base } = it;
const done = async (project) => until('a job', async () => (await call(base, 'GET', `/projects/${project}/jobs`)).jobs.every((job) => job.state === 'SUCCEEDED'), 900_000);
const take = async (name) => {
  await page.waitForTimeout(600);
  await page.screenshot({ path: `${folder}/${name}.png` });
  const wide = await page.evaluate(() => document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth);
  if (wide > 0) console.log(`${name}: ${wide} px too wide`);
};
let nth = 0;
const ask = (method, path, body) => call(base, method, path, body);
const nOpen = async (ask, row) => (await ask('GET', `/documents/${row.id}`)).marks.filter(mark => mark.source === 'PRED' && mark.state === 'open').length;
const decided = async (ask, row, ...decisions) => ({ version: (await ask('GET', `/documents/${row.id}`)).version, client_id: `picture-${nth++}`, decisions });

const project = (await call(base, 'POST', '/projects', { name: 'Side effects', description: 'Made-up reports', guideline: 'Mark diseases, symptoms and drugs. Take the longest name. If nothing fits, press n.' })).id;
await call(base, 'POST', `/projects/${project}/import?format=pubtator&annotations=gold&filename=ward.pubtator`, stories, 'text/plain');
await call(base, 'POST', `/projects/${project}/jobs`, { kind: 'predict' });
await done(project);
const [first, second, third, fourth, fifth, sixth] = (await call(base, 'GET', `/projects/${project}/documents`)).documents;
const marks = async (row) => (await call(base, 'GET', `/documents/${row.id}`)).marks;
const open_ = async (row) => (await marks(row)).filter((mark) => mark.source === 'PRED' && mark.state === 'open');

await page.goto(`${base}/#text=${encodeURIComponent('Two sisters with anaemia and chronic kidney disease (CKD) took ibuprofen for headaches; the CKD grew worse.')}`);
await page.locator('.result mark', { hasText: 'kidney' }).first().click();
await page.locator('aside .candidate').first().waitFor();
await take('link');

// Two documents are finished, then a model is trained on them.
for (const [row, seconds] of [[fifth, 74], [sixth, 61]]) await call(base, 'POST', `/documents/${row.id}/decisions`, await decided(ask, row, { kind: 'finish', value: true, seconds, accepts: await nOpen(ask, row) }));
await call(base, 'POST', `/projects/${project}/jobs`, { kind: 'train' });
await done(project);
// PubTator has no discontinuous mentions.
await call(base, 'POST', `/documents/${third.id}/decisions`, await decided(ask, third, { kind: 'add', spans: [[0, 6], [16, 22]], type: 'Disease', concept: 'MESH:D001943' }));
const predicted = await open_(first);
await call(base, 'POST', `/documents/${first.id}/decisions`, await decided(ask, first, { kind: 'accept', mark: predicted[0].id }, { kind: 'unsure', mark: predicted.at(-1).id, value: true }));

await page.goto(`${base}/projects/${project}/annotate/${first.id}`);
await page.locator('.candidates .candidate').first().waitFor();
await take('annotate');

await page.emulateMedia({ colorScheme: 'dark' });
await page.goto(`${base}/projects/${project}/annotate/${third.id}`);
await page.locator('.text mark', { hasText: 'Breast' }).first().click();
await take('annotate-dark');

await page.emulateMedia({ colorScheme: 'light' });
await page.goto(`${base}/projects/${project}/jobs`);
await page.getByText('Training set').waitFor();
await page.locator('figure').first().waitFor();
await page.setViewportSize({ width: 1280, height: 1180 });
await take('train');
await page.setViewportSize({ width: 1280, height: 760 });

const job = (await call(base, 'GET', `/projects/${project}/jobs`)).jobs[0].id;
const changed = (await call(base, 'GET', `/projects/${project}/changes?from=${job}`)).documents;
const most = changed.sort((a, b) => b.added + b.removed + b.changed - a.added - a.removed - a.changed)[0];
if (most) {
  await page.goto(`${base}/projects/${project}/changes/${job}/${most.id}`);
  await page.locator('button.change').first().waitFor();
  await take('changes');
} else console.log('no changes, so there is no screenshot of them');

await page.goto(`${base}/projects/${project}`);
await page.locator('.queue-table').waitFor();
await page.goto(`${base}/terminology?q=kidney&id=MESH%3AD051436`);
await page.locator('section[aria-label="Similar concepts"] li').first().waitFor();
await page.locator('section[aria-label=Mentions] a.line').first().waitFor();
await take('terminology');

await page.setViewportSize({ width: 768, height: 1024 });
await page.goto(`${base}/projects/${project}/annotate/${second.id}`);
await page.locator('.candidates .candidate').first().waitFor();
await take('annotate-768');
await page.setViewportSize({ width: 1280, height: 760 });

// Three people disagree.
const [drug, kidney, lung] = [(await open_(fourth))[0], (await marks(second)).find((mark) => mark.text === 'chronic kidney disease'), (await marks(third)).find((mark) => mark.text === 'lung cancer')];
const text = (await call(base, 'GET', `/documents/${second.id}`)).text;
const as = isReal ? await withAccounts() : await withMock();
const span = (words) => [[[...text.slice(0, text.lastIndexOf(words))].length, [...text.slice(0, text.lastIndexOf(words) + words.length)].length]];
for (const [name, row, decision] of [
  ['ada', first, { kind: 'accept', mark: predicted[0].id }],
  ['bob', first, { kind: 'concept', mark: predicted[0].id, concept: 'MESH:D003221' }],
  ['cyd', first, { kind: 'concept', mark: predicted[0].id, concept: 'MESH:D003693' }],
  ['ada', first, { kind: 'accept', mark: predicted[0].id }],
  ['bob', second, { kind: 'accept', mark: kidney.id }],
  ['cyd', second, { kind: 'nil', mark: kidney.id }],
  ['bob', second, { kind: 'add', spans: span('high blood pressure'), concept: 'MESH:D006973' }],
  ['cyd', second, { kind: 'add', spans: span('blood pressure'), concept: 'MESH:D006973' }],
  ['bob', third, { kind: 'accept', mark: lung.id }],
  ['ada', third, { kind: 'accept', mark: lung.id }],
  ['cyd', third, { kind: 'reject', mark: lung.id }],
  ...(drug ? [['bob', fourth, { kind: 'accept', mark: drug.id }], ['ada', fourth, { kind: 'accept', mark: drug.id }]] : []),
]) await as(name, 'POST', `/documents/${row.id}/decisions`, await decided((...asked) => as(name, ...asked), row, decision));
await page.goto(`${base}/projects/${project}/disagreements`);
await page.locator('.answer').first().waitFor();
await page.keyboard.press('j');
await page.keyboard.press('j');
await take('disagreements');

if (it.complaints.length) console.log(it.complaints);
await it.close();

/** Accounts of the mock, where signing in changes the current user. */
async function withMock() {
  for (const [name, role] of [['ada', 'admin'], ['bob', 'annotator'], ['cyd', 'annotator']]) await call(base, 'POST', '/people', { name, password: PASSWORD, role });
  return async (name, method, path, body) => {
    await call(base, 'POST', '/login', { name, password: PASSWORD });
    const answer = await call(base, method, path, body);
    await call(base, 'POST', '/logout', {});
    return answer;
  };
}

/** Accounts of a real server: API requests use tokens, the browser a session. */
async function withAccounts() {
  const ask = async (method, path, body, headers = {}) => {
    const response = await fetch(`${base}/api/v1${path}`, { method, headers: { 'X-Canonym': '1', 'Content-Type': 'application/json', ...headers }, ...(body ? { body: JSON.stringify(body) } : {}) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return { json: await response.json(), cookie: response.headers.get('set-cookie')?.split(';')[0] };
  };
  const tokens = {};
  for (const [name, role] of [['ada', 'admin'], ['bob', 'annotator'], ['cyd', 'annotator']]) {
    const admin = tokens.ada ? { Authorization: `Bearer ${tokens.ada}` } : {};
    const { id } = (await ask('POST', '/people', { name, password: PASSWORD, role }, admin)).json;
    if (role !== 'admin') await ask('POST', `/projects/${project}/people`, { id }, admin);
    const { cookie } = await ask('POST', '/login', { name, password: PASSWORD });
    tokens[name] = (await ask('POST', '/tokens', { name: 'pictures' }, { Cookie: cookie })).json.token;
    if (name === 'ada') {
      const [key, value] = cookie.split('=');
      await it.context.addCookies([{ name: key, value, url: base }]);
    }
  }
  return async (name, method, path, body) => (await ask(method, path, body, { Authorization: `Bearer ${tokens[name]}` })).json;
}
