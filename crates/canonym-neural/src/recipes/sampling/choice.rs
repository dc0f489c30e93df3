//! How the next documents are chosen: as the queue of the application does, or by measures that are only simulated.

use canonym_core::Error;
use canonym_core::active::{Ranked, Strategy, Unreviewed, confidence, farthest_first, margin, rank};
use canonym_core::corpus::Annotation;
use canonym_core::numbers::rounded;

/// A way to choose the next documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A strategy of the queue, from the probabilities of mention and link.
    Queue(Strategy),
    /// As published for TrainX: lowest confidence of the recogniser plus the difference of the cosines of the two nearest concepts.
    Published,
    /// Lowest p(link).
    Link,
    /// Highest entropy over what is right: no mention, one of the candidates, or another concept.
    Entropy,
    /// Highest expected number of errors of the document.
    ExpectedErrors,
    /// Highest expected number of errors per expected decision.
    CostAware,
}

impl Choice {
    /// Those that the queue of the application does not have.
    const SIMULATED: [Choice; 5] =
        [Choice::Published, Choice::Link, Choice::Entropy, Choice::ExpectedErrors, Choice::CostAware];

    /// Name in experiments and reports.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Queue(strategy) => strategy.name(),
            Choice::Published => "published",
            Choice::Link => "link",
            Choice::Entropy => "entropy",
            Choice::ExpectedErrors => "expected-errors",
            Choice::CostAware => "cost-aware",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> canonym_core::Result<Choice> {
        let simulated = Choice::SIMULATED.into_iter().find(|one| one.name() == name);
        simulated.map_or_else(|| Strategy::parse(name).map(Choice::Queue), Ok).map_err(|error| {
            let names = Strategy::ALL.map(Strategy::name).into_iter().chain(Choice::SIMULATED.map(Choice::name));
            let hint = format!("use one of {}", names.collect::<Vec<_>>().join(", "));
            Error::not_found(error.to_string()).with_hint(hint)
        })
    }

    /// The `n` documents to annotate next, as rows of `left`. Ties keep their order.
    pub fn next(self, left: &[Candidate<'_>], done: &[String], n: usize, seed: u64) -> Vec<usize> {
        let rows = |ranked: Vec<Ranked>| ranked.into_iter().map(|ranked| ranked.row).collect();
        let strategy = match self {
            Choice::Queue(Strategy::Diversity) => {
                let texts: Vec<String> = left.iter().map(|one| one.text.to_owned()).collect();
                return rows(farthest_first(&texts, done, n));
            }
            Choice::Queue(strategy) => strategy,
            // Ranked by the number of each document, the lowest first.
            _ => Strategy::LeastConfident,
        };
        let unreviewed =
            |one: &Candidate<'_>| Unreviewed { min_confidence: self.rank_of(one.predicted), is_annotated: true };
        let waiting: Vec<Unreviewed> = left.iter().map(unreviewed).collect();
        rows(rank(strategy, &waiting, n, seed))
    }

    /// The number by which a document is ranked, the lowest first; `None` if there is nothing to review.
    fn rank_of(self, predicted: &Predicted) -> Option<f64> {
        let lowest = |of: &dyn Fn(&Prediction) -> f64| predicted.mentions.iter().map(of).reduce(f64::min);
        match self {
            Choice::Queue(strategy) => lowest(&|one| one.confidence(strategy)),
            Choice::Published => lowest(&|one| one.recognition + margin(&one.cosines)),
            Choice::Link => lowest(&Prediction::p_link),
            Choice::Entropy => lowest(&|one| -one.entropy()),
            Choice::ExpectedErrors => Some(-predicted.expected_errors()).filter(|errors| *errors < 0.0),
            Choice::CostAware => {
                let gain = predicted.expected_errors() / (predicted.expected_decisions() + OPENING);
                Some(-gain).filter(|gain| *gain < 0.0)
            }
        }
    }
}

/// Decisions that opening a document counts for, so that those with a single mention do not always come first.
const OPENING: f64 = 1.0;

/// A document to choose.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its text.
    pub text: &'a str,
    /// What the model predicts in it.
    pub predicted: &'a Predicted,
}

/// Predictions in a document.
#[derive(Debug, Clone, Default)]
pub struct Predicted {
    /// Output mentions.
    pub mentions: Vec<Prediction>,
    /// Expected number of mentions that are not output: the sum of p(mention) over disjoint spans without an output mention.
    pub missed: f64,
}

/// A predicted mention with what the strategies ask for.
#[derive(Debug, Clone, Default)]
pub struct Prediction {
    /// The prediction.
    pub annotation: Annotation,
    /// Confidence of the recogniser alone.
    pub recognition: f64,
    /// Cosines of the two nearest concepts.
    pub cosines: [f64; 2],
}

impl Prediction {
    /// As the queue of the application computes it.
    fn confidence(&self, strategy: Strategy) -> f64 {
        let one = &self.annotation;
        let p_link: Vec<f64> = one.candidates.iter().map(|candidate| rounded(candidate.p_link)).collect();
        confidence(strategy, one.p_mention.map(rounded), margin(&p_link))
    }

    /// 1 for a given mention.
    fn p_mention(&self) -> f64 {
        self.annotation.p_mention.map_or(1.0, rounded)
    }

    fn p_link(&self) -> f64 {
        self.annotation.p_link.map_or(0.0, rounded)
    }

