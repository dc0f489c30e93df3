//! Beam search over the names of a trie, for many mentions at once.
//!
//! As in the published code, log-probabilities are those of the softmax over the whole vocabulary; tokens that the trie does not allow are
//! left out and nothing is renormalised. The score of a name is its mean log-probability over its tokens with the end token.

use canonym_core::Result;
use serde::{Deserialize, Serialize};

use super::trie::{ROOT, Trie};
use crate::tensor::matrix::Matrix;

/// Settings of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BeamConfig {
    /// Number of hypotheses that are kept (K), and of names that are found.
    pub n_beams: usize,
    /// Whether twice as many continuations are looked at in each step, so that finished names leave all `n_beams` places to others, as in
    /// fairseq. The published code looks at `n_beams`.
    pub double: bool,
    /// Exponent of the number of tokens that log-probabilities are divided by.
    pub length_penalty: f32,
}

impl Default for BeamConfig {
    fn default() -> BeamConfig {
        BeamConfig { n_beams: 5, double: false, length_penalty: 1.0 }
    }
}

/// A token that is fed to the decoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step<'a> {
    /// The mention.
    pub mention: usize,
    /// Numbers of the steps before it in its hypothesis, from the first token on.
    pub path: &'a [u32],
    /// The token.
    pub token: u32,
    /// Whether the scores of the next token are wanted.
    pub is_scored: bool,
}

/// Gives the probabilities of next tokens.
pub trait NextToken {
    /// Feeds tokens, which get the next numbers, from 0. Returns log-probabilities over the vocabulary after each step that is scored.
    fn feed(&mut self, steps: &[Step<'_>]) -> Result<Matrix>;
}

/// A mention to write a name for.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Tokens before the name; at least one.
    pub prompt: &'a [u32],
    /// Allowed names.
    pub trie: &'a Trie,
}

/// A name that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Leaf of the trie.
    pub leaf: u32,
    /// Log-probability of the name.
    pub log_probability: f32,
    /// The log-probability divided by the number of tokens, to the power of the length penalty.
    pub score: f32,
}

/// An unfinished name.
#[derive(Debug)]
struct Live {
    path: Vec<u32>,
    /// Its last token, which is not fed yet.
    token: u32,
    node: u32,
    log_probability: f32,
}

/// The search of one mention.
#[derive(Debug, Default)]
struct Search {
    /// Number of prompt tokens that were fed.
    n_fed: usize,
    /// Steps of the prompt.
    prompt_path: Vec<u32>,
    live: Vec<Live>,
    found: Vec<Found>,
    is_over: bool,
}

/// A continuation of a live hypothesis.
struct Continuation {
    parent: usize,
    child: u32,
    log_probability: f32,
}

