//! A comparison of two systems as text: measures with their significance, and changes in context.

use std::collections::HashMap;
use std::fmt::Write;

use super::compare::{Change, ChangeKind, Comparison, SystemAnswer};
use super::significance::Difference;
use super::table::percent;
use crate::corpus::AnnotatedDocument;
use crate::numbers::counted;

/// Characters of context on either side of a mention.
const CONTEXT: usize = 40;

impl Comparison {
    /// The comparison as a text table, with up to `limit` changes per kind; `texts` are those of [`texts_of`].
    pub fn table(&self, texts: &HashMap<&str, String>, limit: usize) -> String {
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{}", text.trim_end()).expect("a string takes every write");
        let documents = counted(self.n_documents, "document");
        line(format!("{documents}, {} with a concept", counted(self.n_gold, "gold mention")));
        line(String::new());
        line(format!(
            "{:<30} {:>7} {:>7} {:>10} {:>16} {:>11} {:>11}",
            "", "A", "B", "B - A", "95% of B - A", "bootstrap p", "random. p"
        ));
        for (name, difference) in &self.measures {
            line(row(name, difference));
        }
        line(String::new());
        line(format!(
            "McNemar test on correct mentions: {} won, {} lost, {}",
            self.mcnemar.n_won,
            self.mcnemar.n_lost,
            p_value(self.mcnemar.p)
        ));
        line(format!("both correct: {}; same error: {}", self.n_both_right, self.n_same_wrong));
        for kind in ChangeKind::ALL {
            let n = self.n_changes.get(&kind).copied().unwrap_or_default();
            if n == 0 {
                continue;
            }
            line(String::new());
            let shown = self.changes.iter().filter(|change| change.kind == kind).take(limit);
            let hidden = if n > limit as u64 { format!(", first {limit} shown") } else { String::new() };
            line(format!("{}: {n}{hidden}", kind.name()));
            for change in shown {
                line(format!("  {}  {}", change.document, context(change, texts)));
                let predictions = [("A", &change.first), ("B", &change.second)]
                    .map(|(label, prediction)| format!("{label}: {}", describe(prediction)));
                let gold = if change.gold.is_empty() { String::new() } else { format!("gold: {}   ", change.gold) };
                line(format!("      {gold}{}", predictions.join("   ")));
            }
        }
        out
    }
}

/// The text of each document id; different texts of one id are joined, matching their offsets.
pub fn texts_of(documents: &[AnnotatedDocument]) -> HashMap<&str, String> {
    let mut parts: HashMap<&str, Vec<&str>> = HashMap::new();
    for document in documents {
        let known = parts.entry(&document.document.id).or_default();
        if !known.contains(&document.document.text.as_str()) {
            known.push(&document.document.text);
        }
    }
    parts.into_iter().map(|(id, parts)| (id, parts.join("\n"))).collect()
}

fn row(name: &str, one: &Difference) -> String {
    let signed = |fraction: f64| format!("{}{}", if fraction < 0.0 { "-" } else { "+" }, percent(fraction.abs()));
    let interval = one.ci.map_or_else(String::new, |ci| format!("{} {}", signed(ci.0), signed(ci.1)));
    let p = |value: Option<f64>| value.map_or_else(String::new, |p| format!("{p:.4}"));
    format!(
        "{name:<30} {:>7} {:>7} {:>10} {interval:>16} {:>11} {:>11}",
        percent(one.first),
        percent(one.second),
        signed(one.difference),
        p(one.p_bootstrap),
        p(one.p_randomisation)
    )
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

fn describe(prediction: &SystemAnswer) -> String {
    if prediction.ids.is_empty() {
        return "no link".to_owned();
    }
    let name = if prediction.name.is_empty() { String::new() } else { format!(" ({})", prediction.name) };
    let place = if prediction.text.is_empty() { String::new() } else { format!(" on \"{}\"", prediction.text) };
    format!("{}{name}{place}", prediction.ids)
}

/// The mention in brackets, with context.
fn context(change: &Change, texts: &HashMap<&str, String>) -> String {
    let text = texts.get(change.document.as_str());
    let (Some(text), Some(first), Some(last)) = (text, change.spans.first(), change.spans.last()) else {
        return format!("[{}]", change.text);
    };
    let (start, end) = (first.0 as usize, last.1 as usize);
    let part = |from: usize, to: usize| -> String {
        let letters = text.chars().skip(from).take(to.saturating_sub(from));
        letters.map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
    };
    let (before, after) = (part(start.saturating_sub(CONTEXT), start), part(end, end + CONTEXT));
    format!("{}[{}]{}", before.trim_start(), part(start, end), after.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_puts_the_mention_in_brackets() {
        let text = "Résumé: a β-cell tumour\nin two cases.".to_owned();
        let texts = HashMap::from([("7", text)]);
        let change = Change {
            kind: ChangeKind::Won,
            document: "7".to_owned(),
            spans: vec![(10, 23)],
            text: "β-cell tumour".to_owned(),
            gold: "D1".to_owned(),
            first: SystemAnswer::default(),
            second: SystemAnswer::default(),
        };
        assert_eq!(context(&change, &texts), "Résumé: a [β-cell tumour] in two cases.");
        assert_eq!(context(&change, &HashMap::new()), "[β-cell tumour]");
    }
}
