//! Evaluation protocols of published papers.
//!
//! A protocol sets options that could be set one by one, and selects the headline score. It does not change any
//! measure; other scores are reported next to the headline.

use std::fmt::Write;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::bootstrap::Interval;
use super::ids::IdPolicy;
use super::matching::Measure;
use super::ranking::{Composite, RankUnit, RankingScores};
use super::report::Report;
use crate::{Error, Result};

/// The evaluation rules of a paper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Protocol {
    /// Name on the command line and in reports.
    pub name: &'static str,
    /// The paper.
    pub paper: &'static str,
    /// Explanation.
    pub meaning: &'static str,
    /// When ids match.
    pub ids: IdPolicy,
    /// What is ranked.
    pub unit: RankUnit,
    /// How composite mentions are ranked.
    pub composite: Composite,
    /// The span measures; all if empty.
    pub measures: &'static [Measure],
    /// The headline scores of the paper, most important first.
    pub headlines: &'static [Headline],
}

/// A headline score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// F1 under a span measure.
    F1(Measure),
    /// Accuracy@k over all evaluated mentions, including those whose concept is not in the knowledge base.
    Accuracy(usize),
    /// Accuracy@k over the mentions whose concept is in the knowledge base.
    LinkableAccuracy(usize),
    /// Mean average precision; with one relevant concept it equals the mean reciprocal rank.
    Map,
    /// Unweighted mean of accuracy@1 over folds; this report is one of them.
    FoldAccuracy,
}

/// All protocols, in listing order.
pub const PROTOCOLS: [Protocol; 9] = [
    Protocol {
        name: "biosyn",
        paper: "BioSyn (Sung et al. 2020), ResCNN (Lai et al. 2021)",
        meaning: "names are ranked; any common id is correct; every part of a composite mention must be correct; \
                  gold ids missing from the dictionary count as errors. The paper's dictionary includes the training \
                  mentions: use a clean one as --kb and that one as --leaky-kb",
        ids: IdPolicy::Any,
        unit: RankUnit::Names,
        composite: Composite::All,
        measures: &[],
        headlines: &[Headline::Accuracy(1)],
    },
    Protocol {
        name: "genbioel",
        paper: "GenBioEL (Yuan et al. 2022)",
        meaning: "as biosyn, but only the first part of a composite mention is scored, and mentions without a gold \
                  id in the knowledge base (--kb) are excluded from the headline",
        ids: IdPolicy::Any,
        unit: RankUnit::Names,
        composite: Composite::First,
        measures: &[],
        headlines: &[Headline::LinkableAccuracy(1), Headline::LinkableAccuracy(5)],
    },
    Protocol {
        name: "bhowmik",
        paper: "collective dual encoder (Bhowmik et al. 2021)",
        meaning: "only the first gold id counts; concepts are ranked; end to end: strict, and fractional credit for \
                  overlaps as in its code (its text describes any overlap: partial-binary)",
        ids: IdPolicy::First,
        unit: RankUnit::Entities,
        composite: Composite::All,
        measures: &[Measure::Strict, Measure::MentionRecognition, Measure::PartialBinary, Measure::PartialMaxMax],
        headlines: &[
            Headline::F1(Measure::Strict),
            Headline::F1(Measure::PartialMaxMax),
            Headline::Accuracy(1),
            Headline::Map,
        ],
    },
    Protocol {
        name: "mesh-given-mentions",
        paper: "linking on BC5CDR as in Bhowmik et al. 2021, but with every gold id",
        meaning: "given mentions (--mentions gold); MeSH concepts are ranked; any gold id is correct; mentions \
                  without a concept are excluded",
        ids: IdPolicy::Any,
        unit: RankUnit::Entities,
        composite: Composite::All,
        measures: &[Measure::Strict],
        headlines: &[Headline::Accuracy(1), Headline::Map],
    },
    Protocol {
        name: "trainx-weak",
        paper: "TrainX (Oberhauser et al. 2020), BAT and GERBIL (Cornolti et al. 2013)",
        meaning: "A2W weak annotation match, end to end: overlapping spans and the same concept; rankings rank \
                  concepts; zero-shot means not in --train-gold",
        ids: IdPolicy::Any,
        unit: RankUnit::Entities,
        composite: Composite::All,
        measures: &[Measure::Weak, Measure::Strict, Measure::MentionRecognition],
        headlines: &[Headline::F1(Measure::Weak), Headline::Accuracy(1), Headline::Accuracy(20)],
    },
    Protocol {
        name: "mohan-strict",
        paper: "MedMentions (Mohan and Li 2019), hierarchical multi-task (Wiatrak and Iso-Sipila 2020)",
        meaning: "identical spans and the same ids, each annotation once; also reports spans alone and types",
        ids: IdPolicy::Exact,
        unit: RankUnit::Entities,
        composite: Composite::All,
        measures: &[Measure::Strict, Measure::MentionRecognition, Measure::Type],
        headlines: &[Headline::F1(Measure::Strict)],
    },
    Protocol {
        name: "multitask-partial",
        paper: "lenient scores for token-labelling systems (Wiatrak and Iso-Sipila 2020 report strict scores only)",
        meaning: "overlapping spans and a common id, each annotation on its own; also reports one-to-one, fractional \
                  and strict scores. One wrong boundary token fails strict matching, but not this one",
        ids: IdPolicy::Any,
        unit: RankUnit::Entities,
        composite: Composite::All,
        measures: &[
            Measure::PartialBinary,
            Measure::PartialOneToOne,
            Measure::PartialMaxMax,
            Measure::Strict,
            Measure::MentionRecognition,
        ],
        headlines: &[Headline::F1(Measure::PartialBinary)],
    },
    Protocol {
        name: "medmentions",
        paper: "ResCNN (Lai et al. 2021) on MedMentions",
        meaning: "names are ranked; every row counts, including duplicates and concepts missing from the knowledge \
                  base, which are errors; with --kb also accuracy over linkable mentions",
        ids: IdPolicy::Any,
        unit: RankUnit::Names,
        composite: Composite::All,
        measures: &[],
        headlines: &[Headline::Accuracy(1)],
    },
    Protocol {
        name: "askapatient",
        paper: "AskAPatient (Limsopatham and Collier 2016), ten folds",
        meaning: "accuracy of one fold; the headline is the unweighted mean over folds, which `canonym eval --folds` \
                  computes from the reports of all folds, with the pooled accuracy",
        ids: IdPolicy::Any,
        unit: RankUnit::Names,
        composite: Composite::All,
        measures: &[],
        headlines: &[Headline::FoldAccuracy],
    },
];

