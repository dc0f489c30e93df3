import { expect, test } from 'vitest';
import type { PickerCandidate } from './types';
import { cardBlocks, comparedText, evidenceOf, formatConfidence, formatDuration, formatScore, formatTime, likely, lossText, matchText, offerReason, plural, pubtator, readMetadata, reasonText, scopeText, shortValue, splitCode, testSetText, trainingDocuments } from './format';

test('scores have two digits and no leading zero', () => {
  expect([formatScore(0.617), formatScore(0.9999), formatScore(0), formatScore(null)]).toEqual(['.62', '1.0', '.00', '–']);
});
test('a confidence that is a sum of two probabilities is halved', () => {
  expect([formatConfidence(1.94, 'least-confident'), formatConfidence(0.6, 'margin'), formatConfidence(null, 'random')]).toEqual(['.97', '.60', '–']);
});
test('singular and plural', () => expect([plural(1, 'document'), plural(1200, 'document')]).toEqual(['1 document', '1,200 documents']));
test('losses of an export are sentences', () => {
  expect(lossText('lost: 1 comments')).toBe('1 comment will be lost.');
  expect(lossText('lost: 67 annotator names')).toBe('67 annotator names will be lost.');
  expect(lossText('the finished status of 1 document is lost')).toBe('The finished status of 1 document will be lost.');
  expect(lossText('2 scores will be dropped (first in document `a`)')).toBe('2 scores will be dropped (first in document `a`).');
});
test('reasons say nothing that may not be so', () => {
  expect(reasonText('no predictions yet')).toBe('No predictions');
  expect(reasonText('no candidates for “syringe driver”')).toBe('No candidates for “syringe driver”');
  expect(reasonText('random order')).toBe('Random order');
});
test('a list of ids is cut between ids', () => {
  expect(shortValue('D015492|D000163')).toBe('D015492, D000163');
  expect(shortValue('D1|D2|D3|D4|D5')).toBe('D1, D2, D3 +2');
  expect(shortValue('2021')).toBe('2021');
});
test('documents of a training are counted in one way', () => {
  const plan = { n_complete: 14, n_held_out: 4, n_incomplete: 3, n_unreviewed: 1200 };
  expect(trainingDocuments(plan)).toBe('18 complete, 4 of them held out; 3 partly reviewed; 1,200 unreviewed, not used');
  expect(trainingDocuments({ n_complete: 2, n_held_out: 0, n_incomplete: 0, n_unreviewed: 0 })).toBe('2 complete');
});
test('a changed test set is told', () => {
  expect(testSetText({ changed_since: 'a' })).toContain('changed since “a”');
  expect([testSetText({}), testSetText(null)]).toEqual(['', '']);
  expect(offerReason('trained “b”; offered, not used: it is not better (linking F1 .83); the test set changed since “a”, so earlier scores are not comparable')).toBe('it is not better (linking F1 .83)');
});
test('changes name the models that they compare', () => {
  expect(comparedText({ model_before: 'a', model_after: 'b' })).toBe('a → b');
  expect(comparedText({ model_before: 'a', model_after: 'a' })).toBe('Predicted by “a”, compared with its predictions before.');
  expect(comparedText({ model_before: null, model_after: 'b' })).toBe('Predicted by “b”; there were no predictions before.');
  expect(comparedText({ model_before: null, model_after: null })).toBe('Nothing was predicted.');
});
test('durations use a fitting unit', () => {
  expect([formatDuration(0.2), formatDuration(89), formatDuration(600), formatDuration(7200), formatDuration(null)]).toEqual(['1 s', '89 s', '10 min', '2.0 h', '–']);
});
test('an invalid time stays as it is', () => expect([formatTime('soon'), formatTime(null)]).toEqual(['soon', '–']));
test('unknown match types are shown as they are', () => expect([matchText('exact'), matchText('oracle')]).toEqual(['exact name', 'oracle']));
test('a fuzzy match with the query as whole words contains it', () => {
  expect(matchText('fuzzy', 'kidney disease', ['Chronic Kidney-Disease'])).toBe('contains');
  expect(matchText('fuzzy', 'kidney dis', ['Chronic Kidney Disease'])).toBe('fuzzy match');
});
test('a linked text as PubTator', () => {
  const candidates = [{ id: 'MESH:D005334', name: 'Fever', score: 0.9 }];
  const annotation = { spans: [[2, 7], [9, 10]] as [number, number][], text: 'fever x', type: '', score: 0.9, nil: false, candidates };
  const written = pubtator({ id: '7', text: '😀 fever\n x\ny', annotations: [annotation, { ...annotation, nil: true }] });
  expect(written).toBe('7|t|😀 fever\n7|a| x y\n7\t2;9\t7;10\tfever x\tEntity\tMESH:D005334\n7\t2;9\t7;10\tfever x\tEntity\t-1\n');
});

