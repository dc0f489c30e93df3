//! SNOMED CT Release Format 2: a folder, zip archive or files; Snapshot or Full.
//!
//! From a Full release, the latest version of each component is read; a Delta is rejected. Only active rows are
//! imported. The preferred name is the preferred synonym in the language reference set. The fully specified name is a
//! synonym without its semantic tag (the last parentheses), which is the type. Parents come from inferred is-a
//! relationships. Memory holds a table of concepts, the language reference sets and the fully specified names; other
//! names are emitted as they are read, in records that the builder merges.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;

use super::rf2_tables::{self, Release, Row, Table};
use super::rrf_rows::same_language;
use super::{ImportConfig, Report, Sink};
use crate::input::Source;
use crate::kb::{ConceptRecord, NameRecord, Scope};
use crate::{Error, Result};

const FULLY_SPECIFIED_NAME: u64 = 900000000000003001;
const SYNONYM: u64 = 900000000000013009;
const PREFERRED: u64 = 900000000000548007;
const ACCEPTABLE: u64 = 900000000000549004;
const IS_A: u64 = 116680003;
const INFERRED: u64 = 900000000000011006;
const REFSET_US: u64 = 900000000000509007;
const REFSET_GB: u64 = 900000000000508004;

/// Maximum number of consecutive parents of a concept that are combined into one record.
const MAX_PARENTS: usize = 1 << 10;

/// Maximum number of semantic tags; a release has about fifty.
const MAX_TAGS: usize = 1000;

/// Rank of a reference set that was not requested but can hold preferred names of a requested language.
const ANY_REFSET: u8 = u8::MAX - 1;

/// The files of a release in a folder and its subfolders.
pub fn folder(path: &Path) -> Result<Vec<Source>> {
    rf2_tables::folder(path)
}

/// Reads the tables of `sources`. The report counts concepts as read.
pub fn read(sources: &[Source], config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let release = Release::choose(sources, report)?;
    if !release.has(Table::Description) {
        let error = Error::no_data("no sct2_Description file found");
        return Err(error.with_hint("use the zip file or folder of a SNOMED CT release"));
    }
    let languages = Languages::new(&config.languages)?;
    let choices = Choices::read(&release, &languages, report)?;
    let mut import = Import {
        prefix: config.prefix.as_deref().unwrap_or("SNOMEDCT"),
        config,
        languages,
        choices,
        concepts: HashMap::new(),
        specified: Specified::default(),
        tags: Vec::new(),
    };
    import.read_concepts(&release, report)?;
    import.read_specified_names(&release, report)?;
    import.choose_types(report);
    import.read_synonyms(&release, report, sink)?;
    import.hand_on_specified_names(report, sink)?;
    import.read_definitions(&release, report, sink)?;
    import.read_parents(&release, report, sink)
}

/// Requested languages and reference sets, in order of preference.
struct Languages {
    /// Languages as two- or three-letter codes; all languages if a reference set was requested by id.
    codes: Vec<String>,
    any: bool,
    /// Reference sets by rank. If `strict`, names in none of them are dropped.
    refsets: Vec<u64>,
    strict: bool,
}

impl Languages {
    fn new(wanted: &[String]) -> Result<Languages> {
        let mut languages = Languages { codes: Vec::new(), any: false, refsets: Vec::new(), strict: false };
        let english = ["en".to_owned()];
        for word in if wanted.is_empty() { &english[..] } else { wanted } {
            let lower = word.to_ascii_lowercase();
            let letters = (2..=3).contains(&lower.len()) && lower.bytes().all(|byte| byte.is_ascii_lowercase());
            match lower.as_str() {
                "en-us" | "en-gb" => {
                    languages.codes.push("en".to_owned());
                    languages.refsets.push(if lower == "en-us" { REFSET_US } else { REFSET_GB });
                    languages.strict = true;
                }
                "en" | "eng" => {
                    languages.codes.push("en".to_owned());
                    languages.refsets.extend([REFSET_US, REFSET_GB]);
                }
                digits if digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let id = digits.parse();
                    languages.refsets.push(id.map_err(|_| Error::invalid(format!("`{word}` is not an id")))?);
                    languages.any = true;
                    languages.strict = true;
                }
                _ if letters => languages.codes.push(lower),
                _ => {
                    let error =
                        Error::not_found(format!("`{word}` is neither a language nor a language reference set"));
                    return Err(error.with_hint("use en, en-US, en-GB, another language, or the id of a reference set"));
                }
            }
        }
        // For a language without a dialect, names need not be in a reference set.
        languages.strict &= wanted.iter().all(|word| word.len() > 3);
        Ok(languages)
    }

    fn rank(&self, refset: u64) -> u8 {
        let index = self.refsets.iter().position(|wanted| *wanted == refset);
        index.map_or(ANY_REFSET, |index| index.min(usize::from(ANY_REFSET)) as u8)
    }

    fn wants(&self, code: &str) -> bool {
        self.any || self.codes.iter().any(|wanted| wanted == code || same_language(wanted, code))
    }
}

