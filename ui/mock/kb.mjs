// A tiny terminology. Ids are MeSH ids, so that tests of the mock pass with a real terminology too; definitions are made up.

const rows = [
  // id, name, synonyms, type, parents, definition
  ['MESH:D004194', 'Disease', '', 'Disease', '', 'A state in which the body or a part of it does not work as it should.'],
  ['MESH:D003693', 'Delirium', 'Acute Confusional State|Delirium of Mixed Origin', 'Disease', 'MESH:D003221', 'A sudden change of attention and awareness that comes and goes over hours or days.'],
  ['MESH:D000071257', 'Emergence Delirium', 'Emergence Agitation|Postanesthetic Excitement', 'Disease', 'MESH:D003693', 'Restlessness and confusion while waking from anaesthesia.'],
  ['MESH:D003221', 'Confusion', 'Confusional State|Disorientation|Bewilderment', 'Disease', 'MESH:D019954', 'Thinking that is slow and unclear, with loss of orientation.'],
  ['MESH:D019954', 'Neurobehavioral Manifestations', 'Cognitive Symptoms', 'Disease', 'MESH:D004194', null],
  ['MESH:D006261', 'Headache', 'Headaches|Head Pain|Cephalalgia|Cephalgia', 'Symptom', 'MESH:D010146', 'Pain in the head that may come from the muscles, the vessels or the coverings of the brain.'],
  ['MESH:D010146', 'Pain', 'Ache|Suffering, Physical', 'Symptom', 'MESH:D012816', 'An unpleasant feeling that warns of harm.'],
  ['MESH:D012816', 'Signs and Symptoms', 'Symptoms|Complaints', 'Symptom', '', null],
  ['MESH:D005334', 'Fever', 'Pyrexia|Hyperthermia|Fevers', 'Symptom', 'MESH:D012816', 'A body temperature that is raised on purpose by the body.'],
  ['MESH:D003371', 'Cough', 'Coughs|Coughing', 'Symptom', 'MESH:D012816', 'A sudden push of air out of the chest that clears the airways.'],
  ['MESH:D009325', 'Nausea', 'Feeling Sick', 'Symptom', 'MESH:D012816', null],
  ['MESH:D007052', 'Ibuprofen', 'Motrin|Brufen', 'Drug', 'MESH:D004364', 'A drug against pain, fever and inflammation.'],
  ['MESH:D015738', 'Famotidine', 'Pepcid', 'Drug', 'MESH:D004364', 'A drug that lowers the acid of the stomach.'],
  ['MESH:D014859', 'Warfarin', 'Coumadin', 'Drug', 'MESH:D004364', 'A drug that slows the clotting of blood.'],
  ['MESH:D001241', 'Aspirin', 'Acetylsalicylic Acid', 'Drug', 'MESH:D004364', 'A drug against pain that also keeps platelets apart.'],
  ['MESH:D004364', 'Pharmaceutical Preparations', 'Drugs|Medicines', 'Drug', '', null],
  ['MESH:D009369', 'Neoplasms', 'Cancer|Tumor|Tumors|Cancers', 'Disease', 'MESH:D004194', 'Growth of tissue that does not obey the body.'],
  ['MESH:D001943', 'Breast Neoplasms', 'Breast Cancer|Mammary Cancer|Breast Tumor', 'Disease', 'MESH:D009369', 'Tumours of the breast.'],
  ['MESH:D008175', 'Lung Neoplasms', 'Lung Cancer|Pulmonary Cancer', 'Disease', 'MESH:D009369', 'Tumours of the lung.'],
  ['MESH:D051436', 'Renal Insufficiency, Chronic', 'Chronic Kidney Disease|CKD|Chronic Renal Disease', 'Disease', 'MESH:D007674', 'Slow loss of the work of the kidneys over months or years.'],
  ['MESH:D007674', 'Kidney Diseases', 'Kidney Disease|Nephropathy', 'Disease', 'MESH:D004194', null],
  ['MESH:D000740', 'Anemia', 'Anaemia|Anemias', 'Disease', 'MESH:D004194', 'Too few red cells, or too little of the red pigment, in the blood.'],
  ['MESH:D003920', 'Diabetes Mellitus', 'Diabetes', 'Disease', 'MESH:D004194', 'Too much sugar in the blood over a long time.'],
  ['MESH:D003924', 'Diabetes Mellitus, Type 2', 'Type 2 Diabetes|NIDDM', 'Disease', 'MESH:D003920', 'Diabetes in which insulin works too weakly.'],
  ['MESH:D006973', 'Hypertension', 'High Blood Pressure', 'Disease', 'MESH:D004194', 'Blood pressure that stays too high.'],
];

export const concepts = new Map(
  rows.map(([id, name, synonyms, type, parents, definition]) => [
    id,
    { id, name, synonyms: synonyms ? synonyms.split('|') : [], definition, types: [type], parents: parents ? parents.split('|') : [] },
  ]),
);

const named = (id) => ({ id, name: concepts.get(id).name });

export function pathOf(id) {
  const path = [];
  for (let at = concepts.get(id); at; at = concepts.get(at.parents[0])) path.unshift(named(at.id));
  return path;
}

export function conceptPage(id) {
  const concept = concepts.get(id);
  if (!concept) return null;
  const children = [...concepts.values()].filter((one) => one.parents.includes(id)).map((one) => named(one.id));
  return { ...concept, parents: concept.parents.map(named), children, path: pathOf(id) };
}

