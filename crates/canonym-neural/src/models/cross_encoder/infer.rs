//! Cross-encoder inference: the same scores as [`crate::models::cross_encoder`], without a tape, and a [`Reranker`] that uses them.

use std::sync::Arc;

use canonym_core::kb::KnowledgeBase;
use canonym_core::link::{Candidate, Link, LinkInput, Reranker};
use canonym_core::{Error, Result};
use rayon::prelude::*;

use crate::models::bert::Sequences;
use crate::models::bert::infer::{BertEncoder, Pooling};
use crate::models::cross_encoder::context::{BEGIN, END, marked_window};
use crate::models::cross_encoder::{CrossEncoderConfig, HEAD, SCOPE};
use crate::tensor::elementwise::softmax;
use crate::tensor::matrix::dot;
use crate::tensor::parameters::Parameters;
use crate::tokenizer::Tokenizer;

/// Pairs per batch.
const BATCH: usize = 512;

/// Scores pairs of a mention in context and a concept name.
#[derive(Debug)]
pub struct PairScorer {
    config: CrossEncoderConfig,
    tokenizer: Tokenizer,
    encoder: BertEncoder,
    weight: Vec<f32>,
    bias: f32,
}

impl PairScorer {
    /// Builds a scorer. The vocabulary must contain the mention markers.
    pub fn new(config: &CrossEncoderConfig, parameters: &Parameters, tokenizer: &Tokenizer) -> Result<PairScorer> {
        config.check(parameters)?;
        tokenizer.ends()?;
        [BEGIN, END].into_iter().try_for_each(|piece| tokenizer.require(piece).map(drop))?;
        Ok(PairScorer {
            config: config.clone(),
            tokenizer: tokenizer.clone(),
            encoder: BertEncoder::new(&config.bert, parameters, SCOPE)?,
            weight: parameters.get(&format!("{HEAD}.weight"))?.values.clone(),
            bias: parameters.get(&format!("{HEAD}.bias"))?.values[0],
        })
    }

    /// The score of each pair, independent of the other pairs.
    pub fn scores(&self, pairs: &Sequences) -> Result<Vec<f32>> {
        let mut scores = Vec::with_capacity(pairs.len());
        for first in (0..pairs.len()).step_by(BATCH) {
            let batch = pairs.slice(first..pairs.len().min(first + BATCH));
            let pooled = self.encoder.encode_pooled(&batch, Pooling::Pooler)?;
            scores.extend((0..pooled.n_rows).map(|row| dot(pooled.row(row), &self.weight) + self.bias));
        }
        Ok(scores)
    }
}

/// Reranks candidates by cross-encoder scores. A candidate is represented by its matched name, or by its preferred name if there is none.
#[derive(Debug)]
pub struct CrossEncoder {
    kb: Arc<KnowledgeBase>,
    scorer: Arc<PairScorer>,
}

impl CrossEncoder {
    /// A reranker for candidates from `kb`.
    pub fn new(kb: Arc<KnowledgeBase>, scorer: Arc<PairScorer>) -> CrossEncoder {
        CrossEncoder { kb, scorer }
    }

    /// The input pairs of a mention and its candidates.
    fn pairs(&self, text: &str, span: std::ops::Range<usize>, candidates: &[Candidate]) -> Result<Sequences> {
        let mut pairs = Sequences::default();
        if candidates.is_empty() {
            return Ok(pairs);
        }
        let PairScorer { config, tokenizer, .. } = self.scorer.as_ref();
        let window = marked_window(tokenizer, text, span, config.n_wordpieces)?;
        for candidate in candidates {
            let name = match candidate.name {
                Some(name) => self.kb.name(name),
                None => self.kb.preferred_name(candidate.concept),
            };
            pairs.push(&[&window.rows, &config.name_rows(tokenizer, name)?]);
        }
        Ok(pairs)
    }
}

