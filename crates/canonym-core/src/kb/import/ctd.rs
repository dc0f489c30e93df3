//! Vocabularies of the Comparative Toxicogenomics Database as TSV or CSV: diseases (MEDIC), chemicals, genes, anatomy
//! and pathways.
//!
//! Lines that start with `#` are comments; the one after `# Fields:` names the columns and shows the separator. All
//! names are exact, and the name or symbol of the row is the preferred one. Lists are separated by `|`. Ids keep their
//! prefix (`MESH:D003924`); genes, which have none, become `NCBIGene:1017`. The type is the first segment of each tree
//! number (`C04`). Registry numbers (CAS, UniProt, …) are cross-references.
//! Association tables (chemicals with diseases, …) are not vocabularies and are rejected.

use std::borrow::Cow;

use super::ctd_rows::{Division, split};
use super::gene_info::without_repeated_prefix;
use super::{ImportConfig, Report, Sink, biosyn, distinct, gene_info, keep, map_parts, push_name, with_prefix};
use crate::input::Input;
use crate::kb::{ConceptRecord, Scope, XrefRecord};
use crate::numbers::counted;
use crate::{Error, Result};

/// Columns that identify the kind of vocabulary: name, synonyms, id, alternative ids.
const KINDS: [[&str; 4]; 5] = [
    ["DiseaseName", "", "DiseaseID", "AltDiseaseIDs"],
    ["ChemicalName", "", "ChemicalID", "AltChemicalIDs"],
    ["GeneSymbol", "GeneName", "GeneID", "AltGeneIDs"],
    ["AnatomyName", "", "AnatomyID", "AltAnatomyIDs"],
    ["PathwayName", "", "PathwayID", "AltPathwayIDs"],
];

/// Columns of ids in other databases, with their prefixes.
const XREFS: [(&str, &str); 9] = [
    ("CasRN", "CAS"),
    ("CASRN", "CAS"),
    ("DrugBankIDs", "DrugBank"),
    ("DTXSID", "DTXSID"),
    ("InChIKey", "InChIKey"),
    ("PubChemCID", "PubChem"),
    ("BioGRIDIDs", "BioGRID"),
    ("PharmGKBIDs", "PharmGKB"),
    ("UniProtIDs", "UniProt"),
];

const HINT: &str = "use an unmodified CTD vocabulary, such as CTD_diseases.tsv, with its `# Fields:` lines";

/// The columns of a file.
struct Header {
    names: Vec<String>,
    kind: [&'static str; 4],
    division: Division,
}

impl Header {
    /// Parses a header line without `#`; `None` for other lines.
    fn of(line: &str) -> Option<std::result::Result<Header, String>> {
        let division = if line.contains('\t') { Division::Tabs } else { Division::Commas };
        let names: Vec<String> = split(line, division).ok()?.iter().map(|name| name.trim().to_owned()).collect();
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        let mut kinds = KINDS.into_iter().filter(|kind| has(kind[2]));
        let kind = kinds.next()?;
        if let Some(other) = kinds.next() {
            return Some(Err(format!("a table of {} and {} is not a vocabulary", kind[2], other[2])));
        }
        if !has(kind[0]) {
            return Some(Err(format!("the header has {}, but not {}", kind[2], kind[0])));
        }
        Some(Ok(Header { names, kind, division }))
    }

    /// The cell of a column; empty if the table lacks the column or the row is too short.
    fn cell<'a>(&self, cells: &'a [Cow<'_, str>], column: &str) -> &'a str {
        let at = self.names.iter().position(|name| name == column);
        at.and_then(|at| cells.get(at)).map_or("", |cell| cell.trim())
    }

    fn is_of_genes(&self) -> bool {
        self.kind[2] == "GeneID"
    }

    /// The displayed id.
    fn id(&self, written: &str, config: &ImportConfig) -> String {
        if config.prefix.is_some() || written.contains(':') {
            return with_prefix(written, config);
        }
        match self.is_of_genes() {
            true => map_parts(written, &['|'], |id| format!("{}:{id}", gene_info::PREFIX)),
            false => biosyn::id_of(written, config),
        }
    }
}

/// Whether a comment, without `#`, is the header of a CTD table.
pub(super) fn is_header(comment: &str) -> bool {
    Header::of(comment).is_some()
}

/// Reads a vocabulary.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let path = input.path().to_path_buf();
    let mut header: Option<Header> = None;
    while let Some((number, line)) = input.next_line()? {
        let malformed = |message: String| Error::parse(&path, number, message).with_hint(HINT);
        if line.trim().is_empty() {
            continue;
        }
        let comment = line.strip_prefix('#');
        if comment.is_some() || header.is_none() {
            match Header::of(comment.unwrap_or(line)) {
                Some(found) => header = Some(found.map_err(malformed)?),
                None if comment.is_some() => {}
                None => return Err(malformed("data row before the header".to_owned())),
            }
            continue;
        }
        let Some(header) = &header else { continue };
        let cells = split(line, header.division).map_err(malformed)?;
        if cells.len() > header.names.len() {
            let message = format!("{}, expected {}", counted(cells.len() as u64, "column"), header.names.len());
            return Err(malformed(message));
        }
        let id = header.cell(&cells, header.kind[2]);
        if id.is_empty() {
            return Err(malformed(format!("{} is empty", header.kind[2])));
        }
        report.n_read += 1;
        keep(record(header, &cells, id, config, report), config, report, sink)?;
    }
    Ok(())
}

fn record(
    header: &Header,
    cells: &[Cow<'_, str>],
    id: &str,
    config: &ImportConfig,
    report: &mut Report,
) -> ConceptRecord {
    let cell = |column: &str| header.cell(cells, column);
    let list = |column: &str| cell(column).split('|').map(str::trim).filter(|item| !item.is_empty());
    let mut names = Vec::new();
    push_name(&mut names, cell(header.kind[0]), Scope::Preferred, report);
    for name in Some(cell(header.kind[1])).filter(|name| !name.is_empty()).into_iter().chain(list("Synonyms")) {
        push_name(&mut names, name, Scope::Exact, report);
    }
    let branch = |tree: &str| tree.split(['.', '/']).next().unwrap_or_default().to_owned();
    let types = distinct(list("TreeNumbers").map(branch));
    // CTD writes `DO:DOID:4` for `DOID:4`.
    let other = |id: &str| header.id(without_repeated_prefix(id.strip_prefix("DO:").unwrap_or(id)), config);
    let mut xrefs = Vec::new();
    for (column, prefix) in XREFS {
        xrefs.extend(list(column).map(|id| match id.contains(':') {
            true => XrefRecord::plain(id),
            false => XrefRecord::plain(&format!("{prefix}:{id}")),
        }));
    }
    ConceptRecord {
        id: header.id(id, config),
        names,
        types,
        definition: Some(cell("Definition")).filter(|text| !text.is_empty()).map(str::to_owned),
        parents: list("ParentIDs").map(|parent| header.id(parent, config)).collect(),
        alternative_ids: list(header.kind[3]).map(other).collect(),
        xrefs,
        source: String::new(),
    }
}
