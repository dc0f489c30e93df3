// Screenshots of all pages: `npm run shots`, into `shots/`. Always with the mock, which has documents to show.

import { mkdirSync } from 'node:fs';
import { fill } from '../mock/server.mjs';
import { open, call, until } from './browser.mjs';

delete process.env.CANONYM_URL;
mkdirSync('shots', { recursive: true });
const only = process.argv.slice(2);

for (const [width, height] of [[1280, 860], [768, 1024], [375, 812]]) {
  const it = await open({ width, height });
  const project = fill();
  const decide = async (id, client_id, decisions) => call(it.base, 'POST', `/documents/${id}/decisions`, { version: (await call(it.base, 'GET', `/documents/${id}`)).version, client_id, decisions });
  await call(it.base, 'POST', `/projects/${project.id}/jobs`, { kind: 'predict' });
  await until('predictions', async () => (await call(it.base, 'GET', `/projects/${project.id}/jobs`)).jobs[0].state === 'SUCCEEDED');
  const docs = (await call(it.base, 'GET', `/projects/${project.id}/documents`)).documents;
  const one = await call(it.base, 'GET', `/documents/${docs[0].id}`);
  const open_ = one.marks.filter((mark) => mark.source === 'PRED');
  const [a, b] = open_;
  await decide(docs[0].id, 'a', [{ kind: 'accept', mark: a.id }, { kind: 'unsure', mark: b.id, value: true }]);
  await call(it.base, 'POST', `/documents/${docs[0].id}/comments`, { text: 'Is it the same episode?', mark: b.id });
  await call(it.base, 'POST', `/projects/${project.id}/jobs`, { kind: 'train' });
  await until('training', async () => (await call(it.base, 'GET', `/projects/${project.id}/jobs`)).jobs[0].state === 'SUCCEEDED');
  const last = (await call(it.base, 'GET', `/projects/${project.id}/jobs`)).jobs[0].id;
  for (const [name, role] of [['ada', 'curator'], ['bob', 'annotator'], ['cyd', 'annotator']]) await call(it.base, 'POST', '/people', { name, password: 'correct horse', role });
  const delirium = one.marks.find((mark) => mark.text === 'delirium').id;
  const said = [['ada', { kind: 'accept', mark: delirium }], ['bob', { kind: 'concept', mark: delirium, concept: 'MESH:D003221' }], ['cyd', { kind: 'accept', mark: delirium }], ['ada', { kind: 'add', spans: [[75, 90]], concept: 'MESH:D003924' }], ['bob', { kind: 'add', spans: [[82, 90]], concept: 'MESH:D003920' }]];
  for (const [row, [name, decision]] of said.entries()) {
    await call(it.base, 'POST', '/login', { name, password: 'correct horse' });
    await decide(docs[row < 3 ? 0 : 1].id, `s${row}`, [decision]);
  }
  await call(it.base, 'POST', '/logout', {});
  await call(it.base, 'POST', '/tokens', { name: 'nightly export', days: 30 });
  for (const [row, doc] of docs.slice(0, 2).entries()) {
    await decide(doc.id, `f${row}`, [{ kind: 'finish', value: true, seconds: 40 - 11 * row, accepts: (await call(it.base, 'GET', `/documents/${doc.id}`)).marks.filter(mark => mark.source === 'PRED' && mark.state === 'open').length }]);
    await decide(doc.id, `g${row}`, [{ kind: 'finish', value: false }]);
  }
  const text = encodeURIComponent('Two sisters with anaemia and chronic kidney disease (CKD) took ibuprofen for headaches; the CKD grew worse.');
  const pages = {
    link: `/#text=${text}`,
    terminology: '/terminology?q=delir&id=MESH%3AD003693',
    projects: '/projects',
    queue: `/projects/${project.id}`,
    import: `/projects/${project.id}/import`,
    jobs: `/projects/${project.id}/jobs`,
    dashboard: `/projects/${project.id}/dashboard`,
    annotate: `/projects/${project.id}/annotate/${docs[0].id}`,
    nested: `/projects/${project.id}/annotate/${docs[1].id}`,
    parts: `/projects/${project.id}/annotate/${docs[2].id}`,
    models: `/models?project=${project.id}`,
    settings: '/settings',
    checks: '/terminology?checks',
    documents: `/projects/${project.id}/documents`,
    members: `/projects/${project.id}/members`,
    changes: `/projects/${project.id}/changes/${last}/${docs[2].id}`,
    disagreements: `/projects/${project.id}/disagreements`,
  };
  for (const theme of ['light', 'dark']) {
    await it.page.emulateMedia({ colorScheme: theme });
    for (const [name, path] of Object.entries(pages)) {
      if (only.length && !only.includes(name)) continue;
      await it.page.goto('about:blank');
      await it.page.goto(it.base + path);
      await it.page.waitForTimeout(700);
      if (name === 'parts') await it.page.keyboard.press('[');
      if (name === 'parts') await it.page.waitForTimeout(300);
      await it.page.screenshot({ path: `shots/${name}-${width}-${theme}.png` });
      const wide = await it.page.evaluate(() => document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth);
      if (wide > 0) console.log(`${name} at ${width}: ${wide} px too wide`);
    }
  }
  if (it.complaints.length) console.log(it.complaints);
  await it.close();
}
