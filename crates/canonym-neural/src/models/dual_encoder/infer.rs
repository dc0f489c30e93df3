//! Dual-encoder inference: the same results as [`crate::models::dual_encoder`], without a tape.

use canonym_core::Result;

use crate::layers::linear::Linear;
use crate::models::bert::Sequences;
use crate::models::bert::infer::{BertEncoder, Pooling};
use crate::models::dual_encoder::{DualEncoderConfig, ENDS, MentionVector, NAME, NAME_LENGTH, NameVector, SPANS, TEXT};
use crate::tensor::matrix::{Matrix, Threads};
use crate::tensor::parameters::Parameters;
use crate::tensor::segments::Segments;

/// Maximum number of wordpieces per batch of windows, which bounds memory.
const PIECES: usize = 1 << 14;

/// Encodes texts and names.
#[derive(Debug)]
pub struct DualEncoder {
    /// Model configuration.
    pub config: DualEncoderConfig,
    texts: BertEncoder,
    names: BertEncoder,
    ends: Option<Linear>,
    spans: Option<Linear>,
}

/// Wordpiece vectors of a batch of windows.
#[derive(Debug)]
pub struct Read {
    rows: Matrix,
    segments: Segments,
}

impl DualEncoder {
    /// Builds an encoder from its weights.
    pub fn new(config: &DualEncoderConfig, parameters: &Parameters) -> Result<DualEncoder> {
        config.check(parameters)?;
        let linear = |wanted: bool, name: &str| wanted.then(|| Linear::of(parameters, name)).transpose();
        Ok(DualEncoder {
            config: config.clone(),
            texts: BertEncoder::new(&config.bert, parameters, TEXT)?,
            names: BertEncoder::new(&config.bert, parameters, NAME)?,
            ends: linear(config.mention == MentionVector::BoundaryTokens, ENDS)?,
            spans: linear(config.search.is_some(), SPANS)?,
        })
    }

    /// Dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.config.bert.hidden_size
    }

    /// Embeddings of names, each a sequence from `[CLS]` to `[SEP]`.
    pub fn encode_names<T: AsRef<[u32]>>(&self, names: &[T]) -> Result<Matrix> {
        let pooling = match self.config.name {
            NameVector::Pooler => Pooling::Pooler,
            NameVector::First => Pooling::First,
            NameVector::Mean | NameVector::Normalised => Pooling::Mean,
        };
        // Sequences of similar length fill tiles evenly.
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|row| names[*row].as_ref().len());
        let sorted = Sequences::pack(order.iter().map(|row| names[*row].as_ref()));
        let made = self.names.encode_pooled(&sorted, pooling)?;
        let mut vectors = Matrix::zeros(names.len(), self.dim());
        for (from, to) in order.into_iter().enumerate() {
            vectors.row_mut(to).copy_from_slice(made.row(from));
        }
        if self.config.name == NameVector::Normalised {
            vectors.normalise_rows();
            vectors.values.iter_mut().for_each(|value| *value *= NAME_LENGTH);
        }
        Ok(vectors)
    }

    /// Encodes windows.
    pub fn read<T: AsRef<[u32]>>(&self, windows: &[T]) -> Result<Read> {
        let sequences = Sequences::pack(windows.iter().map(AsRef::as_ref));
        Ok(Read { rows: self.texts.encode(&sequences)?, segments: sequences.segments().clone() })
    }

    /// Embeddings of mentions in encoded windows, each given by window, first and last row.
    pub fn mention_vectors(&self, read: &Read, mentions: &[(usize, usize, usize)]) -> Matrix {
        let dim = self.dim();
        let mut values = Vec::new();
        for (window, first, last) in mentions {
            let start = read.segments.rows(*window).start;
            match self.config.mention {
                MentionVector::BoundaryTokens => {
                    values.extend_from_slice(read.rows.row(start + first));
                    values.extend_from_slice(read.rows.row(start + last));
                }
                // Models of marked windows detect no mentions, and embed given ones by `encode_mentions`.
                MentionVector::First | MentionVector::Pooler => values.extend_from_slice(read.rows.row(start)),
                MentionVector::Mean => {
                    let weight = 1.0 / (last + 1 - first) as f32;
                    let begin = values.len();
                    values.resize(begin + dim, 0.0);
                    for row in start + first..start + last + 1 {
                        values[begin..].iter_mut().zip(read.rows.row(row)).for_each(|(to, x)| *to += x * weight);
                    }
                }
            }
        }
        match &self.ends {
            Some(ends) => ends.apply(&Matrix::new(mentions.len(), 2 * dim, values), Threads::All),
            None => Matrix::new(mentions.len(), dim, values),
        }
    }

    /// Embeddings of mentions, each given by window, first and last row, in order. Windows are encoded in batches, so their number is not
    /// limited.
    pub fn encode_mentions<T: AsRef<[u32]>>(
        &self,
        windows: &[T],
        mentions: &[(usize, usize, usize)],
    ) -> Result<Matrix> {
        let pooling = match self.config.mention {
            MentionVector::First => Some(Pooling::First),
            MentionVector::Pooler => Some(Pooling::Pooler),
            MentionVector::BoundaryTokens | MentionVector::Mean => None,
        };
        if let Some(pooling) = pooling {
            let sequences = Sequences::pack(windows.iter().map(AsRef::as_ref));
            let first = self.texts.encode_pooled(&sequences, pooling)?;
            let values = mentions.iter().flat_map(|(window, ..)| first.row(*window).iter().copied()).collect();
            return Ok(Matrix::new(mentions.len(), self.dim(), values));
        }
        let mut by_window: Vec<usize> = (0..mentions.len()).collect();
        by_window.sort_by_key(|mention| mentions[*mention].0);
        let mut vectors = Matrix::zeros(mentions.len(), self.dim());
        let mut at = 0;
        for group in groups(windows) {
            let read = self.read(&windows[group.clone()])?;
            let end = at + by_window[at..].partition_point(|mention| mentions[*mention].0 < group.end);
            let moved = |mention: &usize| {
                let (window, first, last) = mentions[*mention];
                (window - group.start, first, last)
            };
            let inside: Vec<(usize, usize, usize)> = by_window[at..end].iter().map(moved).collect();
            let made = self.mention_vectors(&read, &inside);
            for (from, mention) in by_window[at..end].iter().enumerate() {
                vectors.row_mut(*mention).copy_from_slice(made.row(from));
            }
            at = end;
        }
        Ok(vectors)
    }

    /// Three scores per wordpiece of each window, without `[CLS]` and `[SEP]`; empty if the model has no span search.
    pub fn span_scores(&self, read: &Read) -> Vec<Vec<f32>> {
        let Some(spans) = &self.spans else { return vec![Vec::new(); read.segments.len()] };
        let scores = spans.apply(&read.rows, Threads::All);
        let inner = |rows: std::ops::Range<usize>| scores.values[3 * (rows.start + 1)..3 * (rows.end - 1)].to_vec();
        read.segments.iter().map(inner).collect()
    }
}

