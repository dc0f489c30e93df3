import { expect, test } from 'vitest';
import { blocksOf, inlinesOf, isSafe, type Block, type Inline } from './markdown';

const inline = (parts: Inline[]): string =>
  parts.map((one) => (one.kind === 'text' ? one.text : one.kind === 'code' ? `<code ${one.text}>` : `<${one.kind}${one.kind === 'link' ? ` ${one.href}` : ''} ${inline(one.parts)}>`)).join('');
const block = (one: Block): string => {
  if (one.kind === 'heading') return `h${one.level} ${inline(one.parts)}`;
  if (one.kind === 'text') return inline(one.parts);
  if (one.kind === 'list') return `${one.isOrdered ? `ol${one.start}` : 'ul'}(${one.items.map((item) => item.map(block).join(' / ')).join(' | ')})`;
  if (one.kind === 'quote') return `quote(${one.blocks.map(block).join(' / ')})`;
  return one.kind === 'code' ? `code(${one.text})` : 'rule';
};
const shown = (text: string) => blocksOf(text).map(block);

test('headings, paragraphs and rules', () => {
  expect(shown('# What counts\nLongest name.\nStill it.\n\n## Rest ##\n---')).toEqual(['h1 What counts', 'Longest name.\nStill it.', 'h2 Rest', 'rule']);
});
test('lists may be numbered, nested and continued', () => {
  expect(shown('- one\n- two\n  goes on\n  - inner\n\n3. three\n4. four\nafter')).toEqual(['ul(one | two\ngoes on / ul(inner))', 'ol3(three | four\nafter)']);
  expect(shown('- one\n\n- two\n\ntext')).toEqual(['ul(one | two)', 'text']);
});
test('quotes and code', () => {
  expect(shown('> said\n> - so\n\n```\n# **no**\n```\nend')).toEqual(['quote(said / ul(so))', 'code(# **no**)', 'end']);
});
test('emphasis, code and links', () => {
  expect(inline(inlinesOf('**bold *and* more**, *it* and _it_, `a*b*`, [guide](https://a.example/b), https://a.example/c.'))).toBe(
    '<strong bold <em and> more>, <em it> and <em it>, <code a*b*>, <link https://a.example/b guide>, <link https://a.example/c https://a.example/c>.',
  );
  expect(inline(inlinesOf('snake_case_name, 2 * 3 * 4, \\*plain\\*'))).toBe('snake_case_name, 2 * 3 * 4, *plain*');
});
test('nothing runs code', () => {
  expect(inline(inlinesOf('<script>x()</script> [x](javascript:x()) [y](data:text/html,y) [z](//evil.example)'))).toBe('<script>x()</script> [x](javascript:x()) [y](data:text/html,y) [z](//evil.example)');
  expect(['https://a.example', 'mailto:a@b.example', '/projects', 'javascript:x', 'JaVaScRiPt:x', 'data:x', '//a.example', '/\\a.example'].map(isSafe)).toEqual([true, true, true, false, false, false, false, false]);
});
test('long and deep input ends', () => {
  expect(blocksOf('> '.repeat(5000) + 'x').length).toBe(1);
  expect(blocksOf('*'.repeat(20_000) + '['.repeat(20_000)).length).toBe(1);
});