impl FromStr for &'static Protocol {
    type Err = Error;

    fn from_str(text: &str) -> Result<&'static Protocol> {
        PROTOCOLS.iter().find(|protocol| protocol.name == text).ok_or_else(|| {
            let names: Vec<&str> = PROTOCOLS.iter().map(|protocol| protocol.name).collect();
            Error::not_found(format!("unknown protocol `{text}`"))
                .with_hint(format!("use one of {}; option `--protocol list` explains them", names.join(", ")))
        })
    }
}

/// A headline score of a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadlineScore {
    /// Its name, such as `strict F1` or `accuracy@1, linkable`.
    pub name: String,
    /// Its value, a share.
    pub value: f64,
    /// Its confidence interval.
    pub ci: Option<Interval>,
}

impl Headline {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Headline::F1(measure) => format!("{} F1", measure.name()),
            Headline::Accuracy(depth) => format!("accuracy@{depth}"),
            Headline::LinkableAccuracy(depth) => format!("accuracy@{depth}, linkable"),
            Headline::Map => "MAP".to_owned(),
            Headline::FoldAccuracy => "accuracy@1 of this fold".to_owned(),
        }
    }

    /// Its value in `report`, or `None` if missing.
    fn score(self, report: &Report) -> Option<HeadlineScore> {
        let ranking = report.ranking.as_ref();
        let accuracy = |scores: &RankingScores, depth: usize| {
            Some((*scores.accuracy.get(&depth)?, scores.accuracy_ci.get(&depth).copied()))
        };
        let (value, ci) = match self {
            Headline::F1(measure) => {
                (report.metrics.get(&measure)?.f1, report.ci.get(&measure).map(|bounds| bounds.f1))
            }
            Headline::Accuracy(depth) => accuracy(&ranking?.all, depth)?,
            Headline::FoldAccuracy => accuracy(&ranking?.all, 1)?,
            Headline::LinkableAccuracy(depth) => accuracy(ranking?.linkable.as_ref()?, depth)?,
            Headline::Map => (ranking?.all.map, ranking?.all.map_ci),
        };
        Some(HeadlineScore { name: self.name(), value, ci })
    }
}

