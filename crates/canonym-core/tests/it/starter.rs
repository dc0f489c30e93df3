//! The embedded starter knowledge base: its form always, its ids and names against MeSH where MeSH is at hand.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The types that the last column may hold.
const TYPES: [&str; 9] =
    ["Anatomy", "Chemical", "Disease", "Drug", "Gene", "Organism", "Procedure", "Process", "Symptom"];

/// Ids that the descriptors of 2019 do not hold: newer descriptors and supplementary records, with their MeSH names.
const NOT_IN_2019: [(&str, &str); 128] = [
    ("MESH:C000591245", "semaglutide"),
    ("MESH:C000594389", "atezolizumab"),
    ("MESH:C000596027", "baricitinib"),
    ("MESH:C000596361", "osimertinib"),
    ("MESH:C000606551", "remdesivir"),
    ("MESH:C000609138", "avelumab"),
    ("MESH:C000613593", "durvalumab"),
    ("MESH:C000629749", "tirzepatide"),
    ("MESH:C000629870", "Esketamine"),
    ("MESH:C000656703", "molnupiravir"),
    ("MESH:C000706028", "sotorasib"),
    ("MESH:C000718217", "nirmatrelvir"),
    ("MESH:C003402", "sapropterin"),
    ("MESH:C004704", "cyclobenzaprine"),
    ("MESH:C005419", "oxybutynin"),
    ("MESH:C005855", "trimethyloxamine"),
    ("MESH:C006780", "bisphenol A"),
    ("MESH:C015715", "bismuth subsalicylate"),
    ("MESH:C020748", "ferrous sulfate"),
    ("MESH:C023036", "perfluorooctanoic acid"),
    ("MESH:C023754", "tizanidine"),
    ("MESH:C024352", "fludarabine"),
    ("MESH:C030397", "isosorbide-5-mononitrate"),
    ("MESH:C031927", "hydroquinone"),
    ("MESH:C031942", "argatroban"),
    ("MESH:C031967", "rasagiline"),
    ("MESH:C036309", "fibrin fragment D"),
    ("MESH:C036604", "esmolol"),
    ("MESH:C041226", "Terazosin"),
    ("MESH:C044946", "benazepril"),
    ("MESH:C045651", "epigallocatechin gallate"),
    ("MESH:C046649", "ropinirole"),
    ("MESH:C051752", "nefazodone"),
    ("MESH:C053541", "bicalutamide"),
    ("MESH:C055085", "calcipotriene"),
    ("MESH:C056516", "exemestane"),
    ("MESH:C057619", "glimepiride"),
    ("MESH:C060343", "lercanidipine"),
    ("MESH:C071192", "entacapone"),
    ("MESH:C072379", "repaglinide"),
    ("MESH:C074619", "bivalirudin"),
    ("MESH:C081643", "candesartan"),
    ("MESH:C084711", "agomelatine"),
    ("MESH:C089750", "zolmitriptan"),
    ("MESH:C092292", "ziprasidone"),
    ("MESH:C093230", "fexofenadine"),
    ("MESH:C093622", "rizatriptan"),
    ("MESH:C093844", "pirfenidone"),
    ("MESH:C093875", "montelukast"),
    ("MESH:C098320", "efavirenz"),
    ("MESH:C101425", "posaconazole"),
    ("MESH:C106538", "abacavir"),
    ("MESH:C108475", "pitavastatin"),
    ("MESH:C116926", "rofecoxib"),
    ("MESH:C121345", "desloratadine"),
    ("MESH:C406662", "prucalopride"),
    ("MESH:C413685", "entecavir"),
    ("MESH:C424423", "Roflumilast"),
    ("MESH:C434107", "mepolizumab"),
    ("MESH:C462182", "favipiravir"),
    ("MESH:C467566", "pomalidomide"),
    ("MESH:C479163", "tofacitinib"),
    ("MESH:C481642", "eculizumab"),
    ("MESH:C482793", "brivaracetam"),
    ("MESH:C485206", "pertuzumab"),
    ("MESH:C493870", "bedaquiline"),
    ("MESH:C498826", "nilotinib"),
    ("MESH:C500026", "palbociclib"),
    ("MESH:C502936", "tocilizumab"),
    ("MESH:C502994", "saxagliptin"),
    ("MESH:C505730", "apremilast"),
    ("MESH:C511911", "belimumab"),
    ("MESH:C515050", "zopiclone"),
    ("MESH:C516667", "pazopanib"),
    ("MESH:C520025", "mirabegron"),
    ("MESH:C520809", "eltrombopag"),
    ("MESH:C522181", "apixaban"),
    ("MESH:C523483", "linaclotide"),
    ("MESH:C524865", "carfilzomib"),
    ("MESH:C529000", "golimumab"),
    ("MESH:C529054", "dapagliflozin"),
    ("MESH:C530716", "nintedanib"),
    ("MESH:C531550", "olaparib"),
    ("MESH:C531958", "lenvatinib"),
    ("MESH:C533178", "aflibercept"),
    ("MESH:C533411", "ocrelizumab"),
    ("MESH:C540278", "enzalutamide"),
    ("MESH:C540383", "ruxolitinib"),
    ("MESH:C543529", "vedolizumab"),
    ("MESH:C545203", "ivacaftor"),
    ("MESH:C545373", "ponatinib"),
    ("MESH:C549273", "daclatasvir"),
    ("MESH:C551624", "suvorexant"),
    ("MESH:C551803", "ibrutinib"),
    ("MESH:C552171", "edoxaban"),
    ("MESH:C555450", "secukinumab"),
    ("MESH:C555680", "dulaglutide"),
    ("MESH:C556306", "daratumumab"),
    ("MESH:C558660", "cabozantinib"),
    ("MESH:C559147", "regorafenib"),
    ("MESH:C560077", "trametinib"),
    ("MESH:C561627", "dabrafenib"),
    ("MESH:C562325", "dolutegravir"),
    ("MESH:C570240", "empagliflozin"),
    ("MESH:C571059", "alirocumab"),
    ("MESH:C577155", "evolocumab"),
    ("MESH:C579720", "venetoclax"),
    ("MESH:C582203", "dupilumab"),
    ("MESH:C582435", "pembrolizumab"),
    ("MESH:C582670", "alectinib"),
    ("MESH:D000080424", "Cytokine Release Syndrome"),
    ("MESH:D000081029", "Pulmonary Arterial Hypertension"),
    ("MESH:D000083242", "Ischemic Stroke"),
    ("MESH:D000085962", "Angiotensin-Converting Enzyme 2"),
    ("MESH:D000086382", "COVID-19"),
    ("MESH:D000086402", "SARS-CoV-2"),
    ("MESH:D000086663", "COVID-19 Vaccines"),
    ("MESH:D000086722", "Rhinorrhea"),
    ("MESH:D000089703", "Fibroblast Growth Factor-23"),
    ("MESH:D000089983", "Escitalopram"),
    ("MESH:D000090243", "Nucleophosmin"),
    ("MESH:D000093322", "Lymphocyte Activation Gene 3 Protein"),
    ("MESH:D000093542", "Gemcitabine"),
    ("MESH:D000094024", "Post-Acute COVID-19 Syndrome"),
    ("MESH:D000097583", "Ceftaroline"),
    ("MESH:D000097623", "Cefpodoxime"),
    ("MESH:D000097670", "Cefprozil"),
    ("MESH:D000097797", "Glyphosate"),
];

