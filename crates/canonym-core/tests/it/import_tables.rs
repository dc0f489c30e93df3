//! What the importers of MeSH (ASCII), CTD, NCBI genes and NCBI taxonomy read and drop, on made-up files.

use canonym_core::kb::import::{ImportConfig, SourceFormat};
use expect_test::{Expect, expect};

use crate::import::{check_with, words};

fn check(format: SourceFormat, text: &str, expect: Expect) {
    check_with(format, &[("input", text)], &ImportConfig::default(), expect);
}

pub const GENES: &str = concat!(
    "#tax_id\tGeneID\tSymbol\tLocusTag\tSynonyms\tdbXrefs\tchromosome\tmap_location\tdescription\ttype_of_gene\t",
    "Symbol_from_nomenclature_authority\tFull_name_from_nomenclature_authority\tNomenclature_status\t",
    "Other_designations\tModification_date\tFeature_type\n",
    "9606\t11\tRND1\t-\tCRC|RING\tMIM:1|HGNC:HGNC:5\t1\t1p\tround gene 1\tprotein-coding\tRND1\tround gene 1\tO\t",
    "round protein|RING\t20200101\t-\n",
    "10090\t12\tSqr\tSQ_1\t-\t-\t2\t-\tsquare gene\tncRNA\t-\t-\t-\t-\t20200101\t-\n",
    "9606\t13\tNEWENTRY\t-\t-\t-\t-\t-\tRecord to support submission\tother\t-\t-\t-\t-\t20200101\t-\n",
);

