//! Strings of the builder, and how strings and lists are written to the compiled file.

use std::io::{Seek, Write};

use rayon::prelude::*;

use crate::artifact::ContainerWriter;
use crate::index::packed::Lengths;
use crate::{Error, Result};

/// Strings stored back to back, with their offsets.
#[derive(Debug)]
pub(super) struct Arena {
    text: Vec<u8>,
    at: Vec<u64>,
}

impl Arena {
    /// No strings.
    pub fn new() -> Arena {
        Arena { text: Vec::new(), at: vec![0] }
    }

    /// Adds a string and returns its row; `what` names the strings in errors.
    pub fn push(&mut self, what: &str, text: &str) -> Result<u32> {
        let row =
            u32::try_from(self.at.len() - 1).map_err(|_| Error::too_many(format!("more than 4 billion {what}")))?;
        self.text.extend_from_slice(text.as_bytes());
        self.at.push(self.text.len() as u64);
        Ok(row)
    }

    /// The string at `row`.
    pub fn get(&self, row: u32) -> &str {
        let range = self.at[row as usize] as usize..self.at[row as usize + 1] as usize;
        std::str::from_utf8(&self.text[range]).expect("arenas hold whole strings")
    }
}

/// Writes a section of lengths.
pub(super) fn lengths<W: Write + Seek>(
    writer: &mut ContainerWriter<W>,
    name: &str,
    lens: impl Iterator<Item = usize>,
) -> std::io::Result<()> {
    writer.section(name, [&Lengths::encode(lens)[..]])
}

/// Writes the sections `{name}.at` and `{name}.text`.
pub(super) fn strings<'a, W: Write + Seek>(
    writer: &mut ContainerWriter<W>,
    name: &str,
    texts: impl Iterator<Item = &'a str> + Clone,
) -> std::io::Result<()> {
    lengths(writer, &format!("{name}.at"), texts.clone().map(str::len))?;
    writer.section(&format!("{name}.text"), texts.map(str::as_bytes))
}

/// Writes the sections `{name}.at` and `{name}.row`: the values of each concept in the given order, without duplicates.
/// Returns the offsets and the values.
pub(super) fn lists<W: Write + Seek>(
    writer: &mut ContainerWriter<W>,
    name: &str,
    values: impl Iterator<Item = (u32, u32)>,
    new_row: &[u32],
    n_concepts: usize,
) -> std::io::Result<(Vec<u32>, Vec<u32>)> {
    let mut pairs: Vec<(u32, u32, u32)> = values
        .enumerate()
        .map(|(index, (concept, value))| (new_row[concept as usize], value, index as u32))
        .filter(|(concept, _, _)| *concept != u32::MAX)
        .collect();
    pairs.sort_unstable();
    pairs.dedup_by_key(|(concept, value, _)| (*concept, *value));
    pairs.sort_unstable_by_key(|(concept, _, index)| (*concept, *index));
    let mut at = vec![0; n_concepts + 1];
    for (concept, _, _) in &pairs {
        at[*concept as usize + 1] += 1;
    }
    for row in 0..n_concepts {
        at[row + 1] += at[row];
    }
    let rows: Vec<u32> = pairs.into_iter().map(|(_, value, _)| value).collect();
    lengths(writer, &format!("{name}.at"), at.windows(2).map(|ends| (ends[1] - ends[0]) as usize))?;
    writer.section_u32(&format!("{name}.row"), &rows)?;
    Ok((at, rows))
}

/// Writes ids of concepts: `{name}.at`, `{name}.text` and `{name}.concept`, sorted by id, and `{name}.of.at` and
/// `{name}.of.row`, the ids of each concept. Returns the order: the values of `rows` without duplicates of id and concept.
pub(super) fn ids_of_concepts<W: Write + Seek, T: Ord + Copy + Send>(
    writer: &mut ContainerWriter<W>,
    name: &str,
    mut rows: Vec<(&str, u32, T)>,
    n_concepts: usize,
) -> std::io::Result<Vec<T>> {
    rows.par_sort_unstable();
    rows.dedup_by_key(|(id, concept, _)| (*id, *concept));
    strings(writer, name, rows.iter().map(|(id, ..)| *id))?;
    let concepts: Vec<u32> = rows.iter().map(|(_, concept, _)| *concept).collect();
    writer.section_u32(&format!("{name}.concept"), &concepts)?;
    let identity: Vec<u32> = (0..n_concepts as u32).collect();
    let of = concepts.iter().enumerate().map(|(row, concept)| (*concept, row as u32));
    lists(writer, &format!("{name}.of"), of, &identity, n_concepts)?;
    Ok(rows.into_iter().map(|(.., value)| value).collect())
}