/// One line of the file.
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    synonyms: Vec<&'a str>,
    concept_type: &'a str,
}

impl<'a> Row<'a> {
    /// The preferred name, then the synonyms.
    fn names(&self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.name).chain(self.synonyms.iter().copied())
    }
}

#[test]
fn ids_are_well_formed_unique_and_sorted() {
    let text = starter();
    let rows = rows(&text);
    assert!(rows.len() >= 5000, "only {} concepts", rows.len());
    for row in &rows {
        let digits = row.id.strip_prefix("MESH:D").or_else(|| row.id.strip_prefix("MESH:C"));
        let well_formed =
            digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        assert!(well_formed, "{:?} is not an id of MeSH", row.id);
    }
    for pair in rows.windows(2) {
        assert!(pair[0].id < pair[1].id, "{} stands before {}", pair[0].id, pair[1].id);
    }
}

#[test]
fn no_name_is_empty_untrimmed_or_of_two_concepts() {
    let text = starter();
    let mut owners: HashMap<String, &str> = HashMap::new();
    let mut problems = Vec::new();
    for row in rows(&text) {
        for name in row.names() {
            if name.is_empty() || name.trim() != name || name.contains(char::is_control) {
                problems.push(format!("{}: name {name:?}", row.id));
            }
            if name.chars().count() < 2 {
                problems.push(format!("{}: {name:?} is too short to be matched", row.id));
            }
            if let Some(other) = owners.insert(normalised(name), row.id) {
                problems.push(format!("{name:?} stands at {other} and at {}", row.id));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_type_is_known_and_well_filled() {
    let text = starter();
    let mut counts = BTreeMap::new();
    for row in rows(&text) {
        *counts.entry(row.concept_type).or_insert(0) += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), TYPES);
    for (concept_type, count) in counts {
        assert!(count >= 40, "only {count} concepts of type {concept_type}");
    }
}

#[test]
fn names_that_a_newcomer_tries_are_there() {
    let text = starter();
    let owners: HashMap<String, &str> =
        rows(&text).iter().flat_map(|row| row.names().map(|name| (normalised(name), row.id))).collect();
    let expected = [
        ("delirium", "MESH:D003693"),
        ("L-DOPA", "MESH:D007980"),
        ("drug-induced dyskinesia", "MESH:D004409"),
        ("familial Mediterranean fever", "MESH:D010505"),
        ("FMF", "MESH:D010505"),
        ("familial adenomatous polyposis", "MESH:D011125"),
        ("ataxia telangiectasia", "MESH:D001260"),
        ("Parkinson's disease", "MESH:D010300"),
        ("Alzheimer's disease", "MESH:D000544"),
        ("Huntington", "MESH:D006816"),
        ("breast cancer", "MESH:D001943"),
        ("ovarian cancer", "MESH:D010051"),
        ("hypertension", "MESH:D006973"),
        ("heart attack", "MESH:D009203"),
        ("stroke", "MESH:D020521"),
        ("asthma", "MESH:D001249"),
        ("COPD", "MESH:D029424"),
        ("type 1 diabetes", "MESH:D003922"),
        ("type 2 diabetes", "MESH:D003924"),
        ("COVID-19", "MESH:D000086382"),
        ("SARS-CoV-2", "MESH:D000086402"),
        ("metformin", "MESH:D008687"),
        ("aspirin", "MESH:D001241"),
        ("haloperidol", "MESH:D006220"),
        ("cocaine", "MESH:D003042"),
        ("lithium", "MESH:D008094"),
        ("nausea", "MESH:D009325"),
        ("headache", "MESH:D006261"),
        ("proteinuria", "MESH:D011507"),
        ("hypotension", "MESH:D007022"),
        ("seizures", "MESH:D012640"),
    ];
    for (name, id) in expected {
        assert_eq!(owners.get(&normalised(name)), Some(&id), "{name}");
    }
}

#[test]
fn ids_headings_and_synonyms_agree_with_mesh() {
    let path = data_root().join("terminologies/mesh-descriptors-2019.tsv");
    if !path.exists() {
        eprintln!("skipped: {} is missing", path.display());
        return;
    }
    let mesh_text = read(&path);
    let mesh = Mesh::new(&mesh_text);
    let text = starter();
    let rows = rows(&text);
    let problems: Vec<String> = rows.iter().flat_map(|row| mesh.problems(row)).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));

    let ids: HashSet<&str> = rows.iter().map(|row| row.id).collect();
    for (id, name) in NOT_IN_2019 {
        assert!(ids.contains(id), "{id} ({name}) is excepted but not in the file");
    }
}

/// The descriptors of MeSH: headings by id, and the ids that each name belongs to.
struct Mesh<'a> {
    headings: HashMap<&'a str, &'a str>,
    owners: HashMap<String, BTreeSet<&'a str>>,
}

