//! HTML builder: elements are always closed, text is always escaped; and number formatting.

/// Markup that is well-formed whenever no element is open.
#[derive(Debug, Default)]
pub(super) struct Markup {
    // Private, because only the methods below, which escape their arguments, may write to it.
    text: String,
}

/// Elements that start on a new line, for a readable source.
const BLOCKS: [&str; 29] = [
    "html", "head", "body", "meta", "title", "style", "script", "header", "main", "nav", "section", "article", "div",
    "p", "h1", "h2", "h3", "table", "thead", "tbody", "tr", "caption", "dl", "ul", "ol", "li", "details", "summary",
    "svg",
];

impl Markup {
    /// Returns the page.
    pub(super) fn finish(self) -> String {
        self.text + "\n"
    }

    /// An element with the content written by `content`; `tag` may include a class, as in `td.number`.
    pub(super) fn element(&mut self, tag: &str, attributes: &[(&str, &str)], content: impl FnOnce(&mut Markup)) {
        let name = self.start(tag, attributes);
        self.text.push('>');
        content(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// An element that contains only text.
    pub(super) fn leaf(&mut self, tag: &str, attributes: &[(&str, &str)], text: &str) {
        self.element(tag, attributes, |out| out.text(text));
    }

    /// An element without content.
    pub(super) fn void(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.start(tag, attributes);
        self.text.push_str(" />");
    }

    /// Escaped text.
    pub(super) fn text(&mut self, text: &str) {
        escape_into(text, &mut self.text);
    }

    /// Static markup, not escaped.
    pub(super) fn trusted(&mut self, markup: &'static str) {
        self.text.push_str(markup);
    }

    fn start<'a>(&mut self, tag: &'a str, attributes: &[(&str, &str)]) -> &'a str {
        let (name, class) = tag.split_once('.').unwrap_or((tag, ""));
        if BLOCKS.contains(&name) && !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push('<');
        self.text.push_str(name);
        let class = (!class.is_empty()).then_some(("class", class));
        for (key, value) in class.iter().chain(attributes) {
            self.text.push(' ');
            self.text.push_str(key);
            self.text.push_str("=\"");
            escape_into(value, &mut self.text);
            self.text.push('"');
        }
        name
    }
}

/// Appends `text` escaped for content and quoted attributes; characters that are invalid in XML are replaced.
fn escape_into(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
}

/// A share in percent with `digits` decimals.
pub(super) fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::*;

    #[test]
    fn elements_close_and_texts_are_escaped() {
        let mut out = Markup::default();
        out.element("td.number", &[("title", "\"><script>")], |out| {
            out.leaf("b", &[], "<script>alert('x') & more</script>");
            out.void("br", &[]);
        });
        let expected = "<td class=\"number\" title=\"&quot;&gt;&lt;script&gt;\"><b>&lt;script&gt;alert(&#39;x&#39;) &amp; more\
                        &lt;/script&gt;</b><br /></td>\n";
        assert_eq!(out.finish(), expected);
    }

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0, 999, 1000, 1_234_567].map(crate::eval::thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([percent(0.716, 1), percent(1.0, 0), percent(0.0, 2)], ["71.6", "100", "0.00"]);
    }

    proptest! {
        #[test]
        fn any_text_is_escaped(text in "\\PC*|.*|[\u{0}-\u{20}<>&\"']*") {
            let mut out = Markup::default();
            out.leaf("p", &[("title", &text)], &text);
            let page = out.finish();
            let mut reader = Reader::from_str(&page);
            let mut n_starts = 0;
            loop {
                match reader.read_event().expect("the page is well-formed") {
                    Event::Start(_) => n_starts += 1,
                    Event::Eof => break,
                    _ => {}
                }
            }
            prop_assert_eq!(n_starts, 1);
        }
    }
}