/// Names for each mention, best first.
pub fn search(next: &mut impl NextToken, tasks: &[Task<'_>], config: &BeamConfig) -> Result<Vec<Vec<Found>>> {
    let mut searches: Vec<Search> =
        tasks.iter().map(|task| Search { is_over: task.trie.is_empty(), ..Search::default() }).collect();
    let mut n_steps = 0_u32;
    loop {
        let mut steps = Vec::new();
        for (mention, (search, task)) in
            searches.iter().zip(tasks).enumerate().filter(|(_, (search, _))| !search.is_over)
        {
            if let Some(token) = task.prompt.get(search.n_fed) {
                let is_scored = search.n_fed + 1 == task.prompt.len();
                steps.push(Step { mention, path: &search.prompt_path, token: *token, is_scored });
            }
            for live in &search.live {
                steps.push(Step { mention, path: &live.path, token: live.token, is_scored: true });
            }
        }
        if steps.is_empty() {
            break;
        }
        let log_probabilities = next.feed(&steps)?;
        let mut row = 0;
        for (search, task) in searches.iter_mut().zip(tasks).filter(|(search, _)| !search.is_over) {
            if search.n_fed < task.prompt.len() {
                search.prompt_path.push(n_steps);
                search.n_fed += 1;
                n_steps += 1;
                if search.n_fed < task.prompt.len() {
                    continue;
                }
                // The names begin behind the prompt.
                let start = Live { path: search.prompt_path.clone(), token: 0, node: ROOT, log_probability: 0.0 };
                search.live = vec![start];
            } else {
                for live in &mut search.live {
                    live.path.push(n_steps);
                    n_steps += 1;
                }
            }
            let rows = row..row + search.live.len();
            row = rows.end;
            search.extend(task.trie, |live| log_probabilities.row(rows.start + live), config);
        }
    }
    Ok(searches.into_iter().map(Search::best).collect())
}

impl Search {
    /// Replaces live hypotheses by their best continuations.
    fn extend<'a>(&mut self, trie: &Trie, row_of: impl Fn(usize) -> &'a [f32], config: &BeamConfig) {
        let n_beams = config.n_beams.max(1);
        let mut all = Vec::new();
        for (parent, live) in self.live.iter().enumerate() {
            let row = row_of(parent);
            all.extend(trie.children(live.node).map(|child| Continuation {
                parent,
                child,
                log_probability: live.log_probability + row[trie.token(child) as usize],
            }));
        }
        all.retain(|one| one.log_probability > f32::NEG_INFINITY);
        let n = if config.double { 2 * n_beams } else { n_beams };
        let better = |left: &Continuation, right: &Continuation| {
            right.log_probability.total_cmp(&left.log_probability).then(left.child.cmp(&right.child))
        };
        if all.len() > n {
            all.select_nth_unstable_by(n - 1, better);
            all.truncate(n);
        }
        all.sort_unstable_by(better);
        let mut live = Vec::with_capacity(all.len().min(n_beams));
        for (rank, Continuation { parent, child, log_probability }) in all.into_iter().enumerate() {
            if trie.children(child).is_empty() {
                if rank < n_beams && self.found.len() < n_beams {
                    // Steps of the name, with the end token, which is not fed.
                    let n_tokens = self.live[parent].path.len() - self.prompt_path.len() + 1;
                    let score = log_probability / (n_tokens as f32).powf(config.length_penalty);
                    self.found.push(Found { leaf: child, log_probability, score });
                }
            } else if live.len() < n_beams {
                let path = self.live[parent].path.clone();
                live.push(Live { path, token: trie.token(child), node: child, log_probability });
            }
        }
        self.live = live;
        self.is_over = self.live.is_empty() || self.found.len() >= n_beams;
    }

    fn best(mut self) -> Vec<Found> {
        self.found.sort_by(|left, right| right.score.total_cmp(&left.score));
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::super::trie::TokenLists;
    use super::*;

    /// Probabilities that depend on the tokens so far.
    struct Table<F> {
        tokens: Vec<u32>,
        of: F,
    }

    impl<F: Fn(&[u32]) -> Vec<(u32, f32)>> NextToken for Table<F> {
        fn feed(&mut self, steps: &[Step<'_>]) -> Result<Matrix> {
            let mut all = Matrix::zeros(0, 10);
            for step in steps {
                let mut tokens: Vec<u32> = step.path.iter().map(|at| self.tokens[*at as usize]).collect();
                tokens.push(step.token);
                self.tokens.push(step.token);
                if step.is_scored {
                    let mut row = [f32::NEG_INFINITY; 10];
                    (self.of)(&tokens).into_iter().for_each(|(token, p)| row[token as usize] = p.ln());
                    all.n_rows += 1;
                    all.values.extend(row);
                }
            }
            Ok(all)
        }
    }

    const END: u32 = 2;

    fn trie(names: &[&[u32]]) -> Trie {
        Trie::new(&names.iter().map(|name| name.iter().copied().chain([END])).collect::<TokenLists>())
    }

    /// The probabilities of the specification, after a prompt of any length that ends with 3.
    fn specified(tokens: &[u32]) -> Vec<(u32, f32)> {
        match tokens.rsplit(|token| *token == 3).next().unwrap() {
            [] => vec![(5, 0.6), (8, 0.3)],
            [5] => vec![(6, 0.2), (7, 0.5)],
            _ => vec![(END, 0.9)],
        }
    }

    #[test]
    fn names_have_the_scores_of_the_specification_whatever_stands_beside_them() {
        let trie = trie(&[&[5, 6], &[5, 7], &[8]]);
        let prompts: [&[u32]; 3] = [&[2, 3], &[3], &[2, 4, 4, 3]];
        let tasks: Vec<Task<'_>> = prompts.iter().map(|prompt| Task { prompt, trie: &trie }).collect();
        for config in [BeamConfig::default(), BeamConfig { double: true, ..BeamConfig::default() }] {
            let found = search(&mut Table { tokens: Vec::new(), of: specified }, &tasks, &config).unwrap();
            for found in found {
                let names: Vec<u32> = found.iter().map(|one| trie.ending_at(one.leaf).next().unwrap()).collect();
                assert_eq!(names, [1, 2, 0]);
                for (found, score) in found.iter().zip([-0.4364, -0.6547, -0.7419]) {
                    assert!((found.score - score).abs() < 1e-4, "{found:?}");
                }
                assert!((found[0].log_probability - found[1].log_probability).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn finished_names_take_the_places_of_others_unless_twice_as_many_are_looked_at() {
        // In the second step a name ends and takes one of two places.
        let trie = trie(&[&[5], &[5, 6], &[5, 7]]);
        let of = |tokens: &[u32]| match tokens {
            [3] => vec![(5, 1.0)],
            [3, 5] => vec![(END, 0.5), (6, 0.3), (7, 0.2)],
            [3, 5, 6] => vec![(END, 0.1)],
            _ => vec![(END, 0.9)],
        };
        let found = |double: bool| {
            let config = BeamConfig { n_beams: 2, double, length_penalty: 1.0 };
            let tasks = [Task { prompt: &[3], trie: &trie }];
            let found = search(&mut Table { tokens: Vec::new(), of }, &tasks, &config).unwrap().remove(0);
            found.iter().map(|one| trie.ending_at(one.leaf).next().unwrap()).collect::<Vec<u32>>()
        };
        assert_eq!(found(true), [0, 2]);
        assert_eq!(found(false), [0, 1]);
    }

    #[test]
    fn a_trie_without_names_gives_none_and_one_name_is_always_found() {
        let (empty, one) = (Trie::new(&TokenLists::default()), trie(&[&[4]]));
        let tasks = [Task { prompt: &[3], trie: &empty }, Task { prompt: &[3], trie: &one }];
        let of = |_: &[u32]| vec![(4, 0.1), (END, 0.1)];
        let found = search(&mut Table { tokens: Vec::new(), of }, &tasks, &BeamConfig::default()).unwrap();
        assert_eq!((found[0].len(), found[1].len()), (0, 1));
        // What has no probability is not found.
        let of = |_: &[u32]| vec![(9, 0.1)];
        assert!(
            search(&mut Table { tokens: Vec::new(), of }, &tasks[1..], &BeamConfig::default()).unwrap()[0].is_empty()
        );
    }
}
