// Reads PubTator, plain text and JSONL, writes PubTator. The real server knows more formats.

export function readPubtator(text) {
  const documents = [];
  const problems = [];
  let now = null;
  const lines = text.split(/\r?\n/);
  lines.forEach((line, row) => {
    const head = /^([^|\t]+)\|([ta])\|(.*)$/.exec(line);
    if (head) {
      const [, id, kind, body] = head;
      if (kind === 't') documents.push((now = { external_id: id, title: body, body: '', annotations: [] }));
      else if (now) now.body = body;
      return;
    }
    if (!line.trim()) return;
    const [id, start, end, mention, type, concept] = line.split('\t');
    if (!now || id !== now.external_id || concept === undefined) {
      problems.push({ line: row + 1, document: now?.external_id ?? null, message: 'not a title, abstract or annotation line', hint: 'expected `id|t|title`, `id|a|abstract` or six tab-separated columns' });
      return;
    }
    const text = [...`${now.title}\n${now.body}`];
    const spans = start.split(';').map((from, at) => [Number(from), Number(end.split(';')[at])]);
    const there = spans.map(([from, to]) => text.slice(from, to).join('')).join(' ');
    if (there !== mention) {
      problems.push({ line: row + 1, document: id, message: `expected “${mention}” at ${start}..${end}, found “${there}”`, hint: 'offsets count code points from the start of the title; to fix them, import with “Repair unambiguous offsets”' });
      return;
    }
    now.annotations.push({ spans, type, concept: concept === '-' || concept === '-1' || concept === '' ? null : concept });
  });
  return { documents: documents.map(({ title, body, ...rest }) => ({ ...rest, text: `${title}\n${body}`, sections: [{ kind: 'title', start: 0, end: [...title].length }, { kind: 'abstract', start: [...title].length + 1, end: [...`${title}\n${body}`].length }] })), problems };
}

export function writePubtator(documents) {
  return documents
    .map((doc) => {
      const [title, ...body] = doc.text.split('\n');
      const lines = [`${doc.external_id}|t|${title}`, `${doc.external_id}|a|${body.join(' ')}`];
      for (const mark of doc.marks) {
        lines.push([doc.external_id, mark.spans.map((span) => span[0]).join(';'), mark.spans.map((span) => span[1]).join(';'), mark.text, mark.type ?? 'Entity', mark.concept?.id ?? '-1'].join('\t'));
      }
      return lines.join('\n') + '\n\n';
    })
    .join('');
}

export function readText(text, filename) {
  const id = filename.replace(/\.[^.]*$/, '') || 'text';
  return { documents: [{ external_id: id, text, sections: [], annotations: [] }], problems: [] };
}

/** Reads a table without quotes: the text, the ID and other columns, which become metadata. */
export function readTable(text, columns) {
  const separator = text.split('\n')[0].includes('\t') ? '\t' : ',';
  const [names, ...rows] = text.trim().split(/\r?\n/).map((line) => line.split(separator));
  const [body, id] = [names.indexOf(columns.text), names.indexOf(columns.id)];
  if (body < 0) return { error: `no column \`${columns.text}\``, hint: `name the column with “Text column”; the columns are ${names.map((name) => `\`${name}\``).join(', ')}` };
  const metadata = (row) => names.map((name, at) => ({ name, value: row[at] ?? '' })).filter((one, at) => at !== body && at !== id && one.value);
  return { documents: rows.map((row, at) => ({ external_id: id < 0 ? String(at + 1) : row[id], text: row[body], sections: [], annotations: [], metadata: metadata(row) })), problems: [] };
}

export function readJsonl(text) {
  const documents = [];
  const problems = [];
  text.split('\n').forEach((line, row) => {
    if (!line.trim()) return;
    try {
      const { id, text: body } = JSON.parse(line);
      documents.push({ external_id: String(id), text: body, sections: [], annotations: [] });
    } catch {
      problems.push({ line: row + 1, document: null, message: 'invalid JSON', hint: 'expected one `{"id": …, "text": …}` per line' });
    }
  });
  return { documents, problems };
}
