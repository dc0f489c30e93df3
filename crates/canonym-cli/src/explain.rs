//! `--explain`: why each mention was linked as it was, as text.

use std::io::Write;

use canonym_core::corpus::format::CorpusFormat;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::link::explain::{Agreement, Contribution, Explained, Explanation, WordPair};

use crate::errors;
use crate::link::to::To;

/// Contributions that are shown one by one.
const N_SHOWN: usize = 6;

/// Refuses formats that have no place for explanations.
pub fn check_format(to: To) -> anyhow::Result<()> {
    match to {
        To::Table | To::Corpus(CorpusFormat::Jsonl) => Ok(()),
        To::Tsv | To::Corpus(_) => {
            Err(errors::usage(format!("`--to {to}` cannot hold `--explain`"), "use table or jsonl"))
        }
    }
}

/// Writes why the mentions of a document have their candidates.
pub fn write(out: &mut dyn Write, document: &AnnotatedDocument, explanations: &[Explanation]) -> std::io::Result<()> {
    for (annotation, explanation) in document.annotations.iter().zip(explanations) {
        write_one(out, annotation, explanation)?;
    }
    Ok(())
}

fn write_one(out: &mut dyn Write, annotation: &Annotation, explanation: &Explanation) -> std::io::Result<()> {
    let mention = annotation.text.split_whitespace().collect::<Vec<&str>>().join(" ");
    writeln!(out, "  {mention}")?;
    for definition in &explanation.definitions {
        let (start, end) = definition.span;
        writeln!(out, "    abbreviation: {} = {} (defined at {start}..{end})", definition.short, definition.long)?;
    }
    if explanation.coordinated {
        writeln!(out, "    expanded from a coordinated phrase")?;
    }
    if let (Some(threshold), Some(best)) = (explanation.threshold, explanation.candidates.first()) {
        let compares = if best.score >= threshold { "reaches" } else { "is below" };
        writeln!(out, "    mention probability {:.2} {compares} the threshold {threshold:.2}", best.score)?;
    }
    for (row, candidate) in explanation.candidates.iter().enumerate() {
        write_candidate(out, row + 1, candidate)?;
    }
    writeln!(out)
}

fn write_candidate(out: &mut dyn Write, rank: usize, candidate: &Explained) -> std::io::Result<()> {
    let Explained { id, name, scope, score, log_odds, .. } = candidate;
    writeln!(out, "    {rank}. {id}  {score:.2}, log-odds {log_odds:+.2}")?;
    writeln!(out, "       name \"{name}\" ({scope}): {}", agreement(candidate))?;
    let pairs = candidate.words.iter().filter(|pair| pair.mention != pair.name);
    let pairs: Vec<String> = pairs.map(|pair| format!("{} ~ {}", pair.mention, pair.name)).collect();
    let lists = [
        ("matched words", &pairs),
        ("only in the mention", &candidate.only_in_mention),
        ("only in the name", &candidate.only_in_name),
    ];
    for (what, words) in lists.into_iter().filter(|(_, words)| !words.is_empty()) {
        writeln!(out, "       {what}: {}", words.join(", "))?;
    }
    if !candidate.behind_first.is_empty() {
        let parts: Vec<String> = candidate.behind_first.iter().map(part).collect();
        writeln!(out, "       behind the top candidate: {}", parts.join("; "))?;
        return Ok(());
    }
    let (shown, rest) = candidate.contributions.split_at(candidate.contributions.len().min(N_SHOWN));
    for one in shown {
        writeln!(out, "       {}", part(one))?;
    }
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|one| one.log_odds).sum();
        writeln!(out, "       {sum:+.2} {} more", rest.len())?;
    }
    Ok(())
}

fn part(one: &Contribution) -> String {
    let Contribution { sentence, value, log_odds, .. } = one;
    // A flag says all by its sentence.
    match *value == 1.0 {
        true => format!("{log_odds:+.2} {sentence}"),
        false => format!("{log_odds:+.2} {sentence} ({value:.2})"),
    }
}

fn agreement(candidate: &Explained) -> &'static str {
    match candidate.how {
        Agreement::Exact => "exact match",
        Agreement::Fold => "match except for case, accents and punctuation",
        Agreement::Canonical => "match except for spelling and inflection",
        Agreement::Root if candidate.words.iter().any(is_other_word) => "synonymous words",
        Agreement::Root => "same word stems",
        Agreement::NGram => "similar spelling (n-grams)",
    }
}

/// Whether a word answers to one for the same thing, `renal` to `kidney`, rather than to one derived from it.
fn is_other_word(pair: &WordPair) -> bool {
    let start = |word: &str| word.chars().take(3).collect::<String>();
    pair.how == Agreement::Root && start(&pair.mention) != start(&pair.name)
}
