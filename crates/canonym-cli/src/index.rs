//! `canonym index`: embeddings of all names of a knowledge base, as a file.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use canonym_core::Error;
use canonym_neural::index::build::{IndexConfig, IndexReport};
use canonym_neural::index::cache::cache_folder;
use canonym_neural::index::rows::Precision;
use canonym_neural::index::stored::{Layout, NameIndex};
use canonym_neural::system::names::index_path;
use canonym_neural::system::{Models, terminology};
use serde::Serialize;

use crate::output::{self, Sheet, bytes, thousands};
use crate::progress;

/// The subcommands of `canonym index`.
#[derive(Debug, clap::Subcommand)]
pub enum IndexCommand {
    /// Embed all names of a knowledge base and write them to a file, or update the file that is there.
    ///
    /// `link`, `map` and other commands use the file `K.index` beside `K.kb`. An update embeds only names that are new.
    /// A build that was interrupted goes on where it stopped.
    Build(BuildArguments),
    /// Show what an index was built of.
    Info(InfoArguments),
}

/// Arguments of `canonym index build`.
#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    /// Knowledge base.
    #[arg(long, value_name = "FILE.kb")]
    kb: PathBuf,
    /// Bundle or training folder of a name encoder, or `default`.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// File to write or update [default: `K.index` beside `K.kb`].
    #[arg(long, value_name = "FILE.index")]
    out: Option<PathBuf>,
    /// How names are searched: `flat` compares all of them, `graph` follows links between similar ones [default: flat up
    /// to 50,000 distinct names, else graph].
    #[arg(long, value_enum, value_name = "flat|graph", hide_possible_values = true)]
    kind: Option<KindValue>,
    /// Precision of the vectors: `f16`, or `int8` in half the space, which misses one of fifty nearest names [default: f16].
    #[arg(long, value_enum, value_name = "f16|int8", hide_possible_values = true)]
    precision: Option<PrecisionValue>,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Arguments of `canonym index info`.
#[derive(Debug, clap::Args)]
pub struct InfoArguments {
    /// Index.
    #[arg(value_name = "FILE.index")]
    file: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// The values of `--kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KindValue {
    /// All names are compared.
    Flat,
    /// Links between similar names are followed.
    Graph,
}

/// The values of `--precision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PrecisionValue {
    /// Two bytes a value.
    F16,
    /// One byte a value.
    Int8,
}
