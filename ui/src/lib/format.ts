// Formatting of numbers, times and documents for display.

import type { LinkedDocument, MetadataEntry, PickerCandidate, Project } from './types';

const whole = new Intl.NumberFormat('en');

export const formatCount = (n: number): string => whole.format(n);

/** `1 document`, `3 documents`. */
export const plural = (n: number, one: string, many = `${one}s`): string => `${formatCount(n)} ${n === 1 ? one : many}`;

/** A phrase with a capital first letter. */
export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A probability or score with two digits: `.62`. */
export function formatScore(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return value >= 0.995 ? '1.0' : value.toFixed(2).replace(/^0/, '');
}

/** A confidence interval with two digits: `(.58–.66)`. */
export const formatRange = (range: { low: number; high: number } | null | undefined): string => (range ? `(${formatScore(range.low)}–${formatScore(range.high)})` : '');

/** The confidence of a document from 0 to 1; some strategies give the sum of two probabilities. */
export function formatConfidence(value: number | null, strategy: string): string {
  const isSum = strategy !== 'margin' && strategy !== 'recognition';
  return formatScore(value !== null && isSum ? value / 2 : value);
}

export function formatDuration(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value < 90) return `${Math.max(1, Math.round(value))} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${(value / 3600).toFixed(1)} h`;
}

export function formatTime(text: string | null): string {
  if (!text) return '–';
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  return at.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
}

/** A date with its year. */
export function formatDate(text: string): string {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
}

/** Why a document is in the queue. The server does not tell documents without predictions from those in which nothing was found. */
export function reasonText(reason: string): string {
  if (reason === 'no predictions yet') return 'No predictions';
  return capital(reason);
}

/** What an export loses, as a sentence: `lost: 1 comments` is “1 comment will be lost.” */
export function lossText(line: string): string {
  const lost = line.replace(/^lost: (.*)$/, '$1 will be lost').replace(/^(the finished status of .*) is lost$/, '$1 will be lost');
  const one = lost.replace(/^1 (annotator names|comments|“unsure” flags|rejected mentions|unreviewed predictions)/, (_, what: string) => `1 ${what.slice(0, -1)}`);
  return `${capital(one)}.`;
}

/** Values separated by `|`, such as ids, are cut between two of them, never inside of one. */
export function shortValue(value: string, nShown = 3): string {
  const all = value.split('|');
  return all.length > nShown ? `${all.slice(0, nShown).join(', ')} +${all.length - nShown}` : all.join(', ');
}

/** How a name matched a query. A fuzzy match that holds the query as whole words is shown as such. */
export function matchText(how: string, query = '', names: string[] = []): string {
  const texts: Record<string, string> = {
    exact: 'exact name',
    prefix: 'starts with',
    contains: 'contains',
    fuzzy: 'fuzzy match',
    model: 'suggested by model',
    recent: 'recently used',
    linked: 'linked before',
    near: 'similar meaning',
    fold: 'case differs',
    canonical: 'spelling differs',
    root: 'same word stems',
    'n-gram': 'fuzzy match',
  };
  const words = (text: string) => ` ${text.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(' ') ?? ''} `;
  if (how === 'fuzzy' && words(query).trim() && names.some((name) => words(name).includes(words(query)))) return texts.contains!;
  return texts[how] ?? how;
}

/** The entries of a text with one `name: value` a line, or what is wrong with it. */
export function readMetadata(text: string): MetadataEntry[] | string {
  const entries: MetadataEntry[] = [];
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (!line) continue;
    const at = line.indexOf(':');
    const [name, value] = [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    if (at < 1 || !name || !value) return `“${line}” is not a name and a value, as in “year: 2024”.`;
    entries.push({ name, value });
  }
  return entries;
}

/** What a project annotates. */
export function scopeText({ types, branches }: Project['scope']): string {
  if (!types.length && !branches.length) return 'whole terminology';
  const under = branches.length ? `${types.length ? ' ' : ''}below ${branches.map((one) => one.name).join(', ')}` : '';
  return types.join(', ') + under;
}

/** The candidate that a proposal begins with: none if the model is unsure and nobody chose it. */
export function likely(candidate: PickerCandidate | null | undefined): PickerCandidate | null {
  return candidate && (candidate.how !== 'model' || candidate.n_chosen > 0 || (candidate.score ?? 1) >= 0.3) ? candidate : null;
}

/** The documents of a training: `18 complete, 4 of them held out; 3 partly reviewed; 2 unreviewed, not used`. */
export function trainingDocuments(plan: { n_complete: number; n_held_out: number; n_incomplete: number; n_unreviewed: number }): string {
  const parts = [`${formatCount(plan.n_complete + plan.n_held_out)} complete${plan.n_held_out ? `, ${formatCount(plan.n_held_out)} of them held out` : ''}`];
  if (plan.n_incomplete) parts.push(`${formatCount(plan.n_incomplete)} partly reviewed`);
  if (plan.n_unreviewed) parts.push(`${formatCount(plan.n_unreviewed)} unreviewed, not used`);
  return parts.join('; ');
}