/** Names that equal the query, start with it, or share character bigrams with it. */
export function search(q, topK = 20) {
  const query = q.trim().toLowerCase();
  if (!query) return [];
  const found = [];
  for (const concept of concepts.values()) {
    let best = null;
    for (const name of [concept.name, ...concept.synonyms]) {
      const folded = name.toLowerCase();
      const [how, score] =
        folded === query || concept.id.toLowerCase() === query ? ['exact', 1] : folded.startsWith(query) ? ['prefix', 0.9 * (query.length / folded.length) ** 0.2] : ['fuzzy', dice(folded, query)];
      if ((how !== 'fuzzy' || score > 0.3) && (!best || score > best.score)) best = { matched: name, how, score };
    }
    if (best) found.push({ ...concept, ...best });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, topK);
}

function dice(a, b) {
  const grams = (text) => new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)));
  const [left, right] = [grams(a), grams(b)];
  let both = 0;
  for (const gram of left) if (right.has(gram)) both++;
  return left.size + right.size ? (2 * both) / (left.size + right.size) : 0;
}

/** Names found in a text, longest first, with made-up probabilities. Spans are code points. */
export function link(text, nested = false) {
  const names = [...concepts.values()].flatMap((concept) => [concept.name, ...concept.synonyms].map((name) => [name.toLowerCase(), concept]));
  names.sort((a, b) => b[0].length - a[0].length);
  const folded = text.toLowerCase();
  const taken = [];
  const found = [];
  for (const [name, concept] of names) {
    for (let at = folded.indexOf(name); at >= 0; at = folded.indexOf(name, at + 1)) {
      const end = at + name.length;
      if (/[\p{L}\p{N}]/u.test(folded[at - 1] ?? ' ') || /[\p{L}\p{N}]/u.test(folded[end] ?? ' ')) continue;
      if (taken.some(([from, to]) => at < to && from < end) && !nested) continue;
      taken.push([at, end]);
      const start = [...text.slice(0, at)].length;
      const mention = text.slice(at, end);
      const candidates = candidatesOf(mention, concept);
      found.push({ spans: [[start, start + [...mention].length]], text: mention, type: concept.types[0], score: candidates[0].score, nil: false, candidates });
    }
  }
  return found.sort((a, b) => a.spans[0][0] - b.spans[0][0]);
}

export function candidatesOf(mention, concept) {
  const sure = 0.55 + (([...mention].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) * 37) % 43) / 100;
  const others = search(mention, 5).filter((one) => one.id !== concept.id).slice(0, 3);
  const candidate = (one, p) => ({ id: one.id, name: one.name, score: Number(p.toFixed(2)), p_link: Number(p.toFixed(2)) });
  return [candidate(concept, sure), ...others.map((one, row) => candidate(one, (1 - sure) / (row + 1.6)))];
}

export function explain(annotation) {
  return {
    compared: annotation.text,
    threshold: 0.3,
    candidates: annotation.candidates.map((one, row) => {
      const contributions = [
        { feature: 'exact', sentence: 'Exact name match', value: row ? 0 : 1, log_odds: row ? 0 : 2.1 },
        { feature: 'grams', sentence: 'Shared character n-grams', value: 0.8 - row * 0.3, log_odds: 1.2 - row * 0.8 },
        { feature: 'offset', sentence: 'Baseline', value: 1, log_odds: -1.4 },
      ].filter((part) => part.log_odds);
      return { id: one.id, name: one.name, scope: row ? 'related' : 'exact', how: row ? 'n-gram' : 'exact', score: one.score, p_link: one.p_link, words: [], only_in_mention: [], only_in_name: [], contributions };
    }),
  };
}

export function pickerRow(id, score, how, text = '', nChosen = 0, nLinked = 0) {
  const concept = concepts.get(id);
  const hit = search(text, 30).find((one) => one.id === id);
  const matched = hit ? { name: hit.matched, scope: hit.matched === concept.name ? 'preferred' : 'exact', how: hit.how, similarity: Number(hit.score.toFixed(2)) } : null;
  return { id, name: concept.name, types: concept.types, definition: concept.definition, synonyms: concept.synonyms.slice(0, 5).map((name) => ({ name, scope: 'exact' })), path: pathOf(id).map((one) => one.name), score, how, matched, n_chosen: nChosen, n_linked: nLinked };
}

let nAsked = 0;

/** Quality checks; not ready at the first request. */
export function lint() {
  if (!nAsked++) return { is_ready: false, seconds: null, checks: [] };
  const all = [...concepts.values()];
  const example = ({ id, name }) => ({ ids: [id], name, note: '' });
  const undefined_ = all.filter((one) => !one.definition);
  return {
    is_ready: true,
    seconds: 0.4,
    checks: [
      { check: 'homonyms', what: 'names shared by several concepts', n_found: 1, is_note: false, examples: [{ ids: ['MESH:D003693', 'MESH:D003221'], name: 'Confusional State', note: '' }] },
      { check: 'one-letter', what: 'names of one character', n_found: 0, is_note: false, examples: [] },
      { check: 'stop-words', what: 'stop words used as names, such as `of` and `the`', n_found: 0, is_note: false, examples: [] },
      { check: 'no-definition', what: 'concepts without a definition', n_found: undefined_.length, is_note: true, examples: undefined_.slice(0, 20).map(example) },
    ],
  };
}

/** A level of the hierarchy. */
export function tree(under) {
  const nChildren = (id) => [...concepts.values()].filter((one) => one.parents.includes(id)).length;
  const level = [...concepts.values()].filter((one) => (under ? one.parents.includes(under) : !one.parents.length && nChildren(one.id) > 0));
  const found = level.sort((a, b) => a.name.localeCompare(b.name)).map(({ id, name }) => ({ id, name, n_children: nChildren(id) }));
  return { path: under ? pathOf(under) : [], concepts: found, n_concepts: found.length };
}
