//! Pre-training on terminologies: concepts described by their names and definitions (section 3.3 of the paper).

use std::ops::Range;
use std::path::Path;

use canonym_core::kb::KnowledgeBase;
use rayon::prelude::*;

use crate::models::generative::text::{Coder, marked, plain_name};
use crate::objectives::generative::{Examples, GenerativeExample};
use crate::recipes::sources::{TerminologyConfig, compile_terminology};
use crate::tensor::random::{SplitMix64, shuffle};

/// Most names in a context.
const CONTEXT_NAMES: usize = 3;

/// The concepts of terminologies that have a definition or several names.
#[derive(Debug, Default)]
pub struct Terms {
    names: Vec<String>,
    definitions: Vec<String>,
    concepts: Vec<TermConcept>,
    /// Concept and name that is written in each example.
    targets: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct TermConcept {
    names: Range<u32>,
    definition: Option<u32>,
}

impl Terms {
    /// Reads terminologies; `out` is a folder for temporary files.
    pub fn read(terminologies: &[TerminologyConfig], root: &Path, out: &Path) -> canonym_core::Result<Terms> {
        let mut terms = Terms::default();
        let file = out.join("pretraining.kb");
        for terminology in terminologies {
            let kb = compile_terminology(terminology, root, &file)?;
            terms.add(&kb);
            drop(kb);
            std::fs::remove_file(&file).map_err(|error| canonym_core::Error::io("remove", &file, error))?;
        }
        Ok(terms)
    }

    fn add(&mut self, kb: &KnowledgeBase) {
        for concept in kb.concepts() {
            let first = self.names.len() as u32;
            let mut names: Vec<String> = Vec::new();
            for name in kb.names(concept) {
                let name = plain_name(kb.name(name));
                if !name.is_empty() && !names.contains(&name) {
                    names.push(name);
                }
            }
            let definition = kb.definition(concept).map(str::trim).filter(|definition| !definition.is_empty());
            if names.is_empty() || (names.len() < 2 && definition.is_none()) {
                continue;
            }
            let number = self.concepts.len() as u32;
            self.targets.extend((first..first + names.len() as u32).map(|name| (number, name)));
            self.names.append(&mut names);
            let definition = definition.map(|definition| {
                self.definitions.push(definition.to_lowercase());
                self.definitions.len() as u32 - 1
            });
            self.concepts.push(TermConcept { names: first..self.names.len() as u32, definition });
        }
    }

    /// Number of concepts.
    pub fn n_concepts(&self) -> usize {
        self.concepts.len()
    }

    /// Names and definitions.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.names.iter().chain(&self.definitions).map(String::as_str)
    }

    /// The words of an example: the source, whether its end matters most, the mention and the name to write.
    fn written(&self, at: usize, rng: &mut SplitMix64) -> (String, bool, &str, &str) {
        let (concept, target) = self.targets[at];
        let TermConcept { names, definition } = &self.concepts[concept as usize];
        let mut others: Vec<u32> = names.clone().filter(|name| *name != target).collect();
        shuffle(&mut others, rng);
        let of = |name: u32| self.names[name as usize].as_str();
        let mention = others.first().map_or_else(|| of(target), |name| of(*name));
        let (form, mark) = (rng.below(4), marked(mention));
        let (before, after) = match definition {
            Some(definition) => {
                let text = self.definitions[*definition as usize].as_str();
                let phrases = ["is defined as", "is described as", "are the definitions of", "describe"];
                (form < 2, (text.to_owned(), phrases[form]))
            }
            None => {
                // The mention may be one of the names around it, as in the published code.
                shuffle(&mut others, rng);
                let around: Vec<&str> = others.iter().take(CONTEXT_NAMES).map(|name| of(*name)).collect();
                let phrases = [
                    "are the synonyms of",
                    "indicate the same concept as",
                    "has synonyms, such as",
                    "refers to the same concept as",
                ];
                (form >= 2, (around.join(", "), phrases[form]))
            }
        };
        let (context, phrase) = after;
        let source = match before {
            true => format!("{mark} {phrase} {context}"),
            false => format!("{context} {phrase} {mark}"),
        };
        (source, !before, mention, of(target))
    }
}

/// Examples of terminologies for a model.
pub struct TermExamples<'a> {
    terms: &'a Terms,
    coder: &'a Coder,
    /// Targets that the model can write.
    written: Vec<u32>,
}

impl<'a> TermExamples<'a> {
    /// Every name that the model can write is a target.
    pub fn new(terms: &'a Terms, coder: &'a Coder) -> TermExamples<'a> {
        let is_written = |(_, name): &(u32, u32)| coder.name(&terms.names[*name as usize]).is_some();
        let is_written: Vec<bool> = terms.targets.par_iter().map(is_written).collect();
        let written = (0..terms.targets.len() as u32).filter(|at| is_written[*at as usize]).collect();
        TermExamples { terms, coder, written }
    }
}

impl Examples for TermExamples<'_> {
    fn n_examples(&self) -> usize {
        self.written.len()
    }

    fn example(&self, at: usize, rng: &mut SplitMix64) -> GenerativeExample {
        let (source, keep_end, mention, target) = self.terms.written(self.written[at] as usize, rng);
        GenerativeExample {
            source: self.coder.source(&source, keep_end),
            prompt: self.coder.prompt(mention),
            target: self.coder.name(target).expect("targets can be written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        let folder = tempfile::tempdir().unwrap();
        let lines = [
            r#"{"id": "1", "name": "Gout", "synonyms": ["podagra", "Gouty arthritis"]}"#,
            r#"{"id": "2", "name": "Rickets", "definition": "Soft bones of Children."}"#,
            r#"{"id": "3", "name": "Only a name"}"#,
        ];
        std::fs::write(folder.path().join("terms.jsonl"), lines.join("\n")).unwrap();
        let config = TerminologyConfig { path: "terms.jsonl".into(), format: "jsonl".to_owned(), prefix: None };
        Terms::read(&[config], folder.path(), folder.path()).unwrap()
    }

    #[test]
    fn every_name_of_a_described_concept_is_written_from_another_one_in_one_of_four_forms() {
        let terms = terms();
        assert_eq!((terms.n_concepts(), terms.targets.len()), (2, 4));
        let mut rng = SplitMix64::new(1);
        let (mut sources, mut ends) = (std::collections::BTreeSet::new(), 0);
        for _ in 0..100 {
            let (source, keep_end, mention, target) = terms.written(0, &mut rng);
            assert!(target == "gout" && ["podagra", "gouty arthritis"].contains(&mention), "{source}");
            assert!(source.contains(&format!("START {mention} END")) && !source.contains("gout,"), "{source}");
            ends += usize::from(keep_end && source.ends_with("END"));
            sources.insert(source);
        }
        assert!(sources.len() >= 8 && ends > 20, "{sources:?}");
        for _ in 0..20 {
            let (source, _, mention, target) = terms.written(3, &mut rng);
            assert_eq!((mention, target), ("rickets", "rickets"));
            assert!(source.contains("soft bones of children."), "{source}");
        }
    }
}
