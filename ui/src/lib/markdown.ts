// Markdown as blocks and spans of text, for guidelines: headings, lists, quotes, code, emphasis and links. There is no raw HTML; what is not
// Markdown of this kind is text.

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; parts: Inline[] }
  | { kind: 'em'; parts: Inline[] }
  | { kind: 'link'; href: string; parts: Inline[] };

export type Block =
  | { kind: 'heading'; level: number; parts: Inline[] }
  | { kind: 'text'; parts: Inline[] }
  | { kind: 'list'; isOrdered: boolean; start: number; items: Block[][] }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'code'; text: string }
  | { kind: 'rule' };

const ITEM = /^( {0,3})(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
/** Deeper nesting is text. */
const MAX_DEPTH = 8;

export function blocksOf(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').replace(/\t/g, '    ').split('\n');
  const found: Block[] = [];
  let row = 0;
  const isBlank = (line: string | undefined) => !line?.trim();
  const startsBlock = (line: string) => /^ {0,3}(#{1,6}\s|>|```|~~~)/.test(line) || ITEM.test(line) || isRule(line);
  while (row < lines.length) {
    const line = lines[row]!;
    const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(line);
    const fence = /^ {0,3}(```|~~~)/.exec(line);
    const item = depth < MAX_DEPTH ? ITEM.exec(line) : null;
    if (isBlank(line)) {
      row++;
    } else if (fence) {
      const code: string[] = [];
      for (row++; row < lines.length && !lines[row]!.trim().startsWith(fence[1]!); row++) code.push(lines[row]!);
      row++;
      found.push({ kind: 'code', text: code.join('\n') });
    } else if (heading) {
      found.push({ kind: 'heading', level: heading[1]!.length, parts: inlinesOf(heading[2]!) });
      row++;
    } else if (isRule(line)) {
      found.push({ kind: 'rule' });
      row++;
    } else if (/^ {0,3}>/.test(line) && depth < MAX_DEPTH) {
      const quoted: string[] = [];
      for (; row < lines.length && /^ {0,3}>/.test(lines[row]!); row++) quoted.push(lines[row]!.replace(/^ {0,3}> ?/, ''));
      found.push({ kind: 'quote', blocks: blocksOf(quoted.join('\n'), depth + 1) });
    } else if (item) {
      const isOrdered = item[3] !== undefined;
      const items: Block[][] = [];
      const start = isOrdered ? Number(item[3]) : 1;
      for (let next = ITEM.exec(lines[row] ?? ''); next && (next[3] !== undefined) === isOrdered; next = ITEM.exec(lines[row] ?? '')) {
        const body = [next[4]!];
        for (row++; row < lines.length; row++) {
          const more = lines[row]!;
          // Indented lines belong to the item, after a blank line, too; others continue its paragraph.
          if (isBlank(more) ? !/^ {2,}\S/.test(lines[row + 1] ?? '') : !/^ {2,}/.test(more) && (startsBlock(more) || isBlank(lines[row - 1]))) break;
          body.push(more.replace(/^ {2,4}/, ''));
        }
        items.push(blocksOf(body.join('\n'), depth + 1));
        while (isBlank(lines[row]) && row < lines.length && ITEM.test(lines[row + 1] ?? '')) row++;
      }
      found.push({ kind: 'list', isOrdered, start, items });
    } else {
      const paragraph = [line.trim()];
      for (row++; row < lines.length && !isBlank(lines[row]) && !startsBlock(lines[row]!); row++) paragraph.push(lines[row]!.trim());
      found.push({ kind: 'text', parts: inlinesOf(paragraph.join('\n')) });
    }
  }
  return found;
}

function isRule(line: string): boolean {
  return /^ {0,3}([-*_])( *\1){2,} *$/.test(line);
}

const MARKUP = /`([^`\n]+)`|\\([\\`*_[\]()#>.+-])|\*\*(?=\S)((?:[^*\n]|\*(?!\*))+?)\*\*|(?<![\w*_])([*_])(?=\S)([^*_\n]*[^*_\s])\4(?![\w*_])|\[([^[\]\n]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])/g;

export function inlinesOf(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  const add = (plain: string) => {
    const last = found.at(-1);
    if (last?.kind === 'text') last.text += plain;
    else if (plain) found.push({ kind: 'text', text: plain });
  };
  let end = 0;
  for (const match of text.matchAll(MARKUP)) {
    const [whole, code, escaped, strong, , em, label, target, url] = match;
    add(text.slice(end, match.index));
    end = match.index + whole.length;
    const parts = (inner: string): Inline[] => (depth < MAX_DEPTH ? inlinesOf(inner, depth + 1) : [{ kind: 'text', text: inner }]);
    const href = url ?? target;
    if (code !== undefined) found.push({ kind: 'code', text: code });
    else if (escaped !== undefined) add(escaped);
    else if (strong !== undefined) found.push({ kind: 'strong', parts: parts(strong) });
    else if (em !== undefined) found.push({ kind: 'em', parts: parts(em) });
    else if (href !== undefined && isSafe(href)) found.push({ kind: 'link', href, parts: label === undefined ? [{ kind: 'text', text: href }] : parts(label) });
    else add(whole);
  }
  add(text.slice(end));
  return found;
}

/** Only links to the web, to mail addresses and to this server; nothing that runs code. */
export function isSafe(href: string): boolean {
  return /^(https?:\/\/|mailto:)[^\s]/i.test(href) || /^\/(?!\/|\\)/.test(href);
}