/// For each description, the best reference set that contains it and the best in which it is preferred.
struct Choices {
    ranks: HashMap<u64, (u8, u8)>,
    /// Whether the release has language reference sets.
    known: bool,
}

impl Choices {
    fn read(release: &Release<'_>, languages: &Languages, report: &mut Report) -> Result<Choices> {
        let mut choices = Choices { ranks: HashMap::new(), known: release.has(Table::Language) };
        if !choices.known && languages.strict {
            let error = Error::no_data("the release has no language reference set");
            return Err(error.with_hint("add der2_cRefset_Language…, or use the language `en`"));
        }
        let mut n_inactive = 0;
        let n_older = release.each(Table::Language, |row: Row<'_, 7>| {
            let (refset, description, acceptability) = (row.id(4)?, row.id(5)?, row.id(6)?);
            if !row.active()? {
                n_inactive += 1;
                return Ok(());
            }
            let rank = languages.rank(refset);
            let (accepted, preferred) = choices.ranks.entry(description).or_insert((u8::MAX, u8::MAX));
            *accepted = rank.min(*accepted);
            match acceptability {
                PREFERRED => *preferred = rank.min(*preferred),
                ACCEPTABLE => {}
                other => return Err(row.error(format!("{other} is neither preferred nor acceptable"))),
            }
            Ok(())
        })?;
        report.drop_many("language choice", "inactive", n_inactive);
        report.drop_many("language choice", "older version", n_older);
        Ok(choices)
    }

    /// Ranks of the best reference set that contains a description and of the best in which it is preferred;
    /// [`u8::MAX`] if none.
    fn of(&self, description: u64) -> (u8, u8) {
        self.ranks.get(&description).copied().unwrap_or((u8::MAX, u8::MAX))
    }
}

/// State of a concept while names are read.
struct Concept {
    /// Rank of the best reference set with a preferred name of the concept.
    preferred: u8,
    /// Row of its tag, from 1; 0 means none.
    tag: u16,
    wanted: bool,
    named: Cell<bool>,
}

/// Fully specified names, concatenated in file order.
#[derive(Default)]
struct Specified {
    text: String,
    rows: Vec<(u64, usize)>,
}

struct Import<'a> {
    prefix: &'a str,
    config: &'a ImportConfig,
    languages: Languages,
    choices: Choices,
    concepts: HashMap<u64, Concept>,
    specified: Specified,
    tags: Vec<String>,
}

