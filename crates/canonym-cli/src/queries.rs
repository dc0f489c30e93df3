//! Names with the concepts that they mean, as models are trained and probed with.

use std::path::Path;

use canonym::eval::queries::read_queries;
use canonym::input::Input;
use canonym::link::fit::Labelled;

/// A mention and the parts that it is searched by.
pub struct MentionQuery {
    /// The parts, each with all ids of the mention.
    pub parts: Vec<Labelled>,
}

/// Reads mentions to train on or to ask for: as BioSyn has them, or, in a file that ends in `.tsv`, a name and its ids on each line.
pub fn read_mentions(path: &Path) -> anyhow::Result<Vec<MentionQuery>> {
    let mentions = read(path)?;
    if mentions.is_empty() {
        let error = canonym::Error::parse(path, 1, "no query was found");
        return Err(error.with_hint("a line of a `.tsv` is a name, a tab and its ids").into());
    }
    Ok(mentions)
}

fn read(path: &Path) -> anyhow::Result<Vec<MentionQuery>> {
    let mut mentions = Vec::new();
    if path.extension().is_some_and(|end| end == "tsv") {
        let mut input = Input::open(path)?;
        while let Some((_, line)) = input.next_line()? {
            if line.trim().is_empty() {
                continue;
            }
            let Some((name, ids)) = line.split_once('\t').filter(|(name, ids)| !name.is_empty() && !ids.is_empty())
            else {
                let error = input.error("a query is a name and its ids, divided by a tab");
                return Err(error.with_hint("several ids are divided by `|`").into());
            };
            let ids = ids.split('|').map(|id| bare(id.trim()).to_owned()).collect();
            mentions.push(MentionQuery { parts: vec![Labelled { query: name.to_owned(), ids }] });
        }
        return Ok(mentions);
    }
    for query in read_queries(&mut Input::open(path)?)? {
        let ids: std::collections::BTreeSet<String> = query.ids.iter().map(str::to_owned).collect();
        let parts = query.parts.into_iter().map(|part| Labelled { query: part, ids: ids.clone() }).collect();
        mentions.push(MentionQuery { parts });
    }
    Ok(mentions)
}

/// An id as queries have it: MeSH and OMIM without their names. The numbers of other sources would meet those of OMIM.
pub fn bare(id: &str) -> &str {
    ["MESH:", "OMIM:"].into_iter().find_map(|source| id.strip_prefix(source)).unwrap_or(id)
}
