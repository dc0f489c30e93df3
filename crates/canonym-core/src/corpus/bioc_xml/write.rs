//! Writes BioC elements in the layout of a file.

use serde_json::Value;

use crate::corpus::bioc::{BiocAnnotation, BiocDocument, BiocRelation, Collection, Infons, Layout, Passage};

/// Writes indented elements to `out`.
struct Emitter<'a> {
    out: &'a mut Vec<u8>,
    layout: Layout,
    depth: usize,
}

/// Writes the start of a collection, up to its first document.
pub(super) fn head(head: &Collection, layout: Layout, out: &mut Vec<u8>) {
    out.extend_from_slice(head.prolog.as_bytes());
    let mut emitter = Emitter { out, layout, depth: 0 };
    emitter.open("collection");
    for (tag, text) in [("source", &head.source), ("date", &head.date), ("key", &head.key)] {
        emitter.leaf(tag, text);
    }
    emitter.infons(&head.infons);
}

/// Writes a document.
pub(super) fn document(bioc: &BiocDocument, layout: Layout, out: &mut Vec<u8>) {
    let mut emitter = Emitter { out, layout, depth: 1 };
    emitter.open("document");
    emitter.leaf("id", &bioc.id);
    emitter.infons(&bioc.infons);
    bioc.passages.iter().for_each(|passage| emitter.passage("passage", passage));
    bioc.annotations.iter().for_each(|annotation| emitter.annotation(annotation));
    bioc.relations.iter().for_each(|relation| emitter.relation(relation));
    emitter.close("document");
}

impl Emitter<'_> {
    fn passage(&mut self, tag: &str, passage: &Passage) {
        self.open(tag);
        self.infons(&passage.infons);
        self.leaf("offset", &passage.offset.to_string());
        if let Some(text) = &passage.text {
            self.leaf("text", text);
        }
        let sentences = passage.sentences.as_deref().unwrap_or_default();
        sentences.iter().for_each(|sentence| self.passage("sentence", sentence));
        passage.annotations.iter().for_each(|annotation| self.annotation(annotation));
        passage.relations.iter().for_each(|relation| self.relation(relation));
        self.close(tag);
    }

    fn annotation(&mut self, annotation: &BiocAnnotation) {
        self.open_with_id("annotation", &annotation.id);
        self.infons(&annotation.infons);
        for location in &annotation.locations {
            self.empty_element(
                "location",
                [("offset", &location.offset.to_string()), ("length", &location.length.to_string())],
            );
        }
        if let Some(text) = &annotation.text {
            self.leaf("text", text);
        }
        self.close("annotation");
    }

    fn relation(&mut self, relation: &BiocRelation) {
        self.open_with_id("relation", &relation.id);
        self.infons(&relation.infons);
        for node in &relation.nodes {
            self.empty_element("node", [("refid", &node.refid), ("role", &node.role)]);
        }
        self.close("relation");
    }

    fn infons(&mut self, infons: &Infons) {
        for (key, value) in &infons.0 {
            self.start_line();
            self.put("<infon key=");
            self.attribute_value(key, self.layout.single_infon);
            self.put(">");
            match value {
                Value::String(text) => self.text(text),
                Value::Null => {}
                other => self.text(&other.to_string()),
            }
            self.put("</infon>");
            self.end_line();
        }
    }

    fn open(&mut self, tag: &str) {
        self.open_with_id(tag, "");
    }

    fn open_with_id(&mut self, tag: &str, id: &str) {
        self.start_line();
        self.put("<");
        self.put(tag);
        if !id.is_empty() {
            self.put(" id=");
            self.attribute_value(id, self.layout.single_id);
        }
        self.put(">");
        self.end_line();
        self.depth += 1;
    }

    fn close(&mut self, tag: &str) {
        self.depth -= 1;
        self.start_line();
        self.put("</");
        self.put(tag);
        self.put(">");
        self.end_line();
    }

    fn leaf(&mut self, tag: &str, text: &str) {
        self.start_line();
        self.put("<");
        self.put(tag);
        self.put(">");
        self.text(text);
        self.put("</");
        self.put(tag);
        self.put(">");
        self.end_line();
    }

    fn empty_element(&mut self, tag: &str, attributes: [(&str, &str); 2]) {
        self.start_line();
        self.put("<");
        self.put(tag);
        for (name, value) in attributes {
            self.put(" ");
            self.put(name);
            self.put("=");
            self.attribute_value(value, self.layout.single_place);
        }
        self.put(if self.layout.space { " />" } else { "/>" });
        self.end_line();
    }

    fn start_line(&mut self) {
        if self.layout.lines {
            self.out.extend(std::iter::repeat_n(b' ', self.depth * self.layout.indent));
        }
    }

    fn end_line(&mut self) {
        if self.layout.lines {
            self.put("\n");
        }
    }

    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, text: &str) {
        escape(text, self.layout.quotes, false, self.out);
    }

    fn attribute_value(&mut self, value: &str, single: bool) {
        let mark = if single { b'\'' } else { b'"' };
        self.out.push(mark);
        escape(value, true, true, self.out);
        self.out.push(mark);
    }
}

/// Appends `text` with markup escaped. Characters that are invalid in XML become spaces.
pub(in crate::corpus) fn escape(text: &str, quotes: bool, attribute: bool, out: &mut Vec<u8>) {
    let mut bytes = [0; 4];
    for c in text.chars() {
        let reference = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' if quotes => "&quot;",
            '\'' if quotes => "&apos;",
            '\r' => "&#13;",
            '\n' if attribute => "&#10;",
            '\t' if attribute => "&#9;",
            '\n' | '\t' => c.encode_utf8(&mut bytes),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => " ",
            _ => c.encode_utf8(&mut bytes),
        };
        out.extend_from_slice(reference.as_bytes());
    }
}
