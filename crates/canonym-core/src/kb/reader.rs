//! An opened knowledge base, read directly from the mapped file.

mod sections;

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use self::sections::{FormSections, Grams, WordSections, Xrefs};
use super::format::{KIND, Meta};
use super::lexicon::literal_start;
use super::record::Scope;
use super::xref::{Predicate, Xref};
use crate::artifact::{Container, IN_MEMORY};
use crate::index::forms::{FormTokens, Forms, WordForms};
use crate::index::grams::{self, GramIndexView, Lists};
use crate::index::keys::KeyTableView;
use crate::index::packed::{Lengths, Offsets, Strings, U32s, U64s};
use crate::index::words::{NameSearch, WordIndexView};
use crate::{Error, Result};

/// A concept of one knowledge base: its index in id order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConceptId(pub u32);

/// A name of one knowledge base: its index in concept order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// A form (distinct folded name) of one knowledge base: its index in sorted order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FormId(pub u32);

macro_rules! sections {
    ($($field:ident = $name:literal),* $(,)?) => {
        #[derive(Debug)]
        struct Sections { $($field: Range<usize>),* }
        impl Sections {
            fn of(container: &Container) -> Result<Sections> {
                Ok(Sections { $($field: container.range($name)?),* })
            }
        }
    };
}

sections! {
    meta = "meta", id_at = "id.at", id_text = "id.text", concept_names = "concept.names",
    name_at = "name.at", name_text = "name.text", name_scope = "name.scope", name_form = "name.form",
    type_at = "type.at", type_row = "type.row", def_at = "def.at", def_text = "def.text",
    parent_at = "parent.at", parent_row = "parent.row", source_row = "source.row",
    alt_at = "alt.at", alt_text = "alt.text", alt_concept = "alt.concept",
    alt_of_at = "alt.of.at", alt_of_row = "alt.of.row",
    form_name_at = "form.name.at", form_name_row = "form.name.row",
    vocab_hash = "vocab.hash", vocab_root = "vocab.root", vocab_df = "vocab.df", root_hash = "root.hash",
    key_buckets = "key.buckets", key_checks = "key.checks", key_rows = "key.rows",
    root_buckets = "root.buckets", root_checks = "root.checks", root_rows = "root.rows",
    gram_norms = "gram.norms",
}

/// An opened knowledge base.
#[derive(Debug)]
pub struct KnowledgeBase {
    container: Container,
    sections: Sections,
    forms: FormSections,
    grams: Grams,
    /// Missing in files of earlier versions.
    literal_start: Option<Range<usize>>,
    /// Whether offsets are stored as lengths: from format 3 on.
    has_lengths: bool,
    xrefs: Option<Xrefs>,
    meta: Meta,
    is_shared: bool,
    /// Computed by the first search by n-grams.
    norm_bounds: OnceLock<Box<[u8]>>,
    word_norm_bounds: OnceLock<Box<[u8]>>,
}