/** That a score was computed on another test set than those before it; empty if it was not. */
export function testSetText(scores: { changed_since?: string | null } | null | undefined): string {
  const before = scores?.changed_since;
  return before ? `The test set changed since “${before}”: documents were added or corrected. Scores from before are not comparable with these.` : '';
}

/** The models that two prediction runs compare. */
export function comparedText({ model_before: before = null, model_after: after = null }: { model_before?: string | null; model_after?: string | null }): string {
  if (!after) return 'Nothing was predicted.';
  if (!before) return `Predicted by “${after}”; there were no predictions before.`;
  return before === after ? `Predicted by “${after}”, compared with its predictions before.` : `${before} → ${after}`;
}

/** Why a trained model was offered and not used, from the message of its run; empty if it was used. */
export const offerReason = (message: string): string => message.split('; offered, not used: ')[1]?.split('; the test set changed')[0] ?? '';

/** The evidence for a candidate, one phrase each: links of the same text, the model, the name that matches, and earlier choices. */
export function evidenceOf(one: PickerCandidate): string[] {
  const phrases: string[] = [];
  if (one.n_linked) phrases.push(`linked ${one.n_linked === 1 ? 'once' : `${formatCount(one.n_linked)} times`} for this text`);
  if (one.how === 'model' || (one.how === 'linked' && one.score !== null)) phrases.push(`model ${formatScore(one.score)}`);
  if (one.how === 'proposal') phrases.push('proposed in this project');
  const matched = one.matched;
  if (matched) {
    const kind = matched.scope === 'preferred' ? 'preferred name' : `${matched.scope} synonym`;
    if (matched.how === 'id') phrases.push('ID');
    else if (matched.how === 'exact') phrases.push(matched.scope === 'preferred' ? kind : `${kind} “${matched.name}”`);
    else phrases.push(`${matched.how === 'prefix' ? 'starts' : 'fuzzy'} ${matched.how === 'prefix' ? 'with' : formatScore(matched.similarity)} · ${kind}${matched.name === one.name ? '' : ` “${matched.name}”`}`);
  }
  if (one.n_chosen > one.n_linked) phrases.push(`chosen ${one.n_chosen === 1 ? 'once' : `${formatCount(one.n_chosen)} times`} here`);
  else if (one.how === 'recent') phrases.push('recently used');
  return phrases;
}

/** A linked text as PubTator: the first line is the title, the rest the abstract. */
export function pubtator(document: LinkedDocument): string {
  const at = document.text.indexOf('\n');
  // PubTator joins title and abstract with one character, so replacing the line break keeps the offsets.
  const title = (at < 0 ? document.text : document.text.slice(0, at)).replace(/\r$/, ' ');
  const body = at < 0 ? '' : document.text.slice(at + 1).replace(/[\r\n\t]/g, ' ');
  const id = document.id || 'text';
  const lines = [`${id}|t|${title}`, `${id}|a|${body}`];
  for (const annotation of document.annotations) {
    const starts = annotation.spans.map((span) => span[0]).join(';');
    const ends = annotation.spans.map((span) => span[1]).join(';');
    const concept = annotation.nil ? '-1' : (annotation.candidates[0]?.id ?? '-1');
    lines.push([id, starts, ends, annotation.text.replace(/[\r\n\t]/g, ' '), annotation.type || 'Entity', concept].join('\t'));
  }
  return lines.join('\n') + '\n';
}

/** Splits a text at `code` in backticks. An unpaired backtick is text. */
export function splitCode(text: string): { text: string; isCode: boolean }[] {
  return text
    .split(/(`[^`\n]+`)/)
    .filter(Boolean)
    .map((part) => (part.length > 2 && part.startsWith('`') && part.endsWith('`') ? { text: part.slice(1, -1), isCode: true } : { text: part, isCode: false }));
}

/** The headings, list items and paragraphs of a model card in Markdown. */
export function cardBlocks(text: string): { kind: 'head' | 'item' | 'text'; text: string }[] {
  return text
    .split(/\n{2,}|\n(?=\s*[-*#] ?)/)
    .map((block) => block.trim())
    .filter(Boolean)
    .map((block) => {
      const head = /^#+\s+(.*)$/s.exec(block);
      const item = /^[-*]\s+(.*)$/s.exec(block);
      const kind = head ? 'head' : item ? 'item' : 'text';
      return { kind, text: (head?.[1] ?? item?.[1] ?? block).replace(/\*\*([^*]+)\*\*/g, '$1').replace(/\s+/g, ' ') } as const;
    });
}
