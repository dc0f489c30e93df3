//! Contexts of mentions: negated, possible, historical, hypothetical, or about a relative. The rules of
//! [`canonym_core::text::context`] predict them, and people correct them.

use canonym_core::corpus::Attribute;
use canonym_core::text::analysis::Analysis;
use canonym_core::text::context::{Contexts, EXPERIENCER, NEGATION, TEMPORALITY};
use canonym_core::text::{Document, Section, Span};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A context of a mention. A plain statement about the patient at present has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MentionContext {
    /// Absent.
    Negated,
    /// Suspected or in question.
    Possible,
    /// In the past history of the patient.
    Historical,
    /// In the possible future.
    Hypothetical,
    /// A relative has it.
    Family,
}

impl MentionContext {
    const ALL: [MentionContext; 5] = [
        MentionContext::Negated,
        MentionContext::Possible,
        MentionContext::Historical,
        MentionContext::Hypothetical,
        MentionContext::Family,
    ];

    /// Name and value of its attribute in files. Contexts of one name exclude each other.
    pub fn attribute(self) -> (&'static str, &'static str) {
        match self {
            MentionContext::Negated => (NEGATION, "negated"),
            MentionContext::Possible => (NEGATION, "possible"),
            MentionContext::Historical => (TEMPORALITY, "historical"),
            MentionContext::Hypothetical => (TEMPORALITY, "hypothetical"),
            MentionContext::Family => (EXPERIENCER, "family"),
        }
    }

    fn read(name: &str, value: &str) -> Option<MentionContext> {
        MentionContext::ALL.into_iter().find(|one| one.attribute() == (name, value))
    }
}

/// The contexts among attributes, in order.
pub fn from_attributes<'a>(attributes: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<MentionContext> {
    let mut contexts: Vec<MentionContext> =
        attributes.filter_map(|(name, value)| MentionContext::read(name, value)).collect();
    contexts.sort_unstable();
    contexts.dedup();
    contexts
}

/// Makes the attributes of an annotation those of `contexts`, unless they already are.
pub fn set_attributes(attributes: &mut Vec<Attribute>, contexts: &[MentionContext]) {
    let pairs = attributes.iter().map(|one| (one.name.as_str(), one.value.as_str()));
    if from_attributes(pairs) == contexts {
        return;
    }
    attributes.retain(|one| MentionContext::read(&one.name, &one.value).is_none());
    attributes.extend(contexts.iter().map(|one| {
        let (name, value) = one.attribute();
        Attribute { name: name.to_owned(), value: value.to_owned() }
    }));
}

/// The contexts that the rules find for a mention.
pub fn predict(text: &str, sections: Vec<Section>, spans: &[Span]) -> Vec<MentionContext> {
    let document = Document { id: String::new(), text: text.to_owned(), sections };
    from_attributes(Contexts::new(&Analysis::new(&document)).of(spans).attributes())
}

/// Sorted contexts without repetitions; `None` if two of them exclude each other.
pub fn checked(contexts: &[MentionContext]) -> Option<Vec<MentionContext>> {
    let mut contexts = contexts.to_vec();
    contexts.sort_unstable();
    contexts.dedup();
    let excludes = |pair: &[MentionContext]| pair[0].attribute().0 == pair[1].attribute().0;
    // Those of one name are neighbours.
    (!contexts.windows(2).any(excludes)).then_some(contexts)
}

#[cfg(test)]
mod tests {
    use super::MentionContext::*;
    use super::*;

    #[test]
    fn contexts_are_attributes_in_files() {
        let attribute = |name: &str, value: &str| Attribute { name: name.to_owned(), value: value.to_owned() };
        let mut attributes = vec![attribute("negation", "negated"), attribute("grade", "2")];
        set_attributes(&mut attributes, &[Negated]);
        assert_eq!(attributes[0], attribute("negation", "negated"));
        set_attributes(&mut attributes, &[Historical, Family]);
        let expected =
            [attribute("grade", "2"), attribute("temporality", "historical"), attribute("experiencer", "family")];
        assert_eq!(attributes, expected);
    }

    #[test]
    fn rules_predict_contexts() {
        let text = "Denies fever. Her mother had asthma.";
        let of = |words: &str| {
            let start = text.find(words).unwrap();
            predict(text, Vec::new(), &[Span::new(start, start + words.len())])
        };
        assert_eq!((of("fever"), of("asthma")), (vec![Negated], vec![Family]));
    }

    #[test]
    fn contexts_of_one_kind_exclude_each_other() {
        assert_eq!(checked(&[Family, Negated, Family]), Some(vec![Negated, Family]));
        assert_eq!(checked(&[Negated, Possible]), None);
        assert_eq!(checked(&[Hypothetical, Historical]), None);
    }
}
