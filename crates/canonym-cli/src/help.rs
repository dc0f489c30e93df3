//! `canonym help`: the `--help` text of commands, and topics that span several commands.
//!
//! Commands take precedence over topics of the same name.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Context;
use canonym_core::corpus::CorpusFormat;
use canonym_core::kb::import::SourceFormat;
use clap::Command;

use crate::errors;

/// Arguments of `canonym help`.
#[derive(Debug, clap::Args)]
pub struct HelpArguments {
    /// A command, such as `link` or `kb build`, or a topic.
    #[arg(value_name = "COMMAND|TOPIC")]
    words: Vec<String>,
}

/// Topics and their descriptions.
const TOPICS: [(&str, &str); 6] = [
    ("formats", "document formats and what they hold"),
    ("sources", "terminology formats that `kb build` reads"),
    ("protocols", "how predictions are scored"),
    ("context", "negation, time and experiencer of mentions"),
    ("exit-status", "exit status"),
    ("environment", "environment variables"),
];

/// The line below the list of commands that names the topics.
pub fn topics_line() -> String {
    let names: Vec<&str> = TOPICS.iter().map(|(name, _)| *name).collect();
    format!("Help topics (`canonym help TOPIC`): {}", names.join(", "))
}

/// Runs the command.
pub fn run(arguments: &HelpArguments, mut program: Command) -> anyhow::Result<()> {
    let text = match find(&mut program, &arguments.words) {
        // Let clap render it, so the text equals that of `--help`.
        Some(_) => {
            let words = arguments.words.iter().map(String::as_str);
            let command_line = ["canonym"].into_iter().chain(words).chain(["--help"]);
            program.try_get_matches_from(command_line).err().map(|help| help.to_string()).unwrap_or_default()
        }
        None => match arguments.words.as_slice() {
            [topic] => topic_text(topic)
                .ok_or_else(|| errors::usage(format!("no command or topic `{topic}`"), &topics_line()))?,
            words => {
                let hint = "`canonym help` lists the commands";
                return Err(errors::usage(format!("unknown command `{}`", words.join(" ")), hint));
            }
        },
    };
    std::io::stdout().write_all(text.as_bytes()).context("cannot write the help")
}

/// The command that `words` name; the program itself if there are none.
fn find<'a>(program: &'a mut Command, words: &[String]) -> Option<&'a mut Command> {
    words.iter().try_fold(program, |command, word| command.find_subcommand_mut(word))
}

/// The text of a topic, with lists generated from the code.
fn topic_text(topic: &str) -> Option<String> {
    Some(match topic {
        "formats" => fill(include_str!("help/formats.txt"), &formats()),
        "sources" => fill(include_str!("help/sources.txt"), &sources()),
        "protocols" => include_str!("help/protocols.txt").to_owned(),
        "context" => include_str!("help/context.txt").to_owned(),
        "exit-status" => include_str!("help/exit-status.txt").to_owned(),
        "environment" => include_str!("help/environment.txt").to_owned(),
        _ => return None,
    })
}

/// Replaces `LIST` by `list`.
fn fill(text: &str, list: &str) -> String {
    text.replace("LIST\n", list)
}

fn rows<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    rows.fold(String::new(), |mut text, (name, about)| {
        writeln!(text, "  {name:<12}{about}").expect("a string takes all");
        text
    })
}

fn formats() -> String {
    let about = |format: CorpusFormat| match format {
        CorpusFormat::Text => "plain text, one document per file; input only",
        CorpusFormat::Jsonl => "one JSON document per line; lossless",
        CorpusFormat::Pubtator => "title, abstract and tab-separated annotations",
        CorpusFormat::BiocXml => "BioC as XML",
        CorpusFormat::BiocJson => "BioC as JSON",
        CorpusFormat::Brat => "brat standoff: a .txt and an .ann file per document",
        CorpusFormat::Conll => "one token with tags per line",
        CorpusFormat::PubmedXml => "PubMed citations as XML",
        CorpusFormat::Texoo => "TeXoo documents as JSON",
        CorpusFormat::Biosyn => "BioSyn queries: mentions without text",
        CorpusFormat::Jats => "JATS XML: full texts of PubMed Central; input only",
        CorpusFormat::Csv => "a table of notes with columns for id and text; input only",
    };
    rows(CorpusFormat::ALL.into_iter().map(|format| (format.name(), about(format))))
}

fn sources() -> String {
    let about = |source: SourceFormat| match source {
        SourceFormat::Tsv => "table: id, name, synonyms separated by |, types separated by |, definition",
        SourceFormat::Jsonl => "one JSON record per line",
        SourceFormat::Biosyn => "dictionary with lines `ids||name`",
        SourceFormat::Obo => "OBO 1.2 and 1.4: Disease Ontology, HPO, Mondo, ...",
        SourceFormat::Obographs => "OBO graphs as JSON",
        SourceFormat::Rrf => "UMLS Rich Release Format: MRCONSO.RRF and related tables",
        SourceFormat::Ctd => "CTD vocabularies, including MEDIC, as TSV or CSV",
        SourceFormat::GeneInfo => "NCBI Gene gene_info tables",
        SourceFormat::MeshAscii => "MeSH in ASCII format",
        SourceFormat::MeshXml => "MeSH descriptors and supplementary records as XML",
        SourceFormat::Owl => "OWL ontologies as RDF/XML or Turtle",
        SourceFormat::Rf2 => "SNOMED CT Release Format 2",
        SourceFormat::Taxonomy => "NCBI Taxonomy dump",
    };
    rows(SourceFormat::ALL.into_iter().map(|source| (source.name(), about(source))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_have_text_in_short_lines() {
        for (topic, _) in TOPICS {
            let text = topic_text(topic).unwrap();
            assert!(text.ends_with('\n') && !text.contains("LIST"), "{topic}");
            assert!(text.lines().all(|line| line.len() <= 100), "{topic}");
        }
    }

    #[test]
    fn formats_and_sources_are_complete() {
        let (formats, sources) = (topic_text("formats").unwrap(), topic_text("sources").unwrap());
        assert!(CorpusFormat::ALL.iter().all(|format| formats.contains(&format!("\n  {format} "))));
        assert!(SourceFormat::ALL.iter().all(|source| sources.contains(&format!("\n  {} ", source.name()))));
    }

    #[test]
    fn no_topic_has_the_name_of_a_command() {
        use clap::CommandFactory;
        let mut program = crate::Arguments::command();
        assert!(TOPICS.iter().all(|(topic, _)| find(&mut program, &[(*topic).to_owned()]).is_none()));
    }
}