impl KnowledgeBase {
    /// Opens the compiled file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<KnowledgeBase> {
        KnowledgeBase::from_container(Container::open(path.as_ref(), KIND)?)
    }

    /// Like [`KnowledgeBase::open`]; only files larger than `in_memory` bytes are mapped.
    pub fn open_up_to(in_memory: u64, path: &Path) -> Result<KnowledgeBase> {
        KnowledgeBase::from_container(Container::open_up_to(in_memory, path, KIND)?)
    }

    /// Like [`KnowledgeBase::open`], but a large file is verified only once: see [`Container::open_verified_once`].
    pub fn open_verified_once(path: &Path, notes: Option<&Path>) -> Result<KnowledgeBase> {
        KnowledgeBase::from_container(Container::open_verified_once(IN_MEMORY, path, KIND, notes)?)
    }

    /// Like [`KnowledgeBase::open_verified_once`], but the file is mapped whatever its size, so that all processes that open it share its
    /// memory. Embeddings of its names are shared in the same way. The file must not be modified in place.
    pub fn open_shared(path: &Path, notes: Option<&Path>) -> Result<KnowledgeBase> {
        let kb = KnowledgeBase::from_container(Container::open_verified_once(0, path, KIND, notes)?)?;
        Ok(KnowledgeBase { is_shared: true, ..kb })
    }

    /// Whether it was opened by [`KnowledgeBase::open_shared`].
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Opens a compiled knowledge base in memory; `label` replaces its path in errors.
    pub fn from_vec(bytes: Vec<u8>, label: &str) -> Result<KnowledgeBase> {
        KnowledgeBase::from_container(Container::from_vec(bytes, Path::new(label), KIND)?)
    }

    fn from_container(container: Container) -> Result<KnowledgeBase> {
        let sections = Sections::of(&container)?;
        let meta: Meta = serde_json::from_slice(&container.bytes()[sections.meta.clone()])
            .map_err(|error| Error::artifact(container.path(), format!("invalid metadata: {error}")))?;
        let literal_start = container.range("literal.start").ok();
        let (forms, grams, xrefs) = (FormSections::of(&container)?, Grams::of(&container)?, Xrefs::of(&container)?);
        let has_lengths = container.format() > 2;
        let kb = KnowledgeBase {
            container,
            sections,
            forms,
            grams,
            literal_start,
            has_lengths,
            xrefs,
            meta,
            is_shared: false,
            norm_bounds: OnceLock::new(),
            word_norm_bounds: OnceLock::new(),
        };
        if !kb.is_consistent() {
            return Err(Error::artifact(kb.container.path(), "its sections are inconsistent")
                .with_hint("rebuild it with `canonym kb build`"));
        }
        Ok(kb)
    }

    /// Whether the sections have consistent lengths. Their content is not checked: accessors return nothing, or
    /// something in range, for invalid numbers.
    fn is_consistent(&self) -> bool {
        let sections = &self.sections;
        let (n_concepts, n_names, n_forms) = (self.n_concepts(), self.n_names(), self.n_forms());
        let n_alternatives = self.u32s(&sections.alt_concept).len();
        let n_tokens = self.u32s(&sections.vocab_df).len();
        let offsets = [
            (&sections.id_at, n_concepts),
            (&sections.type_at, n_concepts),
            (&sections.def_at, n_concepts),
            (&sections.parent_at, n_concepts),
            (&sections.alt_of_at, n_concepts),
            (&sections.alt_at, n_alternatives),
            (&sections.name_at, n_names),
            (&sections.form_name_at, n_forms),
        ];
        let numbers = [
            (&sections.concept_names, n_concepts + 1),
            (&sections.source_row, n_concepts),
            (&sections.name_form, n_names),
            (&sections.key_rows, self.u32s(&sections.key_checks).len()),
            (&sections.root_rows, self.u32s(&sections.root_checks).len()),
            (&sections.gram_norms, n_forms),
        ];
        offsets.iter().all(|(range, n_rows)| self.offsets(range, *n_rows).len() == *n_rows)
            && numbers.iter().all(|(range, n_rows)| self.u32s(range).len() == *n_rows)
            && self.bytes(&sections.name_scope).len() == n_names
            && self.bytes(&sections.vocab_hash).len() == n_tokens * 8
            && self.bytes(&sections.vocab_root).len() == n_tokens * 8
            && self.grams.is_consistent()
            && self.forms.is_consistent(n_forms, |range, n| self.offsets(range, n).len())
            && self
                .xrefs
                .as_ref()
                .is_none_or(|xrefs| xrefs.is_consistent(n_concepts, |range, n| self.offsets(range, n).len()))
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.container.bytes()[range.clone()]
    }

    fn u32s(&self, range: &Range<usize>) -> U32s<'_> {
        U32s(self.bytes(range))
    }

    /// The `n` strings of two sections.
    fn strings(&self, at: &Range<usize>, text: &Range<usize>, n: usize) -> Strings<'_> {
        Strings { at: self.offsets(at, n), text: self.bytes(text) }
    }

    /// Where the `n` items of another section start and end.
    fn offsets(&self, range: &Range<usize>, n: usize) -> Offsets<'_> {
        match self.has_lengths {
            true => Offsets::Lengths(Lengths::new(self.bytes(range), n)),
            false => Offsets::Plain(self.u32s(range)),
        }
    }

    fn ids(&self) -> Strings<'_> {
        self.strings(&self.sections.id_at, &self.sections.id_text, self.n_concepts())
    }

    fn alternatives(&self) -> Strings<'_> {
        let n_alternatives = self.u32s(&self.sections.alt_concept).len();
        self.strings(&self.sections.alt_at, &self.sections.alt_text, n_alternatives)
    }

    fn name_texts(&self) -> Strings<'_> {
        self.strings(&self.sections.name_at, &self.sections.name_text, self.n_names())
    }

    /// Its metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The underlying file.
    pub fn container(&self) -> &Container {
        &self.container
    }

    /// Number of concepts.
    pub fn n_concepts(&self) -> usize {
        self.meta.n_concepts as usize
    }

    /// Number of names.
    pub fn n_names(&self) -> usize {
        self.meta.n_names as usize
    }

    /// Number of forms.
    pub fn n_forms(&self) -> usize {
        self.meta.n_forms as usize
    }

    /// All concepts in id order.
    pub fn concepts(&self) -> impl ExactSizeIterator<Item = ConceptId> + use<> {
        (0..self.meta.n_concepts).map(ConceptId)
    }

    /// The id as displayed, such as `MESH:D003924`.
    pub fn id(&self, concept: ConceptId) -> &str {
        self.ids().get(concept.0 as usize)
    }

    /// The id without a prefix added by the import.
    pub fn raw_id(&self, concept: ConceptId) -> String {
        let strip = |part: &str| match part.split_once(':') {
            Some((prefix, rest)) if self.meta.added_prefixes.iter().any(|added| added == prefix) => rest.to_owned(),
            _ => part.to_owned(),
        };
        let parts: Vec<String> = self.id(concept).split('|').map(strip).collect();
        parts.join("|")
    }

    /// The concept with this id or alternative id; prefixes added by the import are optional.
    pub fn find(&self, id: &str) -> Option<ConceptId> {
        let exact = |id: &str| self.ids().find(id).map(|row| ConceptId(row as u32));
        let alternative = |id: &str| {
            let alternatives = self.alternatives();
            let row = alternatives.find(id)?;
            Some(ConceptId(self.u32s(&self.sections.alt_concept).get(row)))
        };
        exact(id).or_else(|| alternative(id)).or_else(|| {
            let prefixed = |prefix: &String| format!("{prefix}:{id}");
            self.meta.added_prefixes.iter().find_map(|prefix| exact(&prefixed(prefix)))
        })
    }

    /// The names of a concept, the preferred one first.
    pub fn names(&self, concept: ConceptId) -> impl Iterator<Item = NameId> + use<> {
        let range = self.u32s(&self.sections.concept_names).range(concept.0 as usize);
        (range.start as u32..(range.end as u32).min(self.meta.n_names)).map(NameId)
    }

    /// The preferred name of a concept.
    pub fn preferred_name(&self, concept: ConceptId) -> &str {
        let first = self.u32s(&self.sections.concept_names).get(concept.0 as usize);
        self.name(NameId(first))
    }

    /// The text of a name.
    pub fn name(&self, name: NameId) -> &str {
        self.name_texts().get(name.0 as usize)
    }

    /// The scope of a name.
    pub fn scope(&self, name: NameId) -> Scope {
        match self.bytes(&self.sections.name_scope).get(name.0 as usize) {
            Some(0) => Scope::Preferred,
            Some(2) => Scope::Narrow,
            Some(3) => Scope::Broad,
            Some(4) => Scope::Related,
            _ => Scope::Exact,
        }
    }

    /// The concept of a name.
    pub fn concept_of(&self, name: NameId) -> ConceptId {
        // Names are in concept order: find the last concept whose first name is not after this one.
        let first_names = self.u32s(&self.sections.concept_names);
        let (mut low, mut high) = (0, self.n_concepts());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if first_names.get(middle) <= name.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        ConceptId(low as u32)
    }

    /// The semantic types of a concept.
    pub fn types(&self, concept: ConceptId) -> impl Iterator<Item = &str> {
        let range = self.offsets(&self.sections.type_at, self.n_concepts()).range(concept.0 as usize);
        let rows = self.u32s(&self.sections.type_row).slice(range);
        rows.iter().filter_map(|row| self.meta.types.get(row as usize)).map(String::as_str)
    }

    /// The definition of a concept.
    pub fn definition(&self, concept: ConceptId) -> Option<&str> {
        let text =
            self.strings(&self.sections.def_at, &self.sections.def_text, self.n_concepts()).get(concept.0 as usize);
        (!text.is_empty()).then_some(text)
    }

    /// The broader concepts.
    pub fn parents(&self, concept: ConceptId) -> impl Iterator<Item = ConceptId> {
        let range = self.offsets(&self.sections.parent_at, self.n_concepts()).range(concept.0 as usize);
        self.u32s(&self.sections.parent_row).slice(range).iter().map(ConceptId)
    }

    /// The broader concept at `index`, from 0; `None` past the end.
    pub fn parent_at(&self, concept: ConceptId, index: usize) -> Option<ConceptId> {
        let range = self.offsets(&self.sections.parent_at, self.n_concepts()).range(concept.0 as usize);
        let rows = self.u32s(&self.sections.parent_row).slice(range);
        (index < rows.len()).then(|| ConceptId(rows.get(index)))
    }

    /// Whether any concept has a broader concept.
    pub fn has_parents(&self) -> bool {
        !self.sections.parent_row.is_empty()
    }

    /// The alternative ids of a concept.
    pub fn alternative_ids(&self, concept: ConceptId) -> impl Iterator<Item = &str> {
        let range = self.offsets(&self.sections.alt_of_at, self.n_concepts()).range(concept.0 as usize);
        let alternatives = self.alternatives();
        self.u32s(&self.sections.alt_of_row).slice(range).iter().map(move |row| alternatives.get(row as usize))
    }

    /// All alternative ids, sorted.
    pub fn all_alternative_ids(&self) -> Strings<'_> {
        self.alternatives()
    }

    /// The cross-references of a concept, sorted by id.
    pub fn xrefs(&self, concept: ConceptId) -> impl Iterator<Item = Xref<'_>> {
        let rows = self.xrefs.as_ref().map(|xrefs| {
            let range = self.offsets(&xrefs.of_at, self.n_concepts()).range(concept.0 as usize);
            self.u32s(&xrefs.of_row).slice(range)
        });
        rows.into_iter().flat_map(|rows| rows.iter()).map(|row| self.xref_at(row as usize).0)
    }

    /// Number of cross-references.
    pub fn n_xrefs(&self) -> usize {
        self.xrefs.as_ref().map_or(0, |xrefs| xrefs.predicate.len())
    }

    /// The cross-reference at `row` of all, which are sorted by id, and its concept.
    pub fn xref_at(&self, row: usize) -> (Xref<'_>, ConceptId) {
        let Some(xrefs) = &self.xrefs else { return (Xref { id: "", predicate: Predicate::Xref }, ConceptId(0)) };
        let id = self.strings(&xrefs.at, &xrefs.text, xrefs.predicate.len()).get(row);
        let predicate = Predicate::from_byte(self.bytes(&xrefs.predicate).get(row).copied().unwrap_or(u8::MAX));
        (Xref { id, predicate }, ConceptId(self.u32s(&xrefs.concept).get(row)))
    }

    /// The concepts with a cross-reference to `id`, spelled as in the source.
    pub fn concepts_with_xref<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (ConceptId, Predicate)> + 'a {
        let first = self
            .xrefs
            .as_ref()
            .map_or(0, |xrefs| self.strings(&xrefs.at, &xrefs.text, xrefs.predicate.len()).lower_bound(id));
        let rows = (first..self.n_xrefs()).map(|row| self.xref_at(row));
        rows.take_while(move |(xref, _)| xref.id == id).map(|(xref, concept)| (concept, xref.predicate))
    }

    /// The source vocabulary of a concept; empty if the file has a single source.
    pub fn source(&self, concept: ConceptId) -> &str {
        let row = self.u32s(&self.sections.source_row).get(concept.0 as usize);
        self.meta.sources.get(row as usize).map(String::as_str).unwrap_or_default()
    }

    /// The forms, sorted.
    pub fn forms(&self) -> Forms<'_> {
        match &self.forms {
            FormSections::Whole { at, text, .. } => Forms::Whole(self.strings(at, text, self.n_forms())),
            FormSections::Words(words) => Forms::Words(self.word_forms(words)),
        }
    }

    fn words(&self, sections: &WordSections) -> Strings<'_> {
        self.strings(&sections.at, &sections.text, sections.df.len() / 4)
    }

    fn word_forms(&self, sections: &WordSections) -> WordForms<'_> {
        WordForms {
            words: self.words(sections),
            at: self.offsets(&sections.sequence_at, self.n_forms()),
            rows: self.bytes(&sections.sequence_row),
        }
    }

    /// The names that fold to a form.
    pub fn names_of_form(&self, form: FormId) -> impl Iterator<Item = NameId> {
        let range = self.offsets(&self.sections.form_name_at, self.n_forms()).range(form.0 as usize);
        self.u32s(&self.sections.form_name_row).slice(range).iter().map(NameId)
    }

    /// The form that a name folds to.
    pub fn form_of(&self, name: NameId) -> FormId {
        FormId(self.u32s(&self.sections.name_form).get(name.0 as usize))
    }

    /// The form with this folded text.
    pub fn find_form(&self, folded: &str) -> Option<FormId> {
        self.forms().find(folded).map(|row| FormId(row as u32))
    }

    /// The canonical tokens of a form in order, as rows of the vocabulary.
    #[inline]
    pub fn tokens_of_form(&self, form: FormId) -> FormTokens<'_> {
        let row = form.0 as usize;
        match &self.forms {
            FormSections::Whole { token_at, token_row, .. } => {
                let range = self.offsets(token_at, self.n_forms()).range(row);
                FormTokens::Rows(self.u32s(token_row).slice(range))
            }
            FormSections::Words(words) => {
                let rest = self.word_forms(words).sequence(row);
                FormTokens::Words { rest, tokens: self.u32s(&words.token) }
            }
        }
    }

    /// Number of canonical tokens in the vocabulary.
    pub fn n_tokens(&self) -> u32 {
        (self.bytes(&self.sections.vocab_hash).len() / size_of::<u64>()) as u32
    }

    /// Row of the canonical token with this hash in the vocabulary.
    pub fn token_row(&self, hash: u64) -> Option<u32> {
        U64s(self.bytes(&self.sections.vocab_hash)).find(hash).map(|row| row as u32)
    }

    /// Whether a name contains a token with this root.
    pub fn knows_root(&self, hash: u64) -> bool {
        U64s(self.bytes(&self.sections.root_hash)).find(hash).is_some()
    }

    /// Whether a name that is matched literally (it contains a sign such as a comma, or is long) starts with tokens of
    /// these roots.
    pub fn has_literal_start(&self, first: u64, second: u64) -> bool {
        let starts = self.literal_start.as_ref();
        starts.is_some_and(|range| U64s(self.bytes(range)).find(literal_start(first, second)).is_some())
    }

    /// Hash of a token of the vocabulary.
    pub fn token_hash_at(&self, row: u32) -> u64 {
        U64s(self.bytes(&self.sections.vocab_hash)).get(row as usize)
    }

    /// Hash of the root of a token of the vocabulary.
    pub fn token_root(&self, row: u32) -> u64 {
        U64s(self.bytes(&self.sections.vocab_root)).get(row as usize)
    }

    /// Document frequency of a token of the vocabulary: the number of forms that contain it.
    pub fn token_df(&self, row: u32) -> u32 {
        self.u32s(&self.sections.vocab_df).get(row as usize)
    }

    /// Index of the forms by the bag of their canonical tokens.
    pub fn keys(&self) -> KeyTableView<'_> {
        let sections = &self.sections;
        KeyTableView {
            buckets: self.u32s(&sections.key_buckets),
            checks: self.u32s(&sections.key_checks),
            rows: self.u32s(&sections.key_rows),
        }
    }

    /// Index of the forms by the bag of the roots of their tokens.
    pub fn roots(&self) -> KeyTableView<'_> {
        let sections = &self.sections;
        KeyTableView {
            buckets: self.u32s(&sections.root_buckets),
            checks: self.u32s(&sections.root_checks),
            rows: self.u32s(&sections.root_rows),
        }
    }

    /// Index of the forms by character n-grams.
    pub fn grams(&self) -> NameSearch<'_> {
        let lists = match &self.grams {
            Grams::Gaps { codes, df, at, gaps } => Lists::Gaps {
                codes: self.u32s(codes),
                df: self.u32s(df),
                at: U64s(self.bytes(at)),
                gaps: self.bytes(gaps),
            },
            Grams::Rows { at, rows } => Lists::Rows { at: self.u32s(at), rows: self.u32s(rows) },
        };
        let inverse_norms = self.u32s(&self.sections.gram_norms);
        let norm_bounds: &[u8] = match inverse_norms.len() {
            n if n > grams::LARGE => self.norm_bounds.get_or_init(|| grams::norm_bounds(inverse_norms)),
            _ => &[],
        };
        let n_counted = self.n_forms();
        let names = GramIndexView { lists, inverse_norms, norm_bounds, names: self.forms(), n_counted };
        let by_words = |sections: &WordSections| {
            let words = self.words(sections);
            let norms = self.u32s(&sections.norms);
            let norm_bounds = self.word_norm_bounds.get_or_init(|| grams::norm_bounds(norms));
            WordIndexView {
                words: GramIndexView { inverse_norms: norms, norm_bounds, names: Forms::Whole(words), ..names },
                names,
                sequences: self.word_forms(sections),
                df: self.u32s(&sections.df),
                at: self.offsets(&sections.form_at, words.len()),
                lists: self.bytes(&sections.form_gaps),
            }
        };
        let words = match &self.forms {
            FormSections::Whole { .. } => None,
            FormSections::Words(sections) => Some(by_words(sections)),
        };
        NameSearch { names, words }
    }
}
