//! Renders an evaluation report as an HTML page.
//!
//! The page is self-contained: it loads no resources and is readable without its script, which only filters examples.
//! It is well-formed XML, all text is escaped, and the output is deterministic. Its size is bounded by the number of
//! examples and rows in the [`ErrorAnalysis`].

mod examples;
mod markup;
mod plots;
mod sections;

use super::curves::Curves;
use super::errors::ErrorAnalysis;
use super::report::Report;
use markup::Markup;

/// Maximum number of rows of each list; the analysis may contain more.
const MAX_ROWS: usize = 30;

/// The content of a page.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The scores.
    pub report: &'a Report,
    /// The error analysis, if texts are available.
    pub errors: Option<&'a ErrorAnalysis>,
    /// Risk-coverage curve and calibration, if predictions have scores.
    pub curves: Option<&'a Curves>,
    /// Labels and values that describe the evaluation: files, model, mode.
    pub facts: &'a [(String, String)],
}

/// Renders the page.
pub fn page(page: &Page<'_>) -> String {
    let mut out = Markup::default();
    out.trusted("<!DOCTYPE html>\n");
    out.element("html", &[("lang", "en")], |out| {
        out.element("head", &[], |out| head(out, page));
        out.element("body", &[], |out| body(out, page));
    });
    out.finish()
}

/// Title of the page: system and corpus of the report.
fn title(report: &Report) -> String {
    let corpus: Vec<&str> =
        [&report.dataset, &report.split].into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    match (corpus.join(" "), report.system.as_str()) {
        (corpus, "") if corpus.is_empty() => "Evaluation".to_owned(),
        (corpus, "") => corpus,
        (corpus, system) if corpus.is_empty() => system.to_owned(),
        (corpus, system) => format!("{system} on {corpus}"),
    }
}

fn head(out: &mut Markup, page: &Page<'_>) {
    out.void("meta", &[("charset", "utf-8")]);
    // The content security policy forbids loading anything.
    let policy = include_str!("html/policy.txt").trim_end();
    out.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", policy)]);
    out.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    out.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    out.leaf("title", &[], &format!("{} — evaluation report", title(page.report)));
    out.element("style", &[], |out| out.trusted(include_str!("html/style.css")));
}

/// A section of the page: anchor, title in the table of contents, and renderer.
type Section<'a> = (&'static str, &'static str, Box<dyn Fn(&mut Markup) + 'a>);

fn body(out: &mut Markup, page: &Page<'_>) {
    let report = page.report;
    let mut parts: Vec<Section<'_>> = Vec::new();
    if !report.metrics.is_empty() {
        parts.push(("measures", "Measures", Box::new(|out| sections::measures(out, report))));
    }
    if !report.by_type.is_empty() {
        parts.push(("types", "Types", Box::new(|out| sections::types(out, report))));
    }
    if let Some(ranking) = &report.ranking {
        parts.push(("ranking", "Ranking", Box::new(|out| sections::ranking(out, ranking, &report.policy))));
    }
    if let Some(curves) = page.curves.filter(|curves| curves.n_answered > 0) {
        parts.push(("confidence", "Confidence", Box::new(|out| sections::confidence(out, curves))));
    }
    if let Some(errors) = page.errors {
        if !errors.confusions.is_empty() {
            parts.push(("confusions", "Confusions", Box::new(|out| sections::confusions(out, errors))));
        }
        if !errors.missed_surfaces.is_empty() || !errors.spurious_surfaces.is_empty() {
            parts.push(("surfaces", "Texts", Box::new(|out| sections::surfaces(out, errors))));
        }
        if !errors.examples.is_empty() {
            parts.push(("examples", "Examples", Box::new(|out| examples::section(out, errors))));
        }
    }
    parts.push(("rules", "Rules", Box::new(|out| sections::rules(out, page))));

    out.leaf("a.skip", &[("href", "#main")], "Skip to the figures");
    out.element("header.masthead", &[], |out| sections::masthead(out, page, &title(report)));
    out.element("main", &[("id", "main")], |out| {
        sections::headline(out, page);
        out.element("nav", &[("aria-label", "Contents")], |out| {
            for (anchor, label, _) in &parts {
                out.leaf("a", &[("href", &format!("#{anchor}"))], label);
            }
        });
        for (anchor, _, write) in &parts {
            out.element("section", &[("id", anchor)], write);
        }
    });
    out.element("script", &[], |out| out.trusted(include_str!("html/script.js")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_contain_known_fields() {
        let check = |system: &str, dataset: &str, split: &str| {
            title(&Report { system: system.into(), dataset: dataset.into(), split: split.into(), ..Report::default() })
        };
        assert_eq!(check("", "", ""), "Evaluation");
        assert_eq!(check("", "Shapes", "dev"), "Shapes dev");
        assert_eq!(check("lexical", "Shapes", ""), "lexical on Shapes");
        assert_eq!(check("lexical", "", ""), "lexical");
    }

    #[test]
    fn style_and_script_need_no_escapes() {
        for text in [include_str!("html/style.css"), include_str!("html/script.js")] {
            assert!(!text.contains(['<', '&']) && !text.contains("url("), "it stands in the page as it is");
        }
    }
}