impl Protocol {
    /// Records the protocol and its headline scores in `report`.
    ///
    /// It is an error if the report has none of the headline scores.
    pub fn mark(&self, report: &mut Report) -> Result<()> {
        report.policy.protocol = Some(self.name.to_owned());
        report.headlines = self.headlines.iter().filter_map(|headline| headline.score(report)).collect();
        if report.headlines.is_empty() {
            let names: Vec<String> = self.headlines.iter().map(|headline| headline.name()).collect();
            let message =
                format!("protocol `{}` needs {}, which this run does not report", self.name, names.join(" or "));
            let needs_kb = self.headlines.iter().all(|headline| matches!(headline, Headline::LinkableAccuracy(_)));
            return Err(Error::unsupported(message).with_hint(if needs_kb {
                "specify the knowledge base (option `--kb`), and use predictions with candidates"
            } else {
                "option `--protocol list` explains the protocols"
            }));
        }
        Ok(())
    }
}

/// The output of `--protocol list`: protocols with paper and explanation, at most 100 characters per line.
pub fn list() -> String {
    let mut out = String::new();
    for protocol in &PROTOCOLS {
        let names: Vec<String> = protocol.headlines.iter().map(|headline| headline.name()).collect();
        let rules = format!(
            "ids {}, ranking of {}, composite {}",
            super::table::serde_name(&protocol.ids),
            super::table::serde_name(&protocol.unit),
            super::table::serde_name(&protocol.composite),
        );
        writeln!(out, "{}", protocol.name).expect("a string takes every write");
        for (label, text) in [
            ("paper", protocol.paper),
            ("scoring", protocol.meaning),
            ("rules", rules.as_str()),
            ("headline", names.join("; ").as_str()),
        ] {
            write_wrapped(&mut out, label, text);
        }
    }
    out
}

fn write_wrapped(out: &mut String, label: &str, text: &str) {
    let mut line = format!("  {label:<9}");
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.len() + 1 + word.len() > 100 {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(11);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::SplitMix64;
    use super::super::ids::{IdSet, known_ids};
    use super::super::ranking::RankedMention;
    use super::super::report::{EvalConfig, evaluate_ranking};
    use super::*;

    /// Ten mentions, two with a concept outside the knowledge base; six of the other eight are correct.
    fn v11(protocol: &Protocol) -> Report {
        let one = |gold: &str, answer: &str| RankedMention {
            document: "d".into(),
            gold: IdSet::parse_one(gold),
            parts: vec![vec![IdSet::parse_one(answer)]],
            ..RankedMention::default()
        };
        let mut mentions = vec![one("K1", "K1"); 6];
        mentions.extend(vec![one("K1", "K2"); 2]);
        mentions.extend(vec![one("U1", "K1"); 2]);
        let config = EvalConfig { kb_ids: Some(known_ids(["K1", "K2"])), ..EvalConfig::default() };
        let mut report = evaluate_ranking(&mentions, &config, &mut SplitMix64::new(13));
        protocol.mark(&mut report).expect("rankings have accuracies");
        report
    }

    #[test]
    fn v11_headlines_differ_in_excluded_mentions() {
        let headline = |name: &str| v11(name.parse().expect("a protocol")).headlines[0].clone();
        assert_eq!((headline("medmentions").value, headline("genbioel").value), (0.6, 0.75));
        assert_eq!(headline("genbioel").name, "accuracy@1, linkable");
        let report = v11("genbioel".parse().expect("a protocol"));
        assert_eq!(report.kb.as_ref().map(|kb| (kb.coverage, kb.size)), Some((0.8, 2)));
        assert_eq!(report.policy.protocol.as_deref(), Some("genbioel"));
    }

    #[test]
    fn a_missing_headline_is_an_error() {
        let mohan: &Protocol = "mohan-strict".parse().expect("a protocol");
        let mut report = Report::default();
        let error = mohan.mark(&mut report).expect_err("no metrics");
        assert_eq!(error.to_string(), "protocol `mohan-strict` needs strict F1, which this run does not report");
        assert!("biosin".parse::<&Protocol>().expect_err("a slip").hint().is_some_and(|hint| hint.contains("biosyn")));
    }

    #[test]
    fn the_list_names_every_protocol_in_short_lines() {
        let list = list();
        assert!(PROTOCOLS.iter().all(|protocol| list.contains(protocol.name)));
        assert!(list.lines().all(|line| line.len() <= 100 && line.trim_end() == line), "{list}");
    }
}
