//! Inputs to start from, all of them made up.

use canonym_core::kb::import::SourceFormat;

/// The names of the files that a source of the format has; all but tables that belong together have one.
pub fn table_names(format: SourceFormat) -> &'static [&'static str] {
    match format {
        SourceFormat::Rrf => &["MRCONSO.RRF", "MRSTY.RRF", "MRDEF.RRF", "MRREL.RRF", "MRRANK.RRF"],
        SourceFormat::Taxonomy => &["names.dmp", "nodes.dmp", "merged.dmp"],
        SourceFormat::Rf2 => &[
            "sct2_Concept_Snapshot_X_20200101.txt",
            "sct2_Description_Snapshot-en_X_20200101.txt",
            "der2_cRefset_LanguageSnapshot-en_X_20200101.txt",
            "sct2_Relationship_Snapshot_X_20200101.txt",
            "sct2_TextDefinition_Snapshot-en_X_20200101.txt",
        ],
        _ => &["input"],
    }
}

/// Documents in every format.
pub fn corpus_seeds() -> Vec<Vec<u8>> {
    [
        "7|t|A circle (CRC) in a square.\n7|a|Two lines, é and 😀.\n7\t2\t8\tcircle\tShape\tS1\n7\t22\t28\tsquare\tShape\tS2|S3\n7\tCID\tS1\tS2\n\n",
        "8|t|\n8|a|\n8\t0\t0\t\tShape\t-1\n\n9|t|red and blue lines\n9\t0\t18\tred and blue lines\tShape\tS1|S2\tred lines|blue lines\n",
        "{\"id\":\"7\",\"text\":\"A circle in 😀.\",\"annotations\":[{\"spans\":[[2,8]],\"text\":\"circle\",\"type\":\"Shape\",\"score\":0.5,\"nil\":false,\"candidates\":[{\"id\":\"S1\",\"name\":\"Circle\",\"score\":0.5}]}]}\n",
        "{\"id\":\"8\",\"text\":\"red and blue lines\",\"sections\":[{\"kind\":\"title\",\"span\":[0,3]}],\"annotations\":[{\"spans\":[[0,3],[13,18]],\"text\":\"red lines\",\"ids\":[\"S1\"]}]}\n{}\n",
        "Some words.\r\n\r\nOther words.",
        "<?xml version=\"1.0\"?><collection><document><id>7</id><passage><offset>0</offset><text>A circle</text><annotation id=\"1\"><infon key=\"type\">Shape</infon><location offset=\"2\" length=\"6\"/><text>circle</text></annotation></passage></document></collection>",
        "{\"documents\":[{\"id\":\"7\",\"passages\":[{\"offset\":0,\"text\":\"A circle\",\"annotations\":[{\"id\":\"1\",\"infons\":{\"type\":\"Shape\"},\"text\":\"circle\",\"locations\":[{\"offset\":2,\"length\":6}]}]}]}]}",
        "<?xml version=\"1.0\"?><PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version=\"1\">7</PMID><Article><ArticleTitle>A <i>circle</i> &lt; 3</ArticleTitle><Abstract><AbstractText Label=\"AIM\" NlmCategory=\"OBJECTIVE\">To draw.</AbstractText><AbstractText>Drawn.</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>",
        "{\"name\":\"x\",\"language\":\"en\",\"documents\":[{\"begin\":0,\"length\":8,\"text\":\"A circle\",\"id\":\"7\",\"title\":null,\"annotations\":[{\"begin\":2,\"length\":6,\"text\":\"circle\",\"source\":\"GOLD\",\"confidence\":1.0,\"refId\":\"S1\",\"class\":\"NamedEntityAnnotation\",\"candidates\":[]}]}]}",
        "7||2|8||Shape||circle|square||S1|S2\n7||9|12||Shape||red||S3\n",
        "circle\t2\t8\tU-Shape\tS1\nin\t9\t11\tO\n\n-DOCSTART-\n\nA\tS-Shape\n",
        "A circle and\na 😀 square.\n\x1eT1\tShape 2 8\tcircle\nT2\tShape 2 8;17 23\tcircle square\nN1\tReference T1 GEO:1\tround\nA1\tBig T1 very\nM1\tNegation R1\n#1\tAnnotatorNotes T2\ta note\nR1\tNear Arg1:T1 Arg2:T2\nE1\tShape:T1 Of:T2\n*\tEquiv T1 T2\n",
        "-DOCSTART- (7)\n\nA\tO\t_\ncircle\tB-Shape\tS1\n\n# id = 8\nred circle O\nx B-GEO:7\n",
        "{\"id\":\"7\",\"passages\":[{\"offset\":0,\"infons\":{\"type\":\"title\"},\"text\":\"A circle\",\"annotations\":[],\"relations\":[{\"id\":\"R1\",\"infons\":{\"type\":\"near\"},\"nodes\":[{\"refid\":\"1\",\"role\":\"a\"},{\"refid\":\"2\",\"role\":\"b\"}]}]},{\"offset\":12,\"sentences\":[{\"offset\":12,\"text\":\"in 😀.\",\"annotations\":[{\"id\":\"2\",\"infons\":{\"identifier\":\"S2\",\"type\":\"Shape\"},\"text\":\"😀\",\"locations\":[{\"offset\":15,\"length\":1}]}]}]}]}\n",
        "A\tO\ncircle\tB-Shape\nof\tI-Shape\nlines\tO\n\n",
        "<?xml version=\"1.0\"?><article><front><article-meta><article-id pub-id-type=\"pmc\">7</article-id><title-group><article-title>A <i>circle</i></article-title></title-group><abstract><p>Round.</p></abstract></article-meta></front><body><sec><title>Results</title><p>In<fig><label>1</label><caption><p>Lines.</p></caption></fig> red.</p></sec></body></article>",
        "id;text;x\n7;\"A circle;\n\"\"red\"\"\";\n8;😀;\"\"\n",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}

/// Terminologies in the format; tables that belong together have 0x1e between them.
pub fn import_seeds(format: SourceFormat) -> Vec<Vec<u8>> {
    let own: &[&str] = match format {
        SourceFormat::Tsv => &["S1\tCircle\tround|ring\tCurve|Plane\tAll points.\nS2\tSquare\n\nS1\tDisk\t\t\t\n"],
        SourceFormat::Jsonl => &[
            "{\"id\":\"S1\",\"name\":\"Circle\",\"synonyms\":[\"round\",{\"text\":\"bend\",\"scope\":\"related\"}],\"types\":[\"T\"],\"definition\":\"d\",\"parents\":[\"S2\"],\"alternative_ids\":[\"O:1\"],\"source\":\"s\"}\n{\"id\":\"S2\",\"name\":\"Shape\"}\n",
        ],
        SourceFormat::Biosyn => &["S1|S2||circle\nS1||round|ring\nD000001||disk\n"],
        SourceFormat::Obo => &[
            "format-version: 1.2\ndefault-namespace: geo\n\n[Term]\nid: X:1\nname: circle\nalt_id: X:7\nsynonym: \"round \\\"thing\\\"\" RELATED [a:b]\ndef: \"All points.\" [http://x]\nis_a: X:2 {a=\"b\"} ! shape\nxref: Y:1\n\n[Term]\nid: X:2\nname: shape\n\n[Typedef]\nid: part_of\n\n[Term]\nid: X:3\nname: old\nis_obsolete: true\nreplaced_by: X:1\n",
        ],
        SourceFormat::Obographs => &[
            "{\"graphs\":[{\"id\":\"http://x/geo.owl\",\"nodes\":[{\"id\":\"http://purl.obolibrary.org/obo/X_1\",\"lbl\":\"circle\",\"type\":\"CLASS\",\"meta\":{\"definition\":{\"val\":\"d\"},\"synonyms\":[{\"pred\":\"hasExactSynonym\",\"val\":\"round\"}],\"xrefs\":[{\"val\":\"Y:1\"}],\"deprecated\":false,\"basicPropertyValues\":[{\"pred\":\"http://www.geneontology.org/formats/oboInOwl#hasAlternativeId\",\"val\":\"X:9\"}]}},{\"id\":\"http://purl.obolibrary.org/obo/X_2\",\"lbl\":\"shape\",\"type\":\"CLASS\"}],\"edges\":[{\"sub\":\"http://purl.obolibrary.org/obo/X_1\",\"pred\":\"is_a\",\"obj\":\"http://purl.obolibrary.org/obo/X_2\"}]}]}",
        ],
        SourceFormat::Rrf => &[
            "C0000001|ENG|P|L1|PF|S1|Y|A1||M1|D1|AAA|PT|c1|Circle|0|N|256|\nC0000001|ENG|S|L2|PF|S2|Y|A2||M1|D1|BBB|SY|c2|Ring|0|N||\nC0000002|ENG|P|L5|PF|S5|Y|A5||M2|D2|AAA|PT|c5|Square|0|O||\n\x1eC0000001|T047|B2.2|Round thing|AT1|256|\n\x1eC0000001|A1|AT6||AAA|A curve.|N||\n\x1eC0000001|A1|AUI|PAR|C0000002|A5|AUI|isa|R1||AAA|AAA|||N||\n\x1e0400|BBB|SY|N|\n0300|AAA|PT|N|\n",
        ],
        SourceFormat::MeshXml => &[
            "<?xml version=\"1.0\"?>\n<DescriptorRecordSet LanguageCode=\"eng\">\n<DescriptorRecord DescriptorClass=\"1\"><DescriptorUI>D000001</DescriptorUI><DescriptorName><String>Circles</String></DescriptorName><TreeNumberList><TreeNumber>A01.111</TreeNumber></TreeNumberList><ConceptList><Concept PreferredConceptYN=\"Y\"><ConceptUI>M1</ConceptUI><ConceptName><String>Circles</String></ConceptName><ScopeNote>Round &amp; closed.</ScopeNote><ConceptRelationList><ConceptRelation RelationName=\"NRW\"><Concept1UI>M1</Concept1UI><Concept2UI>M2</Concept2UI></ConceptRelation></ConceptRelationList><TermList><Term ConceptPreferredTermYN=\"Y\" RecordPreferredTermYN=\"Y\"><TermUI>T1</TermUI><String>Circles</String></Term></TermList></Concept><Concept PreferredConceptYN=\"N\"><ConceptUI>M2</ConceptUI><TermList><Term><String>Disks</String></Term></TermList></Concept></ConceptList></DescriptorRecord></DescriptorRecordSet>",
            "<SupplementalRecordSet><SupplementalRecord SCRClass=\"1\"><SupplementalRecordUI>C1</SupplementalRecordUI><SupplementalRecordName><String>ring</String></SupplementalRecordName><HeadingMappedToList><HeadingMappedTo><DescriptorReferredTo><DescriptorUI>*D000001</DescriptorUI></DescriptorReferredTo></HeadingMappedTo></HeadingMappedToList><ConceptList><Concept PreferredConceptYN=\"Y\"><ConceptUI>M3</ConceptUI><TermList><Term RecordPreferredTermYN=\"Y\"><String>ring</String></Term></TermList></Concept></ConceptList></SupplementalRecord></SupplementalRecordSet>",
        ],
        SourceFormat::MeshAscii => &[
            "*NEWRECORD\nRECTYPE = D\nMH = Circles\nENTRY = Disks|T109|NON|EQV|NLM\nPRINT ENTRY = Ring\nMN = A01.111\nMS = Round.\nST = T001\nUI = D000001\n\n*NEWRECORD\nRECTYPE = C\nNM = ring\nSY = rings|T1\nHM = *Circles\nUI = C000001\n",
        ],
        SourceFormat::Ctd => &[
            "# head\n# Fields:\n# DiseaseName\tDiseaseID\tAltDiseaseIDs\tDefinition\tParentIDs\tTreeNumbers\tParentTreeNumbers\tSynonyms\n#\nCircle\tMESH:D1\tOMIM:1|OMIM:2\tRound.\tMESH:D2\tA1\tA\tdisk|ring\n",
            "# Fields:\n# ChemicalName,ChemicalID,CasRN,Definition,ParentIDs,TreeNumbers,ParentTreeNumbers,Synonyms\n\"Circle, \"\"round\"\"\",MESH:C1,,,MESH:D2,,,\"disk|ring\"\n",
        ],
        SourceFormat::GeneInfo => &[
            "#tax_id\tGeneID\tSymbol\tLocusTag\tSynonyms\tdbXrefs\tchromosome\tmap_location\tdescription\ttype_of_gene\tSymbol_from_nomenclature_authority\tFull_name_from_nomenclature_authority\tNomenclature_status\tOther_designations\tModification_date\tFeature_type\n9606\t1\tCRC1\t-\tRND|DSK\tHGNC:HGNC:5\t19\t19q\tcircle one\tprotein-coding\tCRC1\tcircle one\tO\tround thing\t20200101\t-\n",
        ],
        SourceFormat::Taxonomy => &[
            "1\t|\tall\t|\t\t|\tsynonym\t|\n2\t|\tRotunda\t|\tRotunda <x>\t|\tscientific name\t|\n\x1e1\t|\t1\t|\tno rank\t|\n2\t|\t1\t|\tgenus\t|\n\x1e3\t|\t2\t|\n",
        ],
        SourceFormat::Rf2 => &[
            "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n100\t20200101\t1\t9\t9\n\x1eid\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n1\t20200101\t1\t9\t100\ten\t900000000000003001\tCircle (shape)\t9\n2\t20200101\t1\t9\t100\ten\t900000000000013009\tCircle\t9\n\x1eid\teffectiveTime\tactive\tmoduleId\trefsetId\treferencedComponentId\tacceptabilityId\nx\t20200101\t1\t9\t900000000000509007\t2\t900000000000548007\n\x1eid\teffectiveTime\tactive\tmoduleId\tsourceId\tdestinationId\trelationshipGroup\ttypeId\tcharacteristicTypeId\tmodifierId\n5\t20200101\t1\t9\t100\t101\t0\t116680003\t900000000000011006\t9\n\x1eid\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n8\t20200101\t1\t9\t100\ten\t900000000000550004\tRound.\t9\n",
        ],
        SourceFormat::Owl => &[
            "<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY x \"http://x/\">]><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:rdfs=\"http://www.w3.org/2000/01/rdf-schema#\" xmlns:owl=\"http://www.w3.org/2002/07/owl#\"><owl:Class rdf:about=\"&x;X_1\"><rdfs:label xml:lang=\"en\">circle</rdfs:label><rdfs:subClassOf rdf:resource=\"http://x/X_2\"/><owl:deprecated>false</owl:deprecated></owl:Class></rdf:RDF>",
            "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<http://purl.obolibrary.org/obo/X_1> a owl:Class ; rdfs:label \"circle\"@en ; rdfs:subClassOf <http://purl.obolibrary.org/obo/X_2> .\n",
        ],
    };
    own.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Sentences.
pub fn text_seeds() -> Vec<Vec<u8>> {
    [
        "Familial round fever (FRF) and non-round fever (NRF). FRF, or type II FRFs, was seen by Dr. A. Round.\n\nE. coli (Fig. 2).",
        "breast, skin and/or ovarian cancers and hypo- and hyperthyroidism; types I, II and IV of the shape",
        "poly(A)-binding 2,4-D, TNF-α, β2‑microglobulin, 5 µm, Sjögren’s ﬁbrosis 😀 e\u{301}",
        "short form [SF], the (also called \"ABC\") and 10-12 (n = 12; 95% CI)",
        "a|b|c || 12 left and right ventricular lines/curves",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}

/// Packed and plain files.
pub fn input_seeds() -> Vec<Vec<u8>> {
    let stored: &[u8] =
        b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\x85\x11\x4a\x0d\x05\0\0\0\x05\0\0\0\x05\0\0\0a.txthellohello";
    let gzip: &[u8] = &[
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 0x02, 0, 0x20, 0x30, 0x3a, 0x36, 6, 0,
        0, 0,
    ];
    let zstd: &[u8] =
        &[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0, 0x31, 0, 0, b'h', b'e', b'l', b'l', b'o', b'\n', 0x2b, 0x1c, 0xa1, 0x4e];
    vec![stored.to_vec(), gzip.to_vec(), zstd.to_vec(), b"\xef\xbb\xbfone\r\ntwo\n\nthree".to_vec()]
}
