//! Examples in context: the sentence with the gold mention underlined and the prediction highlighted, and the concepts
//! of both.

use std::collections::BTreeSet;

use super::markup::Markup;
use super::sections::concept;
use crate::eval::errors::{Case, CaseSide, ErrorAnalysis, ErrorClass, Example};
use crate::eval::thousands;

pub(super) fn section(out: &mut Markup, errors: &ErrorAnalysis) {
    out.leaf("h2", &[], "Examples");
    out.element("p", &[], |out| {
        out.text("Gold mentions are ");
        out.leaf("u.gold", &[], "underlined");
        out.text(", predictions ");
        out.leaf("mark.predicted", &[], "highlighted");
        out.text(". Cases with the same text and concepts are grouped, most frequent first.");
    });
    let shown: Vec<(&Example, &Case)> =
        errors.examples.iter().filter_map(|example| Some((example, errors.cases.get(example.case)?))).collect();
    filter(out, &shown);
    for count in errors.classes.iter().filter(|count| count.class != ErrorClass::Correct) {
        let in_class: Vec<&(&Example, &Case)> = shown.iter().filter(|(_, case)| case.class == count.class).collect();
        if in_class.is_empty() {
            continue;
        }
        out.element("details", &[("class", "group"), ("id", count.class.name())], |out| {
            out.element("summary", &[], |out| {
                out.leaf("b", &[], count.class.title());
                let n_covered: u64 = in_class.iter().map(|(example, _)| example.n_alike).sum();
                let (n_shown, n_cases) = (thousands(in_class.len() as u64), thousands(count.n_cases));
                let text = format!(" — {n_cases} cases; {n_shown} examples cover {} of them", thousands(n_covered));
                out.leaf("span.soft", &[], &text);
            });
            out.element("p", &[], |out| {
                out.text(count.class.meaning());
                let reasons: Vec<String> =
                    count.reasons.iter().map(|known| format!("{}: {}", known.reason, thousands(known.n))).collect();
                if !reasons.is_empty() {
                    out.text(&format!(" Reasons: {}.", reasons.join("; ")));
                }
            });
            for (example, case) in in_class {
                write(out, example, case);
            }
        });
    }
}

/// The filter form, shown by the script.
fn filter(out: &mut Markup, shown: &[(&Example, &Case)]) {
    let classes: BTreeSet<ErrorClass> = shown.iter().map(|(_, case)| case.class).collect();
    let types: BTreeSet<&str> = shown.iter().flat_map(|(_, case)| case.types()).map(String::as_str).collect();
    out.element("form", &[("class", "filter"), ("hidden", "hidden"), ("role", "search")], |out| {
        out.element("label", &[], |out| {
            out.text("Search text, ids and names");
            out.void("input", &[("type", "search"), ("name", "search"), ("autocomplete", "off")]);
        });
        let classes = classes.into_iter().map(|class| (class.name(), class.title()));
        select(out, "kind", "Class", "all classes", classes);
        if types.len() > 1 {
            select(out, "type", "Type", "all types", types.into_iter().map(|kind| (kind, kind)));
        }
        out.leaf("button", &[("type", "reset")], "Clear");
        out.leaf("output", &[("aria-live", "polite")], "");
    });
}

fn select<'a>(out: &mut Markup, name: &str, label: &str, all: &str, options: impl Iterator<Item = (&'a str, &'a str)>) {
    out.element("label", &[], |out| {
        out.text(label);
        out.element("select", &[("name", name)], |out| {
            out.leaf("option", &[("value", "")], all);
            for (value, text) in options {
                out.leaf("option", &[("value", value)], text);
            }
        });
    });
}

