//! How corpora are read: the options that every command shares, and what the user is told of the files.

use std::path::{Path, PathBuf};

use canonym::corpus::conll::Tags;
use canonym::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader};

use crate::progress;

/// Repairs that are shown line by line; the rest is counted.
const MAX_SHOWN: u64 = 20;

/// Options for corpora that are not as they should be.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ReadArguments {
    /// Repair annotations whose offsets do not fit their text, where there is no doubt, and list what was done.
    #[arg(long)]
    pub fix_offsets: bool,
    /// Leave out annotations whose offsets do not fit their text, and count them.
    #[arg(long)]
    pub skip_bad_offsets: bool,
    /// The tags of CoNLL files: auto, bio, bioes or bilou; with `-strict` behind it, tags that break the scheme make no
    /// mention.
    #[arg(long, value_name = "TAGS", default_value = "auto", value_parser = parse_tags)]
    pub tags: Tags,
}

fn parse_tags(text: &str) -> Result<Tags, String> {
    text.parse().map_err(|error: canonym::Error| {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{error}{hint}")
    })
}

impl ReadArguments {
    /// The documents of a file, folder or standard input.
    pub fn open(&self, path: &Path, format: Option<CorpusFormat>) -> canonym::Result<Documents> {
        let on_mismatch = if self.skip_bad_offsets { OnMismatch::Drop } else { OnMismatch::Error };
        let reader = Reader::open(path, format)?
            .with_on_mismatch(on_mismatch)
            .with_repairs(self.fix_offsets)
            .with_tags(self.tags);
        Ok(Documents { reader, path: path.to_path_buf(), n_shown: 0, is_told: false })
    }
}

/// Documents one after the other; what was repaired or left out goes to standard error.
pub struct Documents {
    reader: Reader,
    path: PathBuf,
    n_shown: u64,
    is_told: bool,
}

impl Iterator for Documents {
    type Item = canonym::Result<AnnotatedDocument>;

    fn next(&mut self) -> Option<canonym::Result<AnnotatedDocument>> {
        let next = self.reader.next();
        for fix in self.reader.fixes() {
            if self.n_shown < MAX_SHOWN {
                progress::say(&fix.to_string());
            }
            self.n_shown += 1;
        }
        if next.is_none() && !std::mem::replace(&mut self.is_told, true) {
            self.tell_counts();
        }
        next
    }
}

impl Documents {
    fn tell_counts(&self) {
        let counts = self.reader.counts();
        let path = self.path.display();
        let strict = "with tags that break their scheme: repaired, or left out under `-strict`";
        let rows = [
            (counts.n_fixed, format!("repaired {} annotations of {path} with wrong offsets", counts.n_fixed)),
            (
                counts.n_bad_offsets,
                format!("left out {} annotations of {path} with wrong offsets", counts.n_bad_offsets),
            ),
            (counts.n_broken_tags, format!("{} mentions of {path} {strict}", counts.n_broken_tags)),
            (
                counts.n_deleted,
                format!("passed over {} citations of {path} that are only named as deleted", counts.n_deleted),
            ),
            (counts.n_other_files, format!("left out {} files of {path} that are no texts", counts.n_other_files)),
        ];
        for (n, line) in rows {
            if n > 0 {
                progress::say(&line);
            }
        }
    }
}