impl<'a> Mesh<'a> {
    /// Reads lines of `id\tname\tsynonyms`, ids without a prefix.
    fn new(text: &'a str) -> Mesh<'a> {
        let mut mesh = Mesh { headings: HashMap::new(), owners: HashMap::new() };
        for line in text.lines() {
            let mut columns = line.split('\t');
            let (Some(id), Some(heading)) = (columns.next(), columns.next()) else {
                panic!("malformed line of MeSH: {line:?}");
            };
            mesh.headings.insert(id, heading);
            let synonyms = columns.next().unwrap_or_default().split('|').filter(|name| !name.is_empty());
            for name in std::iter::once(heading).chain(synonyms) {
                mesh.owners.entry(normalised(name)).or_default().insert(id);
            }
        }
        mesh
    }

    /// Where `row` says other than MeSH.
    fn problems(&self, row: &Row<'_>) -> Vec<String> {
        let newer = NOT_IN_2019.iter().find(|(id, _)| *id == row.id).map(|(_, name)| *name);
        let id = row.id.trim_start_matches("MESH:");
        let mut problems = Vec::new();
        match (self.headings.get(id).copied(), newer) {
            (Some(_), Some(_)) => problems.push(format!("{} is excepted although MeSH 2019 has it", row.id)),
            (None, None) => problems.push(format!("{} ({}) is not in MeSH 2019", row.id, row.name)),
            (Some(heading), None) | (None, Some(heading)) if heading != row.name => {
                problems.push(format!("{} is {heading:?} in MeSH, not {:?}", row.id, row.name));
            }
            _ => {}
        }
        // A newer descriptor was often carved out of an older one, which owned its names in 2019.
        if newer.is_some() {
            return problems;
        }
        for synonym in &row.synonyms {
            if let Some(owners) = self.owners.get(&normalised(synonym)).filter(|owners| !owners.contains(id)) {
                problems.push(format!("{} ({}): MeSH knows {synonym:?} as {owners:?}", row.id, row.name));
            }
        }
        problems
    }
}

/// The text of the starter knowledge base.
fn starter() -> String {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../canonym-default/assets/starter.tsv"))
}

/// The lines of `text`, each of four columns.
fn rows(text: &str) -> Vec<Row<'_>> {
    text.lines()
        .enumerate()
        .map(|(n, line)| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [id, name, synonyms, concept_type] = columns[..] else {
                panic!("line {}: {} columns instead of 4: {line:?}", n + 1, columns.len());
            };
            let synonyms = if synonyms.is_empty() { Vec::new() } else { synonyms.split('|').collect() };
            Row { id, name, synonyms, concept_type }
        })
        .collect()
}

/// A name in lower case with runs of white space as one blank.
fn normalised(name: &str) -> String {
    name.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The folder of real data: `CANONYM_DATA`, or `shared/data` beside the repository.
fn data_root() -> PathBuf {
    std::env::var_os("CANONYM_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}