#[test]
fn genes_have_symbols_synonyms_and_taxa() {
    check(
        SourceFormat::GeneInfo,
        GENES,
        expect![[r#"
            NCBIGene:11 [Preferred "RND1"] [Exact "round gene 1"] [Exact "CRC"] [Exact "RING"] [Related "round protein"] types=protein-coding xrefs=MIM:1,HGNC:5 source=9606
            NCBIGene:12 [Preferred "Sqr"] [Exact "square gene"] [Exact "SQ_1"] types=ncRNA source=10090
            read 3
            dropped 1 row: NEWENTRY (record without a symbol)
        "#]],
    );
    let config = ImportConfig {
        sources: words(&["9606"]),
        semantic_types: words(&["protein-coding"]),
        xrefs: true,
        ..ImportConfig::default()
    };
    check_with(
        SourceFormat::GeneInfo,
        &[("gene_info", GENES)],
        &config,
        expect![[r#"
            NCBIGene:11 [Preferred "RND1"] [Exact "round gene 1"] [Exact "CRC"] [Exact "RING"] [Related "round protein"] types=protein-coding alternatives=MIM:1,HGNC:5 xrefs=MIM:1,HGNC:5 source=9606
            read 3
            dropped 1 row: NEWENTRY (record without a symbol)
            dropped 1 row: other taxon
        "#]],
    );
}

#[test]
fn gene_tables_without_header_have_the_usual_columns() {
    let rows: String = GENES.lines().skip(1).take(1).collect();
    check(
        SourceFormat::GeneInfo,
        &rows,
        expect![[r#"
            NCBIGene:11 [Preferred "RND1"] [Exact "round gene 1"] [Exact "CRC"] [Exact "RING"] [Related "round protein"] types=protein-coding xrefs=MIM:1,HGNC:5 source=9606
            read 1
        "#]],
    );
}

#[test]
fn broken_gene_tables_are_errors_with_their_line() {
    check(
        SourceFormat::GeneInfo,
        &format!("{GENES}9606\t14\n"),
        expect![[r#"
        error: input:5: 2 columns, expected 16
        hint: use an unmodified NCBI gene_info file, separated by tabs
    "#]],
    );
    check(
        SourceFormat::GeneInfo,
        &GENES.replace("\t12\t", "\tx\t"),
        expect![[r#"
        error: input:3: `x` in column GeneID is not a number
        hint: none
    "#]],
    );
    check(
        SourceFormat::GeneInfo,
        "#tax_id\tGeneID\n",
        expect![[r#"
        error: input:1: the header has no column Symbol
        hint: none
    "#]],
    );
    check(
        SourceFormat::GeneInfo,
        "1\t2\t3\n",
        expect![[r#"
        error: input:1: 3 columns, expected 14 or more
        hint: use an unmodified NCBI gene_info file, separated by tabs
    "#]],
    );
}

const DISEASES: &str = concat!(
    "# Made up in the layout of a vocabulary\n# Fields:\n",
    "# DiseaseName\tDiseaseID\tAltDiseaseIDs\tDefinition\tParentIDs\tTreeNumbers\tParentTreeNumbers\tSynonyms\tSlim\n#\n",
    "Round disease\tMESH:D1\tDO:DOID:4|OMIM:100000\tA \"round\" one.\tMESH:C\tC01.1/C9|C01.2|C02\tC01\tRoundness|Ring, big\tx\n",
    "Square disease\tOMIM:200000\t\t\tMESH:D1|MESH:D2\t\t\t\t\n",
);

pub const CHEMICALS: &str = concat!(
    "# Fields:\n# ChemicalName,ChemicalID,CasRN,Definition,ParentIDs,TreeNumbers,ParentTreeNumbers,Synonyms,DrugBankIDs\n",
    "\"1,2-ring\",MESH:C1,50-00-0,\"It is \"\"round\"\", mostly.\",MESH:D3,D03/C1,D03,\"ring, 1,2-|o\",DB1|DB2\n",
);

const CTD_GENES: &str = concat!(
    "# Fields:\n# GeneSymbol\tGeneName\tGeneID\tAltGeneIDs\tSynonyms\tUniProtIDs\n",
    "RND1\tround gene 1\t11\t12|13\tCRC\tP1\n",
);

#[test]
fn ctd_vocabularies_are_read_as_tabs_and_as_commas() {
    check(
        SourceFormat::Ctd,
        DISEASES,
        expect![[r#"
        MESH:D1 [Preferred "Round disease"] [Exact "Roundness"] [Exact "Ring, big"] types=C01,C02 parents=MESH:C alternatives=DOID:4,OMIM:100000 definition=A "round" one.
        OMIM:200000 [Preferred "Square disease"] parents=MESH:D1,MESH:D2
        read 2
    "#]],
    );
    let config = ImportConfig { xrefs: true, ..ImportConfig::default() };
    let files = [("CTD_chemicals.csv", CHEMICALS), ("CTD_genes.tsv", CTD_GENES)];
    check_with(
        SourceFormat::Ctd,
        &files,
        &config,
        expect![[r#"
            MESH:C1 [Preferred "1,2-ring"] [Exact "ring, 1,2-"] [Exact "o"] types=D03 parents=MESH:D3 alternatives=CAS:50-00-0,DrugBank:DB1,DrugBank:DB2 xrefs=CAS:50-00-0,DrugBank:DB1,DrugBank:DB2 definition=It is "round", mostly.
            NCBIGene:11 [Preferred "RND1"] [Exact "round gene 1"] [Exact "CRC"] alternatives=NCBIGene:12,NCBIGene:13,UniProt:P1 xrefs=UniProt:P1
            read 2
        "#]],
    );
    let config = ImportConfig { semantic_types: words(&["C02"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Ctd,
        &[("input", DISEASES)],
        &config,
        expect![[r#"
        MESH:D1 [Preferred "Round disease"] [Exact "Roundness"] [Exact "Ring, big"] types=C01,C02 parents=MESH:C alternatives=DOID:4,OMIM:100000 definition=A "round" one.
        read 2
        dropped 1 concept: semantic type
    "#]],
    );
}

#[test]
fn broken_ctd_tables_are_errors_with_their_line() {
    check(
        SourceFormat::Ctd,
        "a\tb\n",
        expect![[r#"
        error: input:1: data row before the header
        hint: use an unmodified CTD vocabulary, such as CTD_diseases.tsv, with its `# Fields:` lines
    "#]],
    );
    check(
        SourceFormat::Ctd,
        "# DiseaseName\tDiseaseID\na\t\n",
        expect![[r#"
        error: input:2: DiseaseID is empty
        hint: use an unmodified CTD vocabulary, such as CTD_diseases.tsv, with its `# Fields:` lines
    "#]],
    );
    check(
        SourceFormat::Ctd,
        "# DiseaseName\tDiseaseID\na\tMESH:D1\tb\n",
        expect![[r#"
        error: input:2: 3 columns, expected 2
        hint: use an unmodified CTD vocabulary, such as CTD_diseases.tsv, with its `# Fields:` lines
    "#]],
    );
    check(
        SourceFormat::Ctd,
        "# DiseaseName,DiseaseID\n\"a,MESH:D1\n",
        expect![[r#"
        error: input:2: unclosed quote in column 1
        hint: use an unmodified CTD vocabulary, such as CTD_diseases.tsv, with its `# Fields:` lines
    "#]],
    );
    check(
        SourceFormat::Ctd,
        "# ChemicalName\tChemicalID\tDiseaseName\tDiseaseID\n",
        expect![[r#"
        error: input:1: a table of DiseaseID and ChemicalID is not a vocabulary
        hint: use an unmodified CTD vocabulary, such as CTD_diseases.tsv, with its `# Fields:` lines
    "#]],
    );
    check(
        SourceFormat::Ctd,
        "# Fields:\n",
        expect![[r#"
        error: input:1: no concepts in ctd format found
        hint: check the file and its format (option `--format`)
    "#]],
    );
}

pub const NAMES: &str = concat!(
    "1\t|\troot\t|\t\t|\tscientific name\t|\n",
    "7\t|\tRotundus\t|\tRotundus <shapes>\t|\tscientific name\t|\n",
    "7\t|\tRotundus L., 1758\t|\t\t|\tauthority\t|\n",
    "7\t|\tround one\t|\t\t|\tgenbank common name\t|\n",
    "7\t|\trounds\t|\t\t|\tblast name\t|\n",
    "7\t|\tR. sp. X\t|\t\t|\tnew class\t|\n",
    "8\t|\tRotundus minor\t|\t\t|\tscientific name\t|\n",
    "8\t|\tR minor\t|\t\t|\tincludes\t|\n",
);
const NODES: &str = concat!(
    "1\t|\t1\t|\tno rank\t|\t\t|\t8\t|\n",
    "7\t|\t1\t|\tgenus\t|\t\t|\t0\t|\n",
    "8\t|\t7\t|\tspecies\t|\tRM\t|\t0\t|\n",
);
const MERGED: &str = "5\t|\t7\t|\n6\t|\t8\t|\n";

fn taxonomy() -> [(&'static str, &'static str); 4] {
    [("merged.dmp", MERGED), ("names.dmp", NAMES), ("nodes.dmp", NODES), ("division.dmp", "0\t|\tBCT\t|\n")]
}

#[test]
fn taxa_have_names_ranks_parents_and_older_ids() {
    check_with(
        SourceFormat::Taxonomy,
        &taxonomy(),
        &ImportConfig::default(),
        expect![[r#"
        NCBITaxon:1 [Preferred "root"]
        NCBITaxon:7 [Preferred "Rotundus"] [Exact "round one"] [Related "rounds"]
        NCBITaxon:8 [Preferred "Rotundus minor"] [Narrow "R minor"]
        NCBITaxon:1
        NCBITaxon:7 types=genus parents=NCBITaxon:1
        NCBITaxon:8 types=species parents=NCBITaxon:7
        NCBITaxon:7 alternatives=NCBITaxon:5
        NCBITaxon:8 alternatives=NCBITaxon:6
        read 8
        dropped 1 file: unused table
        dropped 1 name: of class authority
        dropped 1 name: unknown name class
        dropped 1 parent: self-reference
    "#]],
    );
    let config = ImportConfig { semantic_types: words(&["species"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Taxonomy,
        &taxonomy(),
        &config,
        expect![[r#"
        NCBITaxon:8 [Preferred "Rotundus minor"] [Narrow "R minor"]
        NCBITaxon:8 types=species parents=NCBITaxon:7
        NCBITaxon:8 alternatives=NCBITaxon:6
        read 8
        dropped 1 file: unused table
        dropped 1 merged id: semantic type
        dropped 6 name: semantic type
    "#]],
    );
}

#[test]
fn broken_taxonomies_are_errors_with_their_line() {
    check(
        SourceFormat::Taxonomy,
        "7\t|\tRotundus\n",
        expect![[r#"
        error: input:1: 2 columns and no `|` at the end; expected at least 4, each followed by a tab and `|`
        hint: use taxdump.tar.gz, taxdmp.zip, the extracted folder, or its files
    "#]],
    );
    check(
        SourceFormat::Taxonomy,
        "7\t|\tRotundus\t|\t\t|\tsynonym\t|\nx\t|\ta\t|\t\t|\tsynonym\t|\n",
        expect![[r#"
        error: input:2: `x` in column 1 is not a taxon id
        hint: none
    "#]],
    );
    let config = ImportConfig::default();
    check_with(
        SourceFormat::Taxonomy,
        &[("nodes.dmp", NODES), ("merged.dmp", MERGED)],
        &config,
        expect![[r#"
        error: names.dmp is missing
        hint: use taxdump.tar.gz, taxdmp.zip, the extracted folder, or its files
    "#]],
    );
    check_with(
        SourceFormat::Taxonomy,
        &[("names.dmp", NAMES), ("names.dmp.gz", NAMES)],
        &config,
        expect![[r#"
        error: names.dmp and names.dmp.gz are the same table
        hint: specify each table once, compressed or not
    "#]],
    );
    let config = ImportConfig { semantic_types: words(&["species"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Taxonomy,
        &[("names.dmp", NAMES)],
        &config,
        expect![[r#"
        error: a filter on semantic types (ranks) needs nodes.dmp
        hint: add nodes.dmp, or omit the filter
    "#]],
    );
}

pub const DESCRIPTORS: &str = concat!(
    "*NEWRECORD\nRECTYPE = D\nMH = Rings, Small\nAQ = AA AD\n",
    "ENTRY = ringlet|T001|NON|NRW|NLM (2001)|010101|abcdef\nPRINT ENTRY = circle|T001|NON|EQV|NLM (2001)|010101|abcdef\n",
    "ENTRY = small ring\nMN = C01.200.100\nMN = D02\nMS = A ring that is small.\nRN = 0\nRR = 50-00-0 (ring)\nUI = D000002\n\n",
    "*NEWRECORD\nRECTYPE = D\nMH = Rings\nMN = C01.200\nST = T001\nUI = D000001\n",
);
const SUPPLEMENTARY: &str = concat!(
    "*NEWRECORD\nRECTYPE = C\nNM = ring 7\nSY = R-7|T001|EQV|X (2001)|010101|abdef\nHM = *Rings/analogs & derivatives\n",
    "HM = Rings, Small\nHM = Squares\nRN = \nNO = seven rings\nUI = C000001\n",
);

#[test]
fn mesh_records_of_lines_have_names_trees_and_parents() {
    let files = [("c2020.bin", SUPPLEMENTARY), ("d2020.bin", DESCRIPTORS)];
    let config = ImportConfig { xrefs: true, ..ImportConfig::default() };
    check_with(
        SourceFormat::MeshAscii,
        &files,
        &config,
        expect![[r#"
            MESH:C000001 [Preferred "ring 7"] [Exact "R-7"] definition=seven rings
            MESH:D000002 [Preferred "Rings, Small"] [Narrow "ringlet"] [Exact "circle"] [Exact "small ring"] types=C01,D02 alternatives=CAS:50-00-0 xrefs=CAS:50-00-0 definition=A ring that is small.
            MESH:D000001 [Preferred "Rings"] types=T001
            MESH:C000001 parents=MESH:D000001,MESH:D000002
            MESH:D000002 parents=MESH:D000001
            read 3
            dropped 1 parent: heading not in the files
            dropped 1 parent: tree number not in the files
        "#]],
    );
    let config =
        ImportConfig { semantic_types: words(&["T001"]), prefix: Some("M".to_owned()), ..ImportConfig::default() };
    check_with(
        SourceFormat::MeshAscii,
        &files,
        &config,
        expect![[r#"
        M:D000001 [Preferred "Rings"] types=T001
        read 3
        dropped 2 concept: semantic type
        dropped 1 parent: tree number not in the files
    "#]],
    );
}

#[test]
fn broken_mesh_records_are_errors_with_their_line() {
    check(
        SourceFormat::MeshAscii,
        "MH = Rings\n",
        expect![[r#"
        error: input:1: missing `*NEWRECORD` at the start of a record
        hint: use an unmodified dYYYY.bin, cYYYY.bin or qYYYY.bin from NLM
    "#]],
    );
    check(
        SourceFormat::MeshAscii,
        "*NEWRECORD\nMH = Rings\n*NEWRECORD\n",
        expect![[r#"
        error: input:1: the record has no UI
        hint: none
    "#]],
    );
    check(
        SourceFormat::MeshAscii,
        "*NEWRECORD\nMH = Rings\nUI = D1\nUI = D2\n",
        expect![[r#"
        error: input:4: a second UI in one record: D2
        hint: none
    "#]],
    );
    check(
        SourceFormat::MeshAscii,
        "*NEWRECORD\nMH Rings\n",
        expect![[r#"
        error: input:2: ` = ` is missing
        hint: the format is `KEY = value`
    "#]],
    );
}

#[test]
fn source_formats_are_detected_by_content() {
    let files = [GENES, DISEASES, CHEMICALS, NAMES, DESCRIPTORS];
    let told =
        files.map(|text| SourceFormat::detect_content("input", text.as_bytes()).map_or("none", SourceFormat::name));
    assert_eq!(told, ["gene-info", "ctd", "ctd", "taxonomy", "mesh-ascii"]);
}
