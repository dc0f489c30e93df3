// Pasted lists: each line is a document.

/** Documents of a list as JSONL. A line with a tab begins with its ID; the others are numbered. */
export function listAsJsonl(text: string, name: string): string {
  const stem = name.replace(/\.[^.]*$/, '') || 'list';
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  const width = String(lines.length).length;
  const seen = new Set<string>();
  return lines
    .map((line, row) => {
      const at = line.indexOf('\t');
      const given = at > 0 ? line.slice(0, at).trim() : '';
      const id = given && !seen.has(given) ? given : `${stem}-${String(row + 1).padStart(width, '0')}`;
      seen.add(id);
      return JSON.stringify({ id, text: (at > 0 ? line.slice(at + 1) : line).replaceAll('\t', ' ').trim(), annotations: [] });
    })
    .join('\n');
}
