// The pictures of docs/annotate.md: `node e2e/pictures.mjs`, always with the mock, whose texts are made up.

import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fill } from '../mock/server.mjs';
import { call, open, until } from './browser.mjs';

delete process.env.CANONYM_URL;
const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
mkdirSync(folder, { recursive: true });

const it = await open({ width: 1280, height: 760 });
const { page, base } = it;
const done = async (project) => until('a job', async () => (await call(base, 'GET', `/projects/${project}/jobs`)).jobs.every((job) => job.state === 'SUCCEEDED'));
const take = (name) => page.screenshot({ path: `${folder}${name}.png` });

const project = fill().id;
await call(base, 'POST', `/projects/${project}/jobs`, { kind: 'train' });
await done(project);
const [first, second, third] = (await call(base, 'GET', `/projects/${project}/documents`)).documents;
const { marks } = await call(base, 'GET', `/documents/${first.id}`);
const predicted = marks.filter((mark) => mark.source === 'PRED');
await call(base, 'POST', `/documents/${first.id}/decisions`, { client_id: 'one', decisions: [{ kind: 'accept', mark: predicted[0].id }, { kind: 'unsure', mark: predicted.at(-1).id, value: true }] });

await page.goto(`${base}/#text=${encodeURIComponent('Two sisters with anaemia and chronic kidney disease (CKD) took ibuprofen for headaches; the CKD grew worse.')}`);
await page.locator('.result mark', { hasText: 'chronic' }).click();
await page.waitForTimeout(500);
await take('link');

await page.goto(`${base}/projects/${project}/annotate/${first.id}`);
await page.locator('.candidates .candidate').first().waitFor();
await page.waitForTimeout(500);
await take('annotate');

await page.emulateMedia({ colorScheme: 'dark' });
await page.goto(`${base}/projects/${project}/annotate/${third.id}`);
await page.locator('.text mark').first().click();
await page.waitForTimeout(500);
await take('annotate-dark');

await page.emulateMedia({ colorScheme: 'light' });
await page.goto(`${base}/projects/${project}/jobs`);
await page.locator('figure').first().waitFor();
await page.waitForTimeout(500);
await take('train');

await page.goto(`${base}/terminology?q=delir&id=MESH%3AD003693`);
await page.locator('article h2').waitFor();
await page.waitForTimeout(500);
await take('terminology');

await page.setViewportSize({ width: 768, height: 1024 });
await page.goto(`${base}/projects/${project}/annotate/${second.id}`);
await page.locator('.candidates .candidate').first().waitFor();
await page.waitForTimeout(500);
await take('annotate-768');
await it.close();