fn write(out: &mut Markup, example: &Example, case: &Case) {
    let types = case.types().join("|");
    let attributes = [("class", "example"), ("data-kind", case.class.name()), ("data-types", types.as_str())];
    out.element("article", &attributes, |out| {
        out.element("p.context", &[("dir", "auto")], |out| context(out, example, case));
        out.element("dl", &[], |out| {
            if let Some(gold) = &case.gold {
                row(out, "Gold", |out| side(out, gold));
            }
            if let Some(predicted) = &case.predicted {
                row(out, "Predicted", |out| side(out, predicted));
            }
            if case.candidates.len() > 1 {
                row(out, "Candidates", |out| candidates(out, case));
            }
        });
        out.leaf("p.origin", &[], &origin(example, case));
    });
}

fn row(out: &mut Markup, label: &str, content: impl FnOnce(&mut Markup)) {
    out.leaf("dt", &[], label);
    out.element("dd", &[], content);
}

fn side(out: &mut Markup, side: &CaseSide) {
    match side.ids.is_empty() {
        true => out.leaf("span.soft", &[], "unlinked"),
        false => concept(out, &side.ids, &side.names),
    }
    let mut more = side.types.clone();
    more.extend(side.score.map(|score| format!("score {score:.2}")));
    if !more.is_empty() {
        out.leaf("span.soft", &[], &format!(" · {}", more.join(" · ")));
    }
}

fn candidates(out: &mut Markup, case: &Case) {
    out.element("ol", &[], |out| {
        for candidate in &case.candidates {
            out.element("li", &[], |out| {
                let name = if candidate.name.is_empty() { &candidate.id } else { &candidate.name };
                match candidate.is_gold {
                    true => out.leaf("b", &[("title", "the gold concept")], name),
                    false => out.text(name),
                }
                out.text(&format!(" {:.2}", candidate.score));
            });
        }
        if let Some(rank) = case.gold_rank.filter(|&rank| rank > case.candidates.len() as u64) {
            out.leaf("li", &[], &format!("… gold at rank {rank}"));
        }
    });
}

fn origin(example: &Example, case: &Case) -> String {
    let spans = case.gold.as_ref().or(case.predicted.as_ref()).map_or(&[][..], |side| &side.spans);
    let offsets: Vec<String> = spans.iter().map(|(start, end)| format!("{start}–{end}")).collect();
    let mut parts = vec![format!("Document {}, {}", case.document, offsets.join(" + "))];
    if !case.reason.is_empty() {
        parts.push(case.reason.clone());
    }
    if example.n_alike > 1 {
        parts.push(format!("{} similar", thousands(example.n_alike)));
    }
    parts.join(" · ")
}

/// The text with its marks; a position in both spans has both marks.
fn context(out: &mut Markup, example: &Example, case: &Case) {
    let context = &example.context;
    let spans_of = |side: &Option<CaseSide>| side.as_ref().map_or_else(Vec::new, |side| side.spans.clone());
    let (gold, predicted) = (spans_of(&case.gold), spans_of(&case.predicted));
    let inside = |spans: &[(u32, u32)], offset: u32| spans.iter().any(|&(start, end)| start <= offset && offset < end);
    let marks = |offset: u32| (inside(&gold, offset), inside(&predicted, offset));
    if context.cut_before {
        out.text("… ");
    }
    let mut piece = String::new();
    let mut current = (false, false);
    for (offset, letter) in (context.start..).zip(context.text.chars()) {
        let here = marks(offset);
        if here != current {
            write_piece(out, &piece, current.0, current.1);
            piece.clear();
            current = here;
        }
        piece.push(letter);
    }
    write_piece(out, &piece, current.0, current.1);
    if context.cut_after {
        out.text(" …");
    }
}

fn write_piece(out: &mut Markup, piece: &str, gold: bool, predicted: bool) {
    let underlined = |out: &mut Markup| match gold {
        true => out.leaf("u.gold", &[("title", "gold")], piece),
        false => out.text(piece),
    };
    match (piece.is_empty(), predicted) {
        (true, _) => {}
        (false, true) => out.element("mark.predicted", &[("title", "predicted")], underlined),
        (false, false) => underlined(out),
    }
}
