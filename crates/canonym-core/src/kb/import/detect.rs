//! Tells which format a source has, from its name and its first bytes.

use std::path::Path;

use super::{SourceFormat, ctd, rf2, rrf, taxonomy, tsv};
use crate::input::Input;
use crate::{Error, Result};

impl SourceFormat {
    /// All of them, as help lists them.
    pub const ALL: [SourceFormat; 13] = [
        SourceFormat::Rrf,
        SourceFormat::Rf2,
        SourceFormat::MeshXml,
        SourceFormat::MeshAscii,
        SourceFormat::Obo,
        SourceFormat::Obographs,
        SourceFormat::Owl,
        SourceFormat::Ctd,
        SourceFormat::GeneInfo,
        SourceFormat::Taxonomy,
        SourceFormat::Biosyn,
        SourceFormat::Tsv,
        SourceFormat::Jsonl,
    ];

    /// The format that the command line calls `name`.
    pub fn from_name(name: &str) -> Option<SourceFormat> {
        SourceFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The words of all formats as a sentence lists them.
    pub fn list() -> String {
        let names: Vec<&str> = SourceFormat::ALL.iter().map(|format| format.name()).collect();
        let (last, others) = names.split_last().expect("there are formats");
        format!("{} or {last}", others.join(", "))
    }

    /// The word that the command line uses.
    pub fn name(self) -> &'static str {
        match self {
            SourceFormat::Tsv => "tsv",
            SourceFormat::Jsonl => "jsonl",
            SourceFormat::Biosyn => "biosyn",
            SourceFormat::Obo => "obo",
            SourceFormat::Obographs => "obographs",
            SourceFormat::Rrf => "rrf",
            SourceFormat::Ctd => "ctd",
            SourceFormat::GeneInfo => "gene-info",
            SourceFormat::MeshAscii => "mesh-ascii",
            SourceFormat::MeshXml => "mesh-xml",
            SourceFormat::Owl => "owl",
            SourceFormat::Rf2 => "rf2",
            SourceFormat::Taxonomy => "taxonomy",
        }
    }

    /// The format of a file, archive or folder. Standard input and pipes are refused, because they cannot be read twice.
    pub fn detect(path: &Path) -> Result<SourceFormat> {
        if path == Path::new("-") {
            refuse_table(&Input::open(path)?)?;
            return Err(unknown(path));
        }
        if path.is_dir() {
            if rrf::folder(path).is_ok() {
                return Ok(SourceFormat::Rrf);
            }
            if rf2::folder(path).is_ok() {
                return Ok(SourceFormat::Rf2);
            }
            if taxonomy::folder(path).is_ok() {
                return Ok(SourceFormat::Taxonomy);
            }
            let message = format!("{} contains no MRCONSO.RRF, sct2_Concept file or names.dmp", path.display());
            let hint = "give the folder of a UMLS, SNOMED CT or taxonomy release, or the files themselves";
            return Err(Error::unsupported(message).with_hint(hint));
        }
        let members = Input::members(path)?;
        if !path.is_file() {
            return Err(unknown(path));
        }
        for format in [SourceFormat::Rrf, SourceFormat::Rf2] {
            if members.iter().any(|source| suits_name(format, source.file_name())) {
                return Ok(format);
            }
        }
        if members.iter().any(taxonomy::is_names) {
            return Ok(SourceFormat::Taxonomy);
        }
        let mut is_empty = true;
        for source in &members {
            let mut input = source.open()?;
            refuse_foreign(&input, None)?;
            if let Some(format) = SourceFormat::detect_content(input.file_name(), input.head()) {
                return Ok(format);
            }
            refuse_table(&input)?;
            // A stream that is cut off, or no text at all, is the better reason.
            is_empty &= input.next_line()?.is_none();
        }
        if is_empty {
            return Err(Error::parse(path, 1, "the file is empty"));
        }
        Err(unknown(path))
    }

    /// The format of a file with this name and these first bytes, uncompressed.
    pub fn detect_content(file_name: &str, head: &[u8]) -> Option<SourceFormat> {
        if suits_name(SourceFormat::Rrf, file_name) {
            return Some(SourceFormat::Rrf);
        }
        if suits_name(SourceFormat::Rf2, file_name) {
            return Some(SourceFormat::Rf2);
        }
        // The head may end inside a character.
        let text = String::from_utf8_lossy(head);
        let text = text.trim_start();
        if text.starts_with("format-version:") || text.contains("\n[Term]") || text.starts_with("[Term]") {
            return Some(SourceFormat::Obo);
        }
        if text.starts_with('{') {
            let graphs = ["\"graphs\"", "\"nodes\"", "\"edges\""].iter().any(|key| text.contains(key));
            let jsonl = suits_name(SourceFormat::Jsonl, file_name);
            return Some(if graphs && !jsonl { SourceFormat::Obographs } else { SourceFormat::Jsonl });
        }
        let rdf = text.starts_with('<') && (text.contains("<rdf:RDF") || text.contains("/1999/02/22-rdf-syntax-ns#"));
        let turtle = text.lines().any(|line| line.starts_with("@prefix ") || line.starts_with("@base "));
        if rdf || turtle || suits_name(SourceFormat::Owl, file_name) {
            return Some(SourceFormat::Owl);
        }
        if text.starts_with('<') {
            return detect_xml(text);
        }
        if text.starts_with("*NEWRECORD") {
            return Some(SourceFormat::MeshAscii);
        }
        let line = text.lines().next()?;
        if line.starts_with('#') {
            return detect_commented(text);
        }
        if line.contains("\t|\t") && line.ends_with("\t|") {
            return Some(SourceFormat::Taxonomy);
        }
        match (line.find('\t'), line.find("||")) {
            (Some(tab), Some(bars)) if bars < tab => Some(SourceFormat::Biosyn),
            (None, Some(_)) => Some(SourceFormat::Biosyn),
            (Some(_), _) => Some(SourceFormat::Tsv),
            (None, None) => suits_name(SourceFormat::Obo, file_name).then_some(SourceFormat::Obo),
        }
    }
}

