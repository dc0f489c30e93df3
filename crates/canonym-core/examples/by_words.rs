//! Compiles a TSV file into a knowledge base in the layout of large ones, whatever its number of names, to test that layout.
//!
//!     by_words TERMS.tsv OUT.kb

use std::path::{Path, PathBuf};

use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import};
use canonym_core::kb::{KnowledgeBaseBuilder, Layout};

fn main() -> canonym_core::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [terms, out] = arguments.as_slice() else {
        eprintln!("usage: by_words TERMS.tsv OUT.kb");
        std::process::exit(2);
    };
    let mut builder = KnowledgeBaseBuilder::new().with_layout(Layout::Words);
    let (paths, config, mut report) = ([PathBuf::from(terms)], ImportConfig::default(), Report::default());
    import(SourceFormat::Tsv, &paths, &config, &mut report, &mut |record| builder.add(record))?;
    let meta = Meta { name: "by-words".to_owned(), source_format: "tsv".to_owned(), ..Meta::default() };
    builder.write_with(meta, Path::new(out), &mut |_| Ok(()))?;
    Ok(())
}
