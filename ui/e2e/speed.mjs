// Measures the annotation page: the time from a key to the picker, and the frames of scrolling a long document with many marks.
// `npm run speed` prints the figures; they depend on the machine, so no test asserts them.

import { call, open } from './browser.mjs';

const it = await open();
const { page } = it;
const api = (method, path, body, type) => call(it.base, method, path, body, type);
const project = (await api('POST', '/projects', { name: `Speed ${Date.now()}` })).id;

/** A document of `n` sentences of ten words with one mention each, in PubTator. */
function corpus(id, n) {
  const sentence = 'On this day she had a headache and went home. ';
  const title = 'A long record';
  const rows = Array.from({ length: n }, (_, row) => {
    const start = title.length + 1 + row * sentence.length + sentence.indexOf('headache');
    return [id, start, start + 8, 'headache', 'Symptom', 'MESH:D006261'].join('\t');
  });
  return `${id}|t|${title}\n${id}|a|${sentence.repeat(n).trimEnd()}\n${rows.join('\n')}\n\n`;
}

const quantile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];

function report(what, times) {
  const [median, p95, longest] = [0.5, 0.95, 1].map((share) => quantile(times, share).toFixed(0));
  const late = times.filter((one) => one > 50).length;
  process.stdout.write(`${what}: median ${median} ms, p95 ${p95} ms, longest ${longest} ms; ${late} of ${times.length} over 50 ms\n`);
}

async function keys() {
  await api('POST', `/projects/${project}/import?format=pubtator&filename=a.pubtator`, corpus('short', 30), 'text/plain');
  const [{ id }] = (await api('GET', `/projects/${project}/documents`)).documents;
  await page.goto(`/projects/${project}/annotate/${id}`);
  await page.locator('.candidate').first().waitFor();
  // Measured in the page: from the key press to the frame that shows the candidates of the next mention.
  const times = await page.evaluate(async () => {
    const found = [];
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let row = 0; row < 60; row++) {
      const before = document.querySelector('.marked mark.is-focused')?.dataset.mark;
      const from = performance.now();
      window.dispatchEvent(new KeyboardEvent('keydown', { key: ']', bubbles: true }));
      while (document.querySelector('.marked mark.is-focused')?.dataset.mark === before || !document.querySelector('.candidate')) await frame();
      found.push(performance.now() - from);
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    return found;
  });
  report('from a key to the candidates in the picker', times);
}

async function frames() {
  await api('POST', `/projects/${project}/import?format=pubtator&filename=b.pubtator`, corpus('long', 1000), 'text/plain');
  const { id } = (await api('GET', `/projects/${project}/documents`)).documents.find((row) => row.external_id === 'long');
  await page.goto(`/projects/${project}/annotate/${id}`);
  await page.locator('.marked mark').nth(900).waitFor({ state: 'attached' });
  await page.waitForTimeout(500);
  const times = await page.evaluate(async () => {
    const pane = document.querySelector('.text');
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const found = [];
    let last = await frame();
    for (let row = 0; row < 60; row++) {
      pane.scrollTop += pane.clientHeight / 2;
      const now = await frame();
      found.push(now - last);
      last = now;
    }
    return found;
  });
  report('frames of scrolling 10,000 words with 1,000 marks', times.slice(2));
}

try {
  await keys();
  await frames();
} finally {
  await it.close();
}