impl Import<'_> {
    fn read_concepts(&mut self, release: &Release<'_>, report: &mut Report) -> Result<()> {
        let mut n_inactive = 0;
        let mut n_read = 0;
        let n_older = release.each(Table::Concept, |row: Row<'_, 5>| {
            n_read += 1;
            let id = row.id(0)?;
            if row.active()? || self.config.keep_obsolete {
                self.concepts.insert(id, Concept { preferred: u8::MAX, tag: 0, wanted: true, named: Cell::new(false) });
            } else {
                n_inactive += 1;
            }
            Ok(())
        })?;
        report.n_read += n_read;
        report.drop_many("concept", "inactive", n_inactive);
        report.drop_many("concept", "older version", n_older);
        Ok(())
    }

    /// Reads the fully specified names, and records which reference set has a preferred synonym of each concept.
    fn read_specified_names(&mut self, release: &Release<'_>, report: &mut Report) -> Result<()> {
        release.each(Table::Description, |row: Row<'_, 9>| {
            if !row.active()? {
                return Ok(());
            }
            let (description, concept, kind) = (row.id(0)?, row.id(4)?, row.id(6)?);
            let Some(concept_row) = self.concepts.get_mut(&concept) else { return Ok(()) };
            let (accepted, preferred) = self.choices.of(description);
            if !self.languages.wants(row.cells[5]) {
                return Ok(());
            }
            if kind == SYNONYM {
                concept_row.preferred = preferred.min(concept_row.preferred);
            }
            if kind != FULLY_SPECIFIED_NAME {
                return Ok(());
            }
            let (name, tag) = split_tag(row.cells[7].trim());
            if let Some(tag) = tag {
                let known = self.tags.iter().position(|known| known == tag).unwrap_or(self.tags.len());
                if known == MAX_TAGS {
                    return Err(row.error(format!("more than {MAX_TAGS} semantic tags")));
                }
                if known == self.tags.len() {
                    self.tags.push(tag.to_owned());
                }
                concept_row.tag = known as u16 + 1;
            }
            if self.languages.strict && accepted >= ANY_REFSET {
                report.drop_one("fully specified name", "not in the language reference set");
            } else if !name.is_empty() {
                self.specified.text.push_str(name);
                self.specified.rows.push((concept, self.specified.text.len()));
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Drops concepts without a requested type.
    fn choose_types(&mut self, report: &mut Report) {
        if self.config.semantic_types.is_empty() {
            return;
        }
        let wanted: Vec<bool> = self.tags.iter().map(|tag| self.config.semantic_types.contains(tag)).collect();
        let mut n_unwanted = 0;
        for concept in self.concepts.values_mut() {
            let typed = usize::from(concept.tag).checked_sub(1);
            concept.wanted = typed.is_some_and(|row| wanted[row]);
            n_unwanted += u64::from(!concept.wanted);
        }
        report.drop_many("concept", "semantic type", n_unwanted);
    }

    fn wanted(&self, concept: u64) -> Option<&Concept> {
        self.concepts.get(&concept).filter(|concept| concept.wanted)
    }

    fn read_synonyms(&mut self, release: &Release<'_>, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut drops = [0u64; DESCRIPTION_DROPS.len()];
        let n_older = release.each(Table::Description, |row: Row<'_, 9>| {
            let (description, concept, kind) = (row.id(0)?, row.id(4)?, row.id(6)?);
            let (accepted, preferred) = self.choices.of(description);
            let text = row.cells[7].trim();
            let drop = match self.wanted(concept) {
                _ if !row.active()? => 0,
                None => 1,
                _ if !self.languages.wants(row.cells[5]) => 2,
                _ if kind == FULLY_SPECIFIED_NAME => return Ok(()),
                _ if kind != SYNONYM => 3,
                _ if self.languages.strict && accepted >= ANY_REFSET => 4,
                _ if text.is_empty() => 5,
                Some(known) => {
                    known.named.set(true);
                    let best = preferred < u8::MAX && preferred == known.preferred;
                    let scope = if best { Scope::Preferred } else { Scope::Exact };
                    let names = vec![NameRecord { text: text.to_owned(), scope }];
                    return sink(ConceptRecord { names, ..self.part(concept) });
                }
            };
            drops[drop] += 1;
            Ok(())
        })?;
        for (reason, n) in DESCRIPTION_DROPS.iter().zip(drops) {
            report.drop_many("name", reason, n);
        }
        report.drop_many("name", "older version", n_older);
        Ok(())
    }

    fn hand_on_specified_names(&self, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut start = 0;
        for (concept, end) in &self.specified.rows {
            let text = &self.specified.text[start..*end];
            start = *end;
            let Some(known) = self.wanted(*concept) else {
                report.drop_one("fully specified name", "of a dropped concept");
                continue;
            };
            known.named.set(true);
            let scope = if known.preferred == u8::MAX { Scope::Preferred } else { Scope::Exact };
            let names = vec![NameRecord { text: text.to_owned(), scope }];
            let types = usize::from(known.tag).checked_sub(1).map(|row| self.tags[row].clone());
            sink(ConceptRecord { names, types: types.into_iter().collect(), ..self.part(*concept) })?;
        }
        let n_nameless = self.concepts.values().filter(|concept| concept.wanted && !concept.named.get()).count();
        report.drop_many("concept", "no name", n_nameless as u64);
        Ok(())
    }

    fn read_definitions(&self, release: &Release<'_>, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut n_dropped = [0; 3];
        let n_older = release.each(Table::TextDefinition, |row: Row<'_, 9>| {
            let concept = row.id(4)?;
            if !row.active()? {
                n_dropped[0] += 1;
            } else if self.wanted(concept).is_none() {
                n_dropped[1] += 1;
            } else if !self.languages.wants(row.cells[5]) {
                n_dropped[2] += 1;
            } else {
                let definition = Some(row.cells[7].trim().to_owned());
                return sink(ConceptRecord { definition, ..self.part(concept) });
            }
            Ok(())
        })?;
        for (reason, n) in DESCRIPTION_DROPS.iter().zip(n_dropped) {
            report.drop_many("definition", reason, n);
        }
        report.drop_many("definition", "older version", n_older);
        Ok(())
    }

    fn read_parents(&self, release: &Release<'_>, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        const REASONS: [&str; 5] = ["inactive", "not is-a", "not inferred", "of a dropped concept", "self-reference"];
        let mut drops = [0u64; REASONS.len()];
        let mut open: Option<(u64, ConceptRecord)> = None;
        let n_older = release.each(Table::Relationship, |row: Row<'_, 10>| {
            let (child, parent, kind, characteristic) = (row.id(4)?, row.id(5)?, row.id(7)?, row.id(8)?);
            let drop = match () {
                () if !row.active()? => 0,
                () if kind != IS_A => 1,
                () if characteristic != INFERRED => 2,
                () if self.wanted(child).is_none() || self.wanted(parent).is_none() => 3,
                () if child == parent => 4,
                () => {
                    let id = self.id(parent);
                    return match &mut open {
                        Some((same, record)) if *same == child && record.parents.len() < MAX_PARENTS => {
                            record.parents.push(id);
                            Ok(())
                        }
                        _ => {
                            let record = ConceptRecord { parents: vec![id], ..self.part(child) };
                            open.replace((child, record)).map_or(Ok(()), |(_, finished)| sink(finished))
                        }
                    };
                }
            };
            drops[drop] += 1;
            Ok(())
        })?;
        for (reason, n) in REASONS.iter().zip(drops) {
            report.drop_many("relation", reason, n);
        }
        report.drop_many("relation", "older version", n_older);
        open.map_or(Ok(()), |(_, finished)| sink(finished))
    }

    fn id(&self, concept: u64) -> String {
        format!("{}:{concept}", self.prefix)
    }

    /// A record with only the id.
    fn part(&self, concept: u64) -> ConceptRecord {
        ConceptRecord { id: self.id(concept), ..ConceptRecord::default() }
    }
}