impl Reranker for CrossEncoder {
    /// Replaces candidate scores by a softmax over the cross-encoder scores of each mention. The sort is stable, no candidate is dropped,
    /// and `nil` does not change.
    fn rerank(&self, inputs: &[LinkInput<'_>], links: &mut [Vec<Link>]) -> Result<()> {
        let fits = |(input, links): (&LinkInput<'_>, &Vec<Link>)| input.mentions.len() == links.len();
        if inputs.len() != links.len() || !inputs.iter().zip(links.iter()).all(fits) {
            return Err(Error::mismatch("the links to rerank do not match the mentions"));
        }
        let asked: Vec<(&str, std::ops::Range<usize>)> = inputs
            .iter()
            .flat_map(|input| input.mentions.iter().map(|mention| (input.document.text, mention.hull())))
            .map(|(text, hull)| (text, hull.start as usize..hull.end as usize))
            .collect();
        let mut all: Vec<&mut Link> = links.iter_mut().flatten().collect();
        let mut first = 0;
        while first < all.len() {
            // Mentions in batches of about `BATCH` pairs, so that memory is bounded by pairs, not by documents.
            let mut n_pairs = 0;
            let until = |link: &&mut Link| {
                n_pairs += link.candidates.len();
                n_pairs >= BATCH
            };
            let last = all[first..].iter().position(until).map_or(all.len(), |place| first + place + 1);
            let each: Vec<Sequences> = (&asked[first..last], &all[first..last])
                .into_par_iter()
                .map(|((text, span), link)| self.pairs(text, span.clone(), &link.candidates))
                .collect::<Result<_>>()?;
            let mut together = Sequences::default();
            each.iter().for_each(|pairs| together.append(pairs));
            let scores = self.scorer.scores(&together)?;
            let mut rest = scores.as_slice();
            for (link, pairs) in all[first..last].iter_mut().zip(&each) {
                let (own, others) = rest.split_at(pairs.len());
                order(&mut link.candidates, own);
                rest = others;
            }
            first = last;
        }
        Ok(())
    }
}

/// Sorts candidates by score and sets their scores to softmax probabilities.
fn order(candidates: &mut [Candidate], scores: &[f32]) {
    if candidates.is_empty() {
        return;
    }
    let mut probabilities = scores.to_vec();
    softmax(&mut probabilities);
    candidates.iter_mut().zip(probabilities).for_each(|(candidate, p)| candidate.p_link = p);
    candidates.sort_by(|left, right| right.p_link.total_cmp(&left.p_link));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::Tape;
    use crate::models::cross_encoder::tests::drawn_cross_encoder;
    use canonym_core::kb::format::Meta;
    use canonym_core::kb::{ConceptId, ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
    use canonym_core::text::analysis::Analysis;
    use canonym_core::text::{Document, Mention, Span};

    const NAMES: [&str; 6] = ["liver", "kidney disease", "fatty liver disease", "cold", "livers", "kidney cold"];

    fn kb() -> Arc<KnowledgeBase> {
        let mut builder = KnowledgeBaseBuilder::new();
        for (row, name) in NAMES.iter().enumerate() {
            let names = vec![NameRecord { text: (*name).to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: format!("S{row}"), names, ..ConceptRecord::default() }).unwrap();
        }
        Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "small.kb").unwrap())
    }

    fn cross_encoder() -> CrossEncoder {
        let (config, parameters, tokenizer) = drawn_cross_encoder();
        CrossEncoder::new(kb(), Arc::new(PairScorer::new(&config, &parameters, &tokenizer).unwrap()))
    }

    fn document(text: &str) -> Document {
        Document { text: text.to_owned(), ..Document::default() }
    }

    fn link(n: u32) -> Link {
        let candidates = (0..n).map(|row| Candidate { concept: ConceptId(row), name: None, p_link: 0.1 });
        Link { candidates: candidates.collect(), nil: n == 2 }
    }

    fn assert_near(left: &Link, right: &Link) {
        assert_eq!((left.nil, left.candidates.len()), (right.nil, right.candidates.len()));
        for (left, right) in left.candidates.iter().zip(&right.candidates) {
            assert_eq!(left.concept, right.concept);
            assert!((left.p_link - right.p_link).abs() < 1e-5);
        }
    }

    #[test]
    fn scores_are_those_of_the_training_graph() {
        let (config, parameters, tokenizer) = drawn_cross_encoder();
        let scorer = PairScorer::new(&config, &parameters, &tokenizer).unwrap();
        let mut pairs = Sequences::default();
        for (row, name) in (0..BATCH + 40).zip(NAMES.iter().cycle()) {
            let window = [1, 3, 5 + row as u32 % 5, 4, 2];
            pairs.push(&[&window, &config.name_rows(&tokenizer, name).unwrap()]);
        }
        let mut tape = Tape::new(&parameters);
        let expected = config.forward(&mut tape, &pairs, None).unwrap();
        let scores = scorer.scores(&pairs).unwrap();
        for (score, expected) in scores.iter().zip(&tape.value(expected).values) {
            assert!((score - expected).abs() < 1e-5, "{score} {expected}");
        }
    }

    #[test]
    fn a_batch_of_mentions_is_ordered_as_each_alone_on_any_number_of_threads() {
        let cross_encoder = cross_encoder();
        let documents =
            ["fatty livers and kidney disease", "a cold", "", "kidney cold fatty fatty fatty liver"].map(document);
        let spans: [&[(usize, usize)]; 4] = [&[(0, 12), (17, 23), (24, 31)], &[(2, 6)], &[], &[(7, 11)]];
        let mentions = spans.map(|spans| {
            spans.iter().map(|(start, end)| Mention::contiguous(Span::new(*start, *end))).collect::<Vec<_>>()
        });
        let analysed = Analysis::all(&documents);
        let inputs = LinkInput::all(&analysed, &mentions);
        let before = vec![vec![link(6), link(0), link(2)], vec![link(4)], vec![], vec![link(5)]];
        let mut together = before.clone();
        cross_encoder.rerank(&inputs, &mut together).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut again = before.clone();
        pool.install(|| cross_encoder.rerank(&inputs, &mut again)).unwrap();
        assert_eq!(again, together);
        for ((input, before), together) in inputs.iter().zip(&before).zip(&together) {
            for (at, expected) in together.iter().enumerate() {
                let input = LinkInput { mentions: &input.mentions[at..at + 1], ..*input };
                let mut alone = [vec![before[at].clone()]];
                cross_encoder.rerank(&[input], &mut alone).unwrap();
                assert_near(&alone[0][0], expected);
                let sum: f32 = expected.candidates.iter().map(|candidate| candidate.p_link).sum();
                assert!(expected.candidates.is_empty() || (sum - 1.0).abs() < 1e-5);
                assert!(expected.candidates.is_sorted_by(|left, right| left.p_link >= right.p_link));
            }
        }
        let mut of_others = vec![vec![link(1)]; 4];
        assert!(cross_encoder.rerank(&inputs, &mut of_others).is_err());
    }

    #[test]
    fn candidates_of_equal_scores_keep_their_order() {
        let mut link = link(3);
        order(&mut link.candidates, &[1.0, 2.0, 1.0]);
        assert_eq!(link.candidates.iter().map(|candidate| candidate.concept.0).collect::<Vec<_>>(), [1, 0, 2]);
    }

    #[test]
    fn a_vocabulary_without_marks_is_refused() {
        let (config, parameters, _) = drawn_cross_encoder();
        let tokenizer = Tokenizer::from_lines("[UNK]\n[CLS]\n[SEP]\n[Ms]").unwrap();
        assert!(PairScorer::new(&config, &parameters, &tokenizer).unwrap_err().to_string().contains("[Me]"));
    }
}
