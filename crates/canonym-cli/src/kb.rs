//! `canonym kb`: build, inspect and search knowledge bases.

use std::path::PathBuf;

use anyhow::Context;
use canonym::kb::compile::{CompileConfig, compile};
use canonym::kb::import::{ImportConfig, SourceFormat};

use crate::progress;

/// The subcommands of `canonym kb`.
#[derive(Debug, clap::Subcommand)]
pub enum KbCommand {
    /// Compile a terminology into one file.
    Build(BuildArguments),
}

/// Arguments of `canonym kb build`.
#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    /// Files, archives or a folder (RRF); `-` is standard input.
    #[arg(required = true)]
    sources: Vec<PathBuf>,
    /// Where to write.
    #[arg(long, value_name = "FILE.kb")]
    out: PathBuf,
    /// The source format; told from name and content where not given.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The prefix for ids that have none, such as MESH.
    #[arg(long)]
    prefix: Option<String>,
}

/// Runs the command.
pub fn run(command: KbCommand) -> anyhow::Result<()> {
    match command {
        KbCommand::Build(arguments) => build(&arguments),
    }
}

fn build(arguments: &BuildArguments) -> anyhow::Result<()> {
    let format: SourceFormat = match arguments.format.as_deref() {
        Some("biosyn") => SourceFormat::Biosyn,
        Some("obo") => SourceFormat::Obo,
        _ => SourceFormat::Tsv,
    };
    let import = ImportConfig { prefix: arguments.prefix.clone(), ..ImportConfig::default() };
    let config = CompileConfig { format, import, name: None, version: String::new(), licence: String::new(), options: Vec::new() };
    let bar = progress::counter("concepts", None);
    let (meta, _) = compile(&arguments.sources, &config, &arguments.out, &mut |n| bar.set_position(n)).context("the knowledge base could not be built")?;
    bar.finish_and_clear();
    progress::say(&format!("{} concepts, {} names, {} forms", meta.n_concepts, meta.n_names, meta.n_forms));
    Ok(())
}
