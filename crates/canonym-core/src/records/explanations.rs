//! Explanations of links as text.

use std::io::Write;

use crate::corpus::{AnnotatedDocument, Annotation};
use crate::link::explain::{Agreement, Contribution, Explained, Explanation, WordPair};

/// Maximum number of contributions listed; the rest is summed.
const N_SHOWN: usize = 6;

/// Writes the explanation of each mention of a document.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, document: &AnnotatedDocument, explanations: &[Explanation]) -> std::io::Result<()> {
    for (annotation, explanation) in document.annotations.iter().zip(explanations) {
        write_one(out, annotation, explanation)?;
    }
    Ok(())
}

fn write_one(out: &mut dyn Write, annotation: &Annotation, explanation: &Explanation) -> std::io::Result<()> {
    let mention = annotation.text.split_whitespace().collect::<Vec<&str>>().join(" ");
    writeln!(out, "  {mention}")?;
    if let Some(form) = &explanation.sense_of {
        writeln!(
            out,
            "    \"{form}\" is a known short form or word; in this context it is read as \"{}\"",
            explanation.compared
        )?;
    }
    for definition in &explanation.definitions {
        let (start, end) = definition.span;
        writeln!(out, "    abbreviation: {} = {} (defined at {start}..{end})", definition.short, definition.long)?;
    }
    if explanation.coordinated {
        writeln!(out, "    expanded from a coordinated phrase")?;
    }
    if let (Some(threshold), Some(best)) = (explanation.threshold, explanation.candidates.first()) {
        let compares = if best.score >= threshold { "reaches" } else { "is below" };
        writeln!(out, "    score {:.2} {compares} the threshold {threshold:.2}", best.score)?;
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
    // The value of a flag adds nothing to its sentence.
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
        Agreement::Root if candidate.words.iter().any(are_synonyms) => "synonymous words",
        Agreement::Root => "same word stems",
        Agreement::NGram => "similar spelling (n-grams)",
    }
}

/// Whether the words are synonyms, such as `renal` and `kidney`, and not merely derived from the same stem.
fn are_synonyms(pair: &WordPair) -> bool {
    let start = |word: &str| word.chars().take(3).collect::<String>();
    pair.how == Agreement::Root && start(&pair.mention) != start(&pair.name)
}
