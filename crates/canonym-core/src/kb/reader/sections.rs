//! Sections that some files have and others lack.

use std::ops::Range;

use crate::Result;
use crate::artifact::Container;
use crate::index::grams::N_GRAMS;

/// Sections of the forms.
#[derive(Debug)]
pub(super) enum FormSections {
    Whole {
        at: Range<usize>,
        text: Range<usize>,
        token_at: Range<usize>,
        token_row: Range<usize>,
    },
    /// Of large files, from format 4 on.
    Words(Box<WordSections>),
}

/// Sections of the words of forms.
#[derive(Debug)]
pub(super) struct WordSections {
    pub at: Range<usize>,
    pub text: Range<usize>,
    pub df: Range<usize>,
    pub token: Range<usize>,
    pub norms: Range<usize>,
    pub form_at: Range<usize>,
    pub form_gaps: Range<usize>,
    pub sequence_at: Range<usize>,
    pub sequence_row: Range<usize>,
}

impl FormSections {
    pub fn of(container: &Container) -> Result<FormSections> {
        let range = |name: &str| container.range(name);
        if let Ok(at) = range("word.at") {
            return Ok(FormSections::Words(Box::new(WordSections {
                at,
                text: range("word.text")?,
                df: range("word.df")?,
                token: range("word.token")?,
                norms: range("word.norms")?,
                form_at: range("word.form.at")?,
                form_gaps: range("word.form.gaps")?,
                sequence_at: range("form.word.at")?,
                sequence_row: range("form.word.row")?,
            })));
        }
        let (token_at, token_row) = (range("form.token.at")?, range("form.token.row")?);
        Ok(FormSections::Whole { at: range("form.at")?, text: range("form.text")?, token_at, token_row })
    }

    /// Whether the sections have consistent lengths, given how many items a section of offsets has.
    pub fn is_consistent(&self, n_forms: usize, n_items: impl Fn(&Range<usize>, usize) -> usize) -> bool {
        match self {
            FormSections::Whole { at, token_at, .. } => {
                n_items(at, n_forms) == n_forms && n_items(token_at, n_forms) == n_forms
            }
            FormSections::Words(words) => {
                let n = words.df.len() / 4;
                words.df.len() == 4 * n
                    && words.token.len() == 4 * n
                    && words.norms.len() == 4 * n
                    && n_items(&words.at, n) == n
                    && n_items(&words.form_at, n) == n
                    && n_items(&words.sequence_at, n_forms) == n_forms
            }
        }
    }
}

/// Sections of the posting lists of character n-grams.
#[derive(Debug)]
pub(super) enum Grams {
    Gaps {
        codes: Range<usize>,
        df: Range<usize>,
        at: Range<usize>,
        gaps: Range<usize>,
    },
    /// Of files from earlier versions.
    Rows {
        at: Range<usize>,
        rows: Range<usize>,
    },
}

impl Grams {
    pub fn of(container: &Container) -> Result<Grams> {
        let range = |name: &str| container.range(name);
        if let Ok(at) = range("gram.at") {
            return Ok(Grams::Rows { at, rows: range("gram.rows")? });
        }
        let (codes, df) = (range("gram.codes")?, range("gram.df")?);
        Ok(Grams::Gaps { codes, df, at: range("gram.gaps.at")?, gaps: range("gram.gaps")? })
    }

    /// Whether the sections have consistent lengths.
    pub fn is_consistent(&self) -> bool {
        match self {
            Grams::Gaps { codes, df, at, .. } => codes.len() == df.len() && at.len() == codes.len() * 2 + 8,
            Grams::Rows { at, .. } => at.len() == 4 * (N_GRAMS + 1),
        }
    }
}

/// Sections of the cross-references; missing in files of format 1.
#[derive(Debug)]
pub(super) struct Xrefs {
    pub at: Range<usize>,
    pub text: Range<usize>,
    pub concept: Range<usize>,
    pub predicate: Range<usize>,
    pub of_at: Range<usize>,
    pub of_row: Range<usize>,
}

impl Xrefs {
    pub fn of(container: &Container) -> Result<Option<Xrefs>> {
        if container.format() < 2 {
            return Ok(None);
        }
        let range = |name: &str| container.range(name);
        let (at, text, concept) = (range("xref.at")?, range("xref.text")?, range("xref.concept")?);
        let (predicate, of_at, of_row) = (range("xref.predicate")?, range("xref.of.at")?, range("xref.of.row")?);
        Ok(Some(Xrefs { at, text, concept, predicate, of_at, of_row }))
    }

    /// Whether the sections have consistent lengths, given how many items a section of offsets has.
    pub fn is_consistent(&self, n_concepts: usize, n_items: impl Fn(&Range<usize>, usize) -> usize) -> bool {
        let n = self.predicate.len();
        n_items(&self.at, n) == n && self.concept.len() == 4 * n && n_items(&self.of_at, n_concepts) == n_concepts
    }
}
