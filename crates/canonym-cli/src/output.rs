//! Human-readable output: standard output, numbers and columns.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
pub use canonym_core::numbers::{bytes, counted, singular_if_one, thousands};
use canonym_core::records::sink::Target;
use serde::Serialize;

use crate::interrupt;

/// Bytes buffered before a write.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes `text` to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = Lines::default();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Buffered standard output in whole lines: an interrupt leaves no partial line.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
}

impl Lines {
    /// Writes the first `end` bytes of the buffer.
    fn write_first(&mut self, end: usize) -> std::io::Result<()> {
        let bytes: Vec<u8> = self.buffer.drain(..end).collect();
        interrupt::whole(|| {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes).and_then(|()| out.flush())
        })
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let last = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| self.buffer.len() + at + 1);
        self.buffer.extend_from_slice(bytes);
        match last {
            Some(end) if end >= BUFFER_BYTES => self.write_first(end)?,
            _ => {}
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.write_first(self.buffer.len())
    }
}

impl Drop for Lines {
    /// Writes the rest of the buffer if the command ended with an error; a failed write has already emptied it.
    fn drop(&mut self) {
        self.flush().ok();
    }
}

/// A new file or folder at `path`, or standard output if `None`; `folder` says how to specify an output folder.
pub fn target<'a>(path: Option<&'a Path>, folder: &'a str) -> Target<'a> {
    match path {
        Some(path) => Target::Path(path),
        None => Target::Stream { out: Box::new(Lines::default()), folder },
    }
}

/// Writes `value` to standard output as indented JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(value).context("cannot write the result as JSON")? + "\n"))
}

/// Lines of a label and a value, with aligned values.
#[derive(Debug, Default)]
pub struct Sheet {
    lines: Vec<(String, String)>,
}

impl Sheet {
    /// Adds a line, unless `value` is empty.
    pub fn line(&mut self, label: &str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.lines.push((label.to_owned(), value));
        }
    }

    /// Adds a line per value, the first one with the label.
    pub fn lines(&mut self, label: &str, values: impl IntoIterator<Item = String>) {
        for (place, value) in values.into_iter().enumerate() {
            self.lines.push((if place == 0 { label.to_owned() } else { String::new() }, value));
        }
    }

    /// Adds a line per count, right-aligned.
    pub fn counts(&mut self, label: &str, counts: &[(u64, String)]) {
        let numbers: Vec<String> = counts.iter().map(|(number, _)| thousands(*number)).collect();
        let width = numbers.iter().map(String::len).max().unwrap_or_default();
        let line = |(number, (_, what)): (&String, &(u64, String))| format!("{number:>width$}  {what}");
        self.lines(label, numbers.iter().zip(counts).map(line));
    }

    /// Renders the sheet.
    pub fn text(&self) -> String {
        let width = self.lines.iter().map(|(label, _)| label.chars().count()).max().unwrap_or_default();
        self.lines.iter().map(|(label, value)| format!("{label:width$}  {value}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned() {
        let mut sheet = Sheet::default();
        sheet.line("name", "shapes");
        sheet.line("licence", "");
        sheet.counts("dropped", &[(7, "row: blank".to_owned()), (1200, "name: empty".to_owned())]);
        assert_eq!(sheet.text(), "name     shapes\ndropped      7  row: blank\n         1,200  name: empty\n");
    }
}
