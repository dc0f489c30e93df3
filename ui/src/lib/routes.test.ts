import { expect, test } from 'vitest';
import { urlFor, parse, textFragment, textFromFragment } from './routes';

function check(path: string, page: string, back = path): void {
  const route = parse(path);
  expect(route.page).toBe(page);
  expect(urlFor(route)).toBe(back);
}

test('URLs are parsed and built', () => {
  check('/', 'link');
  check('/link', 'link', '/');
  check('/terminology', 'terminology');
  check('/terminology?q=dry+cough&id=MESH%3AD003371', 'terminology');
  check('/terminology?checks', 'terminology');
  check('/projects', 'projects');
  check('/projects/3', 'project');
  check('/projects/3/queue', 'project', '/projects/3');
  check('/projects/3/dashboard', 'project');
  check('/projects/3/annotate/12', 'annotate');
  check('/projects/3/annotate/12?span=4-9', 'annotate');
  check('/projects/3/annotate/12?span=9-4', 'annotate', '/projects/3/annotate/12');
  check('/projects/3/disagreements', 'project');
  check('/projects/3/changes/7/12', 'changes');
  check('/models?project=3', 'models');
  check('/models', 'models');
  check('/settings', 'settings');
});
test('unknown paths are missing pages', () => {
  for (const path of ['/nowhere', '/projects/x', '/projects/3/annotate', '/projects/3/annotate/x', '/projects/3/nothing', '/projects/3/queue/4', '/projects/3/changes/7', '/projects/3/changes/7/8/9']) {
    check(path, 'missing');
  }
});
test('an id with a dot is not in the path', () => {
  const path = urlFor({ page: 'terminology', q: '', id: 'ICD10:E11.9' });
  expect(new URL(path, 'http://localhost').pathname).not.toContain('.');
  expect(parse(path)).toEqual({ page: 'terminology', q: '', id: 'ICD10:E11.9' });
});
test('a text goes into the fragment and comes back', () => {
  const text = 'A 😀 #1 100 %\r\nnext';
  expect(textFromFragment(textFragment(text))).toBe(text);
  expect(textFromFragment('#text=%E0%A4%A')).toBeNull();
  expect(textFromFragment('')).toBeNull();
});

test('focus mode has the URL of its document', () => {
  expect(parse(urlFor({ page: 'focus', project: 3, document: 7 }))).toEqual({ page: 'focus', project: 3, document: 7 });
  expect(parse('/projects/3/focus').page).toBe('missing');
});
