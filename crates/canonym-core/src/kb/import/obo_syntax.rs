//! Syntax of OBO lines: continuation, tags, escapes, quoted text, comments and trailing modifiers.

use crate::input::Input;
use crate::{Error, Result};

/// Maximum length of a line with its continuations, in bytes.
const MAX_CONTINUED_BYTES: usize = 64 << 20;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// `[Term]`: the type in brackets.
    Stanza(&'a str),
    /// `tag: value`, the value not unescaped.
    Clause { tag: &'a str, value: &'a str },
    /// An empty line or a comment.
    Blank,
}

/// The next line with its continuations, joined in `buffer`.
pub(super) fn next_line<'a>(input: &mut Input, buffer: &'a mut String) -> Result<Option<&'a str>> {
    buffer.clear();
    loop {
        let Some((_, line)) = input.next_line()? else {
            return Ok(if buffer.is_empty() { None } else { Some(buffer) });
        };
        if !ends_with_escape(line) {
            buffer.push_str(line);
            return Ok(Some(buffer));
        }
        buffer.push_str(&line[..line.len() - 1]);
        if buffer.len() > MAX_CONTINUED_BYTES {
            let message = format!("a continued line is longer than {MAX_CONTINUED_BYTES} bytes");
            return Err(Error::limit(input.path(), message));
        }
    }
}

fn ends_with_escape(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Parses a line. The error is the message.
pub(super) fn parse_line(line: &str) -> std::result::Result<Line<'_>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('!') {
        return Ok(Line::Blank);
    }
    if let Some(rest) = line.strip_prefix('[') {
        let Some((word, rest)) = rest.split_once(']') else {
            return Err(format!("missing `]` in `{}`", shorten(line)));
        };
        if !rest.trim().is_empty() && !rest.trim_start().starts_with('!') {
            return Err(format!("text after `[{}]`", shorten(word)));
        }
        return Ok(Line::Stanza(word.trim()));
    }
    match line.split_once(':') {
        Some((tag, value)) if !tag.trim().is_empty() => Ok(Line::Clause { tag: tag.trim(), value: value.trim() }),
        _ => Err(format!("expected `tag: value`, found `{}`", shorten(line))),
    }
}

/// The id in a clause: everything up to the first white space; only modifiers and a comment can follow.
pub(super) fn id(value: &str) -> std::result::Result<String, String> {
    let end = unescaped(value, char::is_whitespace).unwrap_or(value.len());
    let rest = value[end..].trim_start();
    if end == 0 || value.starts_with('!') {
        return Err("the id is empty".to_owned());
    }
    if !rest.is_empty() && !rest.starts_with(['{', '!']) {
        return Err(format!("text after the id `{}`", shorten(&value[..end])));
    }
    Ok(unescape(&value[..end]))
}

/// The id of a cross-reference; a description can follow.
pub(super) fn xref(value: &str) -> String {
    let end = unescaped(value, |c| c.is_whitespace() || c == '"').unwrap_or(value.len());
    unescape(&value[..end])
}

/// Unquoted text such as a name, without modifiers and comment.
///
/// `!` starts a comment only after white space, and `{…}` is a modifier only at the end and with `=`, because names
/// contain both.
pub(super) fn text(value: &str) -> String {
    let mut end = value.len();
    let mut escaped = false;
    let mut blank = true;
    for (at, c) in value.char_indices() {
        if c == '!' && blank && !escaped {
            end = at;
            break;
        }
        blank = c.is_whitespace();
        escaped = c == '\\' && !escaped;
    }
    let value = value[..end].trim_end();
    let modifiers = value.rfind(" {").filter(|&at| value.ends_with('}') && value[at..].contains("=\""));
    unescape(modifiers.map_or(value, |at| value[..at].trim_end()))
}

/// A quoted string and the rest of the value.
pub(super) fn quoted(value: &str) -> std::result::Result<(String, &str), String> {
    let Some(rest) = value.strip_prefix('"') else {
        return Err(format!("missing opening quotation mark in `{}`", shorten(value)));
    };
    let Some(end) = unescaped(rest, |c| c == '"') else {
        return Err(format!("missing closing quotation mark in `{}`", shorten(value)));
    };
    Ok((unescape(&rest[..end]), rest[end + 1..].trim_start()))
}

/// Position of the first unescaped character that matches.
fn unescaped(text: &str, wanted: impl Fn(char) -> bool) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if !escaped && wanted(c) {
            return Some(at);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

/// Resolves escapes; a trailing backslash is kept.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match characters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('W') => ' ',
            Some(other) => other,
            None => '\\',
        });
    }
    plain
}

/// The beginning of a value, for messages.
fn shorten(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escape(text: &str) -> String {
        let mut escaped = String::new();
        for c in text.chars() {
            match c {
                '\n' => escaped.push_str("\\n"),
                '\t' => escaped.push_str("\\t"),
                '"' | '\\' | ':' | ',' | '(' | ')' | '[' | ']' | '{' | '}' | '!' => escaped.extend(['\\', c]),
                _ => escaped.push(c),
            }
        }
        escaped
    }

    #[test]
    fn kinds_of_lines_are_distinguished() {
        assert_eq!(parse_line(" [Term] ! here"), Ok(Line::Stanza("Term")));
        assert_eq!(parse_line("id: X:1"), Ok(Line::Clause { tag: "id", value: "X:1" }));
        assert_eq!(parse_line("! id: X:1"), Ok(Line::Blank));
        assert_eq!(parse_line("[Term"), Err("missing `]` in `[Term`".to_owned()));
        assert_eq!(parse_line("no tag"), Err("expected `tag: value`, found `no tag`".to_owned()));
    }

    #[test]
    fn ids_end_before_modifiers_and_comments() {
        assert_eq!(id("X:1 {inferred=\"a } ! b\"} ! other"), Ok("X:1".to_owned()));
        assert_eq!(id("X\\:1\\ 2"), Ok("X:1 2".to_owned()));
        assert_eq!(id("X:1 and more"), Err("text after the id `X:1`".to_owned()));
        assert_eq!(id("! only a comment"), Err("the id is empty".to_owned()));
        assert_eq!(xref("Y:2 \"a name\""), "Y:2");
    }

    #[test]
    fn names_keep_what_is_not_a_comment() {
        assert_eq!(text("wow! cell ! comment"), "wow! cell");
        assert_eq!(text("a\\, b \\! c {x=\"y\"}"), "a, b ! c");
        assert_eq!(text("set {a, b}"), "set {a, b}");
    }

    proptest! {
        #[test]
        fn escaped_text_round_trips(text in "\\PC*") {
            prop_assert_eq!(unescape(&escape(&text)), text.clone());
            let written = format!("\"{}\" EXACT []", escape(&text));
            prop_assert_eq!(quoted(&written), Ok((text, "EXACT []")));
        }

        #[test]
        fn no_value_panics(value in any::<String>()) {
            let _ = (parse_line(&value), id(&value), xref(&value), text(&value), quoted(&value).is_ok());
        }
    }
}