    /// Entropy in nats over: no mention, a mention of each candidate, a mention of something else.
    fn entropy(&self) -> f64 {
        let candidates: Vec<f64> = self.annotation.candidates.iter().map(|one| f64::from(one.score())).collect();
        let p_mention = self.p_mention();
        let other = (p_mention - candidates.iter().sum::<f64>()).max(0.0);
        let outcomes = candidates.into_iter().chain([1.0 - p_mention, other]);
        outcomes.filter(|p| *p > 0.0).map(|p| -p * p.ln()).sum()
    }

    /// Probability that nothing has to be changed.
    fn p_right(&self) -> f64 {
        f64::from(self.annotation.probability()).clamp(0.0, 1.0)
    }
}

impl Predicted {
    fn expected_errors(&self) -> f64 {
        self.mentions.iter().map(|one| 1.0 - one.p_right()).sum::<f64>() + self.missed
    }

    /// One for each prediction, and one for each mention that has to be added.
    fn expected_decisions(&self) -> f64 {
        self.mentions.len() as f64 + self.missed
    }
}

#[cfg(test)]
mod tests {
    use canonym_core::corpus::CandidateRecord;

    use super::*;

    /// A mention with p(mention), the recogniser's confidence, cosines, and candidates by p(mention and concept).
    fn mention(p_mention: f32, recognition: f64, cosines: [f64; 2], candidates: &[f32]) -> Prediction {
        let record = |score: &f32| CandidateRecord {
            id: String::new(),
            name: String::new(),
            p_link: *score / p_mention,
            p_both: Some(*score),
        };
        let best = candidates.first().copied().unwrap_or(0.0);
        let annotation = Annotation {
            p_mention: Some(p_mention),
            p_link: Some(best / p_mention),
            score: Some(best),
            candidates: candidates.iter().map(record).collect(),
            ..Annotation::default()
        };
        Prediction { annotation, recognition, cosines }
    }

    fn document(mentions: &[Prediction], missed: f64) -> Predicted {
        Predicted { mentions: mentions.to_vec(), missed }
    }

    fn order(choice: Choice, documents: &[Predicted]) -> Vec<usize> {
        let left: Vec<Candidate<'_>> = documents.iter().map(|predicted| Candidate { text: "", predicted }).collect();
        choice.next(&left, &[], documents.len(), 0)
    }

    #[test]
    fn published_confidence_is_that_of_the_recogniser_plus_the_difference_of_cosines() {
        // The test vectors of the publication: .92 and 1.15 in the first document, 1.00 in the second.
        let first =
            document(&[mention(0.99, 0.90, [0.81, 0.79], &[0.98]), mention(0.99, 0.60, [0.95, 0.40], &[0.98])], 0.0);
        let second = document(&[mention(0.5, 0.70, [0.80, 0.50], &[0.1])], 0.0);
        let close = |predicted: &Predicted, expected: f64| {
            assert!((Choice::Published.rank_of(predicted).unwrap() - expected).abs() < 1e-6);
        };
        close(&first, 0.92);
        close(&second, 1.00);
        assert_eq!(order(Choice::Published, &[second.clone(), first.clone()]), [1, 0]);
        // The application asks for the probabilities, by which the second document is less certain.
        assert_eq!(order(Choice::Queue(Strategy::LeastConfident), &[first, second]), [1, 0]);
    }

    #[test]
    fn entropy_is_highest_where_all_outcomes_are_equally_likely() {
        let sure = mention(1.0, 0.0, [0.0; 2], &[1.0]);
        let half = mention(1.0, 0.0, [0.0; 2], &[0.5, 0.5]);
        let thirds = mention(2.0 / 3.0, 0.0, [0.0; 2], &[1.0 / 3.0, 1.0 / 3.0]);
        assert!(sure.entropy().abs() < 1e-6 && (half.entropy() - 2f64.ln()).abs() < 1e-6);
        assert!((thirds.entropy() - 3f64.ln()).abs() < 1e-3);
        let all = [sure, half, thirds].map(|one| document(&[one], 0.0));
        assert_eq!(order(Choice::Entropy, &all), [2, 1, 0]);
    }

    #[test]
    fn errors_count_by_document_or_by_decision() {
        let wrong = || mention(1.0, 0.0, [0.0; 2], &[0.4]);
        let right = || mention(1.0, 0.0, [0.0; 2], &[0.9]);
        let long = document(&std::iter::repeat_with(right).take(20).collect::<Vec<_>>(), 0.0);
        let short = document(&[wrong(), wrong()], 0.0);
        let missing = document(&[], 1.5);
        let empty = document(&[], 0.0);
        // Errors: 2.0, 1.2, 1.5, 0; per decision and one more: 0.10, 0.40, 0.60.
        let all = [empty, long, short, missing];
        assert_eq!(order(Choice::ExpectedErrors, &all), [1, 3, 2, 0]);
        assert_eq!(order(Choice::CostAware, &all), [3, 2, 1, 0]);
    }

    #[test]
    fn link_and_queue_strategies_have_names() {
        let low = document(&[mention(1.0, 0.0, [0.0; 2], &[0.2])], 0.0);
        let high = document(&[mention(0.3, 0.0, [0.0; 2], &[0.3])], 0.0);
        assert_eq!(order(Choice::Link, &[high.clone(), low.clone()]), [1, 0]);
        assert_eq!(order(Choice::parse("recognition").unwrap(), &[high, low]), [0, 1]);
        for choice in Choice::SIMULATED {
            assert_eq!(Choice::parse(choice.name()).unwrap(), choice);
        }
        let error = Choice::parse("guess").unwrap_err();
        assert!(error.to_string().contains("unknown strategy `guess`") && error.hint().unwrap().contains("cost-aware"));
    }
}
