// Proposals of concepts and synonyms; the mock adds them to its terminology.

import { concepts } from './kb.mjs';
import { docsOf, me, newId, now, Failure } from './state.mjs';

const all = new Map();

export const of = (p) => [...all.values()].filter((one) => one.project === p).map((one) => ({ ...one.row, n_mentions: count(p, one.row) }));

const count = (p, { concept }) => docsOf(p).flatMap((doc) => doc.marks).filter((mark) => mark.source === 'USER' && mark.concept?.id === concept.id).length;

export function add(p, { kind, name, concept, scope = 'exact', type, definition, document = null }) {
  const other = concepts.get(concept);
  if (kind === 'synonym' && !other) throw new Failure(400, 'bad_request', 'a synonym needs the ID of its concept in `concept`');
  if (kind === 'synonym' && [other.name, ...other.synonyms].some((known) => known.toLowerCase() === name.toLowerCase())) throw new Failure(409, 'conflict', `“${name}” is already a name of ${other.name}`);
  const id = newId();
  const linked = kind === 'synonym' ? { id: other.id, name: other.name } : { id: `PROPOSED:${id}`, name };
  if (kind === 'synonym') other.synonyms.push(name);
  else concepts.set(linked.id, { id: linked.id, name, synonyms: [], types: type ? [type] : (other?.types ?? []), definition: definition ?? null, parents: other ? [other.id] : [] });
  const row = { id, kind, concept: linked, broader: kind === 'concept' && other ? { id: other.id, name: other.name } : null, name, scope, type: type ?? other?.types[0] ?? '', definition: definition ?? '', document, evidence: name, by: me.name, at: now(), n_mentions: 0 };
  all.set(id, { project: p, row });
  return { proposal: row, n_predicted: 0 };
}

export function remove(p, id) {
  all.delete(id);
  return {};
}

export const file = (p, format) => of(p).map((one) => (format === 'tsv' ? [one.concept.id, one.name, '', one.type, one.definition] : [one.concept.id, one.name]).join('\t')).join('\n');