test('backticks mark code', () => {
  expect(splitCode('give `--data` or `-`, not ` alone')).toEqual([
    { text: 'give ', isCode: false }, { text: '--data', isCode: true }, { text: ' or ', isCode: false }, { text: '-', isCode: true }, { text: ', not ` alone', isCode: false },
  ]);
});
test('a model card loses its Markdown syntax', () => {
  expect(cardBlocks('# Card\nMade of **two** steps,\nwith care.\n\n- one\n- two `x`')).toEqual([
    { kind: 'head', text: 'Card Made of two steps, with care.' }, { kind: 'item', text: 'one' }, { kind: 'item', text: 'two `x`' },
  ]);
});
test('evidence names the model, the matching name with its scope, and earlier choices', () => {
  const one = { id: 'T:1', name: 'Fever', types: [], definition: null, synonyms: [], path: [], score: 0.83, how: 'model', matched: null, n_chosen: 0, n_linked: 0 };
  const matched = { name: 'Pyrexia', scope: 'exact', how: 'exact', similarity: 1 };
  expect(evidenceOf({ ...one, matched, n_chosen: 12 })).toEqual(['model .83', 'exact synonym “Pyrexia”', 'chosen 12 times here']);
  expect(evidenceOf({ ...one, how: 'fuzzy', matched: { ...matched, how: 'fuzzy', similarity: 0.91 }, n_chosen: 1 })).toEqual(['fuzzy .91 · exact synonym “Pyrexia”', 'chosen once here']);
  expect(evidenceOf({ ...one, how: 'exact', matched: { ...matched, name: 'Fever', scope: 'preferred' } })).toEqual(['preferred name']);
  expect(evidenceOf({ ...one, how: 'linked', n_chosen: 2, n_linked: 2 })).toEqual(['linked 2 times for this text', 'model .83']);
  expect(evidenceOf({ ...one, how: 'recent' })).toEqual(['recently used']);
});
test('a scope names types and branches', () => {
  const branches = [{ id: 'T:1', name: 'Neoplasms' }];
  expect([scopeText({ types: [], branches: [] }), scopeText({ types: ['Drug', 'Gene'], branches: [] }), scopeText({ types: ['Disease'], branches }), scopeText({ types: [], branches })]).toEqual(['whole terminology', 'Drug, Gene', 'Disease below Neoplasms', 'below Neoplasms']);
});
test('metadata are lines of name and value', () => {
  expect(readMetadata('year: 2024\n\n url : https://a.example/b ')).toEqual([{ name: 'year', value: '2024' }, { name: 'url', value: 'https://a.example/b' }]);
  expect([readMetadata('year'), readMetadata(': x'), readMetadata('x:')].map((one) => typeof one)).toEqual(['string', 'string', 'string']);
});

test('a proposal does not begin with a concept that the model hardly believes in', () => {
  const candidate = (how: string, score: number, n_chosen = 0) => ({ how, score, n_chosen }) as PickerCandidate;
  expect(likely(candidate('model', 0.02))).toBe(null);
  for (const one of [candidate('model', 0.6), candidate('fuzzy', 0.2), candidate('model', 0.02, 3)]) expect(likely(one)).toBe(one);
});

test('the message of a training says why its model is offered', () => {
  expect(offerReason('trained “a”; offered, not used: the gain may be chance (linking F1 .83)')).toBe('the gain may be chance (linking F1 .83)');
  expect(offerReason('trained “a”; predicted 3 documents')).toBe('');
});