/// The format of XML by its first elements, after declaration, document type and comments.
fn detect_xml(text: &str) -> Option<SourceFormat> {
    let mesh = ["DescriptorRecord", "SupplementalRecord", "QualifierRecord"];
    let is_mesh =
        mesh.iter().any(|name| [">", " ", "Set>", "Set "].iter().any(|end| text.contains(&format!("<{name}{end}"))));
    is_mesh.then_some(SourceFormat::MeshXml)
}

/// The format of a table that begins with comments, by the names of its columns.
fn detect_commented(text: &str) -> Option<SourceFormat> {
    let mut comments = text.lines().take_while(|line| line.starts_with('#'));
    comments.find_map(|line| {
        let names = line.trim_start_matches('#');
        if names.starts_with("tax_id\tGeneID") || names.starts_with("Format: tax_id GeneID") {
            return Some(SourceFormat::GeneInfo);
        }
        ctd::is_header(names).then_some(SourceFormat::Ctd)
    })
}

/// Whether a file of this name, compression endings removed, is usually of the format.
pub(super) fn suits_name(format: SourceFormat, file_name: &str) -> bool {
    let name = file_name.to_ascii_lowercase();
    match format {
        SourceFormat::Tsv => name.ends_with(".tsv"),
        SourceFormat::Jsonl => name.ends_with(".jsonl") || name.ends_with(".ndjson"),
        SourceFormat::Biosyn => name.ends_with("dictionary.txt"),
        SourceFormat::Obo => name.ends_with(".obo"),
        SourceFormat::Obographs => name.ends_with(".json"),
        SourceFormat::Rrf => name.starts_with("mr") && name.ends_with(".rrf"),
        SourceFormat::Rf2 => {
            let stem = name.strip_prefix('x').unwrap_or(&name);
            (stem.starts_with("sct2_") || stem.starts_with("der2_")) && name.ends_with(".txt")
        }
        SourceFormat::MeshXml => (name.starts_with("desc") || name.starts_with("supp")) && name.ends_with(".xml"),
        SourceFormat::MeshAscii => name.ends_with(".bin"),
        SourceFormat::Owl => name.ends_with(".owl") || name.ends_with(".ttl") || name.ends_with(".rdf"),
        SourceFormat::Ctd => name.starts_with("ctd_"),
        SourceFormat::GeneInfo => name.ends_with("gene_info"),
        SourceFormat::Taxonomy => name.ends_with(".dmp"),
    }
}

/// Refuses what is no terminology, or not in `format`, though its lines might pass for one.
pub(super) fn refuse_foreign(input: &Input, format: Option<SourceFormat>) -> Result<()> {
    let text = String::from_utf8_lossy(input.head());
    let text = text.trim_start();
    let starts = |tag: &str| text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    if starts("<!doctype html") || starts("<html") {
        let error = Error::parse(input.path(), 1, "this is a web page (HTML), not a terminology");
        return Err(error.with_hint("download the file that the page offers; some sites need a login first"));
    }
    let line = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    // The columns of CTD have names in a comment.
    let may_be = matches!(format, None | Some(SourceFormat::Tsv)) && detect_commented(text) != Some(SourceFormat::Ctd);
    let is_named = input.file_name().to_ascii_lowercase().ends_with(".csv");
    if is_named && may_be && line.contains([',', ';']) && !line.contains('\t') {
        return Err(is_csv(input));
    }
    Ok(())
}

/// Refuses a table with commas or semicolons whose name does not say that it is one, where no format was found.
fn refuse_table(input: &Input) -> Result<()> {
    let text = String::from_utf8_lossy(input.head());
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(MAX_SAMPLED_LINES).collect();
    let first = lines.first().copied().unwrap_or_default();
    let is_divided = |sign: char| {
        let n = n_columns(first, sign);
        n > Some(1) && lines.iter().all(|line| n_columns(line, sign) == n)
    };
    let is_named = suits_name(SourceFormat::Tsv, input.file_name()) && first.contains([',', ';']);
    let is_table = is_named || tsv::is_header(&first.replace([',', ';'], "\t")) || is_divided(',') || is_divided(';');
    if is_table && !first.contains('\t') { Err(is_csv(input)) } else { Ok(()) }
}

/// Lines in which a table with commas or semicolons shows.
const MAX_SAMPLED_LINES: usize = 10;

/// Number of columns separated by `sign`; `None` if unquoted spaces after it suggest running text.
fn n_columns(line: &str, sign: char) -> Option<usize> {
    let unquoted: String = line.split('"').step_by(2).collect();
    (!unquoted.contains(&format!("{sign} "))).then(|| unquoted.matches(sign).count() + 1)
}

fn is_csv(input: &Input) -> Error {
    Error::parse(input.path(), 1, "CSV is not supported as a terminology format").with_hint(tsv::FROM_CSV)
}

fn unknown(path: &Path) -> Error {
    Error::unsupported(format!("cannot tell the format of {}", path.display()))
        .with_hint(format!("specify the format (option `--format`): {}", SourceFormat::list()))
}