/// Reasons for dropping a description.
const DESCRIPTION_DROPS: [&str; 6] =
    ["inactive", "of a dropped concept", "language", "of another type", "not in the language reference set", "empty"];

/// Splits a fully specified name into name and semantic tag: `Asthma (disorder)`.
fn split_tag(name: &str) -> (&str, Option<&str>) {
    let tagged = name.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    match tagged {
        Some((text, tag)) if !text.trim().is_empty() && !tag.trim().is_empty() && !tag.contains(')') => {
            (text.trim_end(), Some(tag.trim()))
        }
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_what_the_last_parentheses_hold() {
        assert_eq!(split_tag("Asthma (disorder)"), ("Asthma", Some("disorder")));
        assert_eq!(split_tag("Pain (at rest) (finding)"), ("Pain (at rest)", Some("finding")));
        assert_eq!(split_tag("Vitamin B(12)"), ("Vitamin B(12)", None));
        assert_eq!(split_tag("(disorder)"), ("(disorder)", None));
        assert_eq!(split_tag(""), ("", None));
    }

    #[test]
    fn dialects_are_reference_sets() {
        let languages = |words: &[&str]| Languages::new(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        let plain = languages(&[]).unwrap();
        assert_eq!((plain.rank(REFSET_US), plain.rank(REFSET_GB), plain.strict), (0, 1, false));
        let british = languages(&["en-GB"]).unwrap();
        assert_eq!((british.rank(REFSET_GB), british.rank(REFSET_US), british.strict), (0, ANY_REFSET, true));
        assert!(british.wants("en") && !british.wants("es"));
        assert!(languages(&["900000000000508004"]).unwrap().wants("es"));
        assert!(!languages(&["en-GB", "es"]).unwrap().strict);
        assert!(languages(&["english"]).is_err());
    }
}
