use expect_test::{Expect, expect};

use super::*;

fn open(bytes: &[u8]) -> Result<XmlReader> {
    XmlReader::new(Input::from_bytes("a.xml", bytes.to_vec())?)
}

fn events(bytes: &[u8]) -> Result<String> {
    let mut xml = open(bytes)?;
    let mut shown = String::new();
    loop {
        let line = match xml.next_event()? {
            Event::Start(element) => format!("<{}{:?}", element.name(), element.attributes()?),
            Event::Text(text) => format!("{text:?}"),
            Event::Eof => return Ok(shown),
            other => format!("{other:?}"),
        };
        shown.push_str(&format!("{} {line}\n", xml.line()));
    }
}

fn check(bytes: &[u8], expect: Expect) {
    expect.assert_eq(&match events(bytes) {
        Ok(shown) => shown,
        Err(error) => format!("{error} (hint: {})", error.hint().unwrap_or("none")),
    });
}

#[test]
fn events_carry_lines_and_decoded_text() {
    check(
        "<?xml version='1.0'?><!DOCTYPE a SYSTEM 'a.dtd'>\n<a x='1&lt;2'\n y=\"β\">\n<!-- no --><b/>a &amp; &#946;<![CDATA[<x>]]>\r\n</a>\n"
            .as_bytes(),
        expect![[r#"
            1 Declaration("xml version='1.0'")
            1 Doctype("a SYSTEM 'a.dtd'")
            2 <a[("x", "1<2"), ("y", "β")]
            3 "\n"
            4 <b[]
            4 End
            4 "a "
            4 "&"
            4 " "
            4 "β"
            4 "<x>"
            4 "\n"
            5 End
        "#]],
    );
}

#[test]
fn text_of_an_element_is_read_through_its_parts() {
    let mut xml = open(b"<a><b>H<sub>2</sub>O &lt; x</b><c><d/>no</c>yes</a>").unwrap();
    xml.next_event().unwrap();
    xml.next_event().unwrap();
    assert_eq!(xml.read_text().unwrap(), "H2O < x");
    xml.next_event().unwrap();
    xml.skip_element().unwrap();
    assert!(matches!(xml.next_event().unwrap(), Event::Text("yes")));
    assert!(matches!(xml.next_event().unwrap(), Event::End));
    assert!(matches!(xml.next_event().unwrap(), Event::Eof));
}

#[test]
fn malformed_documents_are_errors_with_lines() {
    check(b"", expect!["a.xml:1: no XML element found (hint: none)"]);
    check(b"plain", expect!["a.xml:1: text outside the root element: `plain` (hint: none)"]);
    check(b"<a>\n<b>", expect!["a.xml:2: the file is truncated: 2 elements are not closed (hint: none)"]);
    check(
        b"<a>\n<b x='",
        expect![
            "a.xml:2: the file is truncated inside XML markup: attribute value not closed: `'` not found before end of input (hint: download or export the file again)"
        ],
    );
    check(
        b"<a>\n</b>",
        expect!["a.xml:2: malformed XML: ill-formed document: expected `</a>`, but `</b>` was found (hint: none)"],
    );
    check(b"<a/>\n<b/>", expect!["a.xml:2: more than one root element (hint: none)"]);
    check(
        b"<a x=1/>",
        expect![[
            r#"a.xml:1: the element `a` has a malformed attribute: position 4: attribute value must be enclosed in `"` or `'` (hint: none)"#
        ]],
    );
    check(
        b"<a>caf\xe9</a>",
        expect![
            "a.xml:1: invalid UTF-8 in the XML: cannot decode input using UTF-8: incomplete utf-8 byte sequence from index 3 (hint: convert the file to UTF-8)"
        ],
    );
    check(
        b"<a>a & b</a>",
        expect![
            "a.xml:1: malformed XML: ill-formed document: entity or character reference not closed: `;` not found before end of input (hint: none)"
        ],
    );
}

#[test]
fn entities_of_a_document_type_are_not_expanded() {
    check(
        b"<!DOCTYPE a [<!ENTITY x 'xxxxxxxx'><!ENTITY y '&x;&x;&x;'>]>\n<a>&y;</a>",
        expect![
            "a.xml:2: unknown entity `&y;` (hint: use the character itself, or a numeric reference such as `&#945;`)"
        ],
    );
    check(
        b"<a>&#0;</a>",
        expect![
            "a.xml:1: unknown entity `&#0;` (hint: use the character itself, or a numeric reference such as `&#945;`)"
        ],
    );
    check(
        b"<a x='&y;'/>",
        expect!["a.xml:1: the element `a` has a malformed attribute: at 1..2: unrecognized entity `y` (hint: none)"],
    );
}

#[test]
fn other_encodings_are_named() {
    check(
        b"<?xml version='1.0' encoding='ISO-8859-1'?><a/>",
        expect![
            "a.xml:1: the declared encoding is `ISO-8859-1`, not UTF-8 (hint: convert the file to UTF-8 and change its declaration)"
        ],
    );
    check(b"\xff\xfe<\0a\0", expect!["a.xml:1: the text is UTF-16 (hint: convert the file to UTF-8)"]);
    check(b"<\0a\0/\0>\0", expect!["a.xml:1: the text is UTF-16 (hint: convert the file to UTF-8)"]);
    assert!(events(b"\xef\xbb\xbf<?xml version='1.0' encoding='utf-8'?><a/>").is_ok());
}

#[test]
fn limits_are_kept() {
    check(
        &b"<a>".repeat(1_000_000),
        expect![
            "a.xml: line 1: elements are nested deeper than 64 (hint: check that this is the right file; if it is, split it into smaller ones)"
        ],
    );
    let mut long = b"<a>".to_vec();
    long.resize(MAX_TEXT + 10, b'x');
    check(
        &long,
        expect![
            "a.xml: an XML tag or text is longer than 67108864 bytes (hint: check that this is the right file; if it is, split it into smaller ones)"
        ],
    );
}

proptest::proptest! {
    #[test]
    fn changed_documents_never_panic(bytes in "(<a>|</a>|<b x='1'/>|&amp;|&|<|>|<!--|-->|<!\\[CDATA\\[|\\]\\]>|<\\?|\\?>|<!DOCTYPE|[a-z ]){0,20}") {
        let _ = events(bytes.as_bytes());
    }
}