/// Splits windows into ranges of at most [`PIECES`] wordpieces; a longer window is a range of its own.
pub(crate) fn groups<T: AsRef<[u32]>>(windows: &[T]) -> Vec<std::ops::Range<usize>> {
    let mut groups = Vec::new();
    let (mut start, mut n_wordpieces) = (0, 0);
    for (at, window) in windows.iter().enumerate() {
        if n_wordpieces > 0 && n_wordpieces + window.as_ref().len() > PIECES {
            groups.push(start..at);
            (start, n_wordpieces) = (at, 0);
        }
        n_wordpieces += window.as_ref().len();
    }
    if start < windows.len() {
        groups.push(start..windows.len());
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::Tape;
    use crate::models::dual_encoder::WindowSpan;
    use crate::models::dual_encoder::tests::{KINDS, drawn};

    fn assert_near(left: &[f32], right: &[f32]) {
        assert_eq!(left.len(), right.len());
        left.iter().zip(right).for_each(|(left, right)| assert!((left - right).abs() < 1e-5, "{left} {right}"));
    }

    #[test]
    fn the_encoder_gives_what_the_training_graph_gives() {
        let windows: [&[u32]; 3] = [&[1, 2, 3, 4, 5], &[6, 7, 8], &[1, 9, 9, 2]];
        let mentions = [(2, 1, 2), (0, 1, 3), (0, 2, 2), (1, 1, 1)];
        let starts = [0, 5, 8];
        let places = mentions.map(|(window, first, last)| {
            let start = starts[window];
            WindowSpan { window: start, first: start + first, last: start + last }
        });
        let names: [&[u32]; 4] = [&[1, 2, 3], &[4], &[5, 6], &[7, 8, 9, 1]];
        for (mention, name, search) in KINDS {
            let (config, parameters) = drawn(mention, name, search);
            let encoder = DualEncoder::new(&config, &parameters).unwrap();
            let mut tape = Tape::new(&parameters);
            let seen = config.read_windows(&mut tape, &Sequences::pack(windows), &places, None).unwrap();
            let expected = tape.value(seen.mentions.unwrap()).values.clone();
            assert_near(&encoder.encode_mentions(&windows, &mentions).unwrap().values, &expected);
            let read = encoder.read(&windows).unwrap();
            assert_near(&encoder.mention_vectors(&read, &mentions).values, &expected);
            let vectors = config.read_names(&mut tape, &Sequences::pack(names), None).unwrap();
            assert_near(&encoder.encode_names(&names).unwrap().values, &tape.value(vectors).values);
            let scores = encoder.span_scores(&read);
            if let Some(spans) = seen.spans {
                assert_near(&scores[1], &tape.value(spans).values[3 * 6..3 * 7]);
                assert_eq!(scores.iter().map(Vec::len).collect::<Vec<_>>(), [9, 3, 6]);
            } else {
                assert!(scores.iter().all(Vec::is_empty));
            }
        }
    }

    #[test]
    fn pooled_windows_are_those_of_the_training_graph() {
        let (config, parameters) = drawn(MentionVector::Pooler, NameVector::Pooler, None);
        let windows: [&[u32]; 2] = [&[1, 2, 3, 4, 5], &[6, 7, 8]];
        let places = [5, 0].map(|window| WindowSpan { window, first: window + 1, last: window + 1 });
        let mut tape = Tape::new(&parameters);
        let seen = config.read_windows(&mut tape, &Sequences::pack(windows), &places, None).unwrap();
        let encoder = DualEncoder::new(&config, &parameters).unwrap();
        let vectors = encoder.encode_mentions(&windows, &[(1, 1, 1), (0, 1, 1)]).unwrap();
        assert_near(&vectors.values, &tape.value(seen.mentions.unwrap()).values);
    }

    #[test]
    fn windows_are_read_in_groups_that_lose_none() {
        let windows = vec![vec![1u32; 5000]; 8];
        assert_eq!(groups(&windows), [0..3, 3..6, 6..8]);
        assert_eq!(groups(&[vec![1u32; 3 * PIECES]]), std::iter::once(0..1).collect::<Vec<_>>());
        assert!(groups::<Vec<u32>>(&[]).is_empty());
    }
}
