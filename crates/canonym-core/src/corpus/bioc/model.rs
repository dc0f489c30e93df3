//! Data model of a BioC collection.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Names and values in source order. Values are strings in XML; JSON allows any value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::corpus) struct Infons(pub Vec<(String, Value)>);

/// The part of a collection before its documents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::corpus) struct Collection {
    pub source: String,
    pub date: String,
    pub key: String,
    pub infons: Infons,
    /// XML declaration and document type with their line ends; empty for JSON.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prolog: String,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::corpus) struct BiocDocument {
    #[serde(deserialize_with = "text_or_number")]
    pub id: String,
    pub infons: Infons,
    pub passages: Vec<Passage>,
    pub annotations: Vec<BiocAnnotation>,
    pub relations: Vec<BiocRelation>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A passage, or a sentence of a passage (which has no sentences itself).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::corpus) struct Passage {
    pub offset: u64,
    #[serde(default)]
    pub infons: Infons,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentences: Option<Vec<Passage>>,
    #[serde(default)]
    pub annotations: Vec<BiocAnnotation>,
    #[serde(default)]
    pub relations: Vec<BiocRelation>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::corpus) struct BiocAnnotation {
    #[serde(deserialize_with = "text_or_number")]
    pub id: String,
    pub infons: Infons,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub locations: Vec<Location>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
    /// Line in the file; 0 if unknown.
    #[serde(skip)]
    pub line: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::corpus) struct Location {
    pub offset: u64,
    pub length: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::corpus) struct BiocRelation {
    #[serde(deserialize_with = "text_or_number")]
    pub id: String,
    pub infons: Infons,
    pub nodes: Vec<Node>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::corpus) struct Node {
    #[serde(deserialize_with = "text_or_number")]
    pub refid: String,
    #[serde(deserialize_with = "text_or_number")]
    pub role: String,
}

/// Layout of an XML file, in the respects in which BioC writers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::corpus) struct Layout {
    /// Whether each element has its own line.
    pub lines: bool,
    /// Indentation per level in spaces.
    pub indent: usize,
    /// Whether infon keys are in single quotes.
    pub single_infon: bool,
    /// Whether ids of annotations and relations are in single quotes.
    pub single_id: bool,
    /// Whether attributes of locations and nodes are in single quotes.
    pub single_place: bool,
    /// Whether there is a space before the slash of an empty element.
    pub space: bool,
    /// Whether quotation marks in text are escaped.
    pub quotes: bool,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            lines: true,
            indent: 2,
            single_infon: false,
            single_id: false,
            single_place: false,
            space: false,
            quotes: false,
        }
    }
}

/// The source of a document, kept in its residue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::corpus) struct Kept {
    /// The collection; only with its first document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<Collection>,
    /// The layout, if the source was XML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    pub document: BiocDocument,
}

impl Infons {
    /// Appends a string value.
    pub fn push(&mut self, key: &str, value: &str) {
        self.0.push((key.to_owned(), Value::from(value)));
    }

    /// The first string value with that name.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).and_then(|(_, value)| value.as_str())
    }
}

/// A value as a string for XML and attributes; `None` for null.
pub(in crate::corpus) fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        value @ (Value::Null | Value::String(_) | Value::Number(_)) => Ok(value_text(&value).unwrap_or_default()),
        _ => Err(serde::de::Error::custom("an id must be a string or a number")),
    }
}

impl Serialize for Infons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Infons {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Infons, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Infons;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of infons")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Infons, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Infons(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
