//! What the OWL importer reads and drops, and what it refuses.

use canonym_core::kb::import::{ImportConfig, SourceFormat};
use expect_test::{Expect, expect};

use crate::import::{check_with, words};

/// Classes between the usual declarations, in RDF/XML.
fn rdf_xml(classes: &str) -> String {
    format!(
        r#"<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
  <!ENTITY obo "http://purl.obolibrary.org/obo/" >
  <!ENTITY shape "&obo;SHAPE_" >
]>
<rdf:RDF xmlns="&obo;shape.owl#" xml:base="http://purl.obolibrary.org/obo/shape.owl"
     xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
     xmlns:owl="http://www.w3.org/2002/07/owl#" xmlns:obo="http://purl.obolibrary.org/obo/"
     xmlns:skos="http://www.w3.org/2004/02/skos/core#" xmlns:oboInOwl="http://www.geneontology.org/formats/oboInOwl#">
{classes}
</rdf:RDF>
"#
    )
}

/// A class with everything that is read.
const CLASSES: &str = r#"
<owl:Ontology rdf:about="&obo;shape.owl"><rdfs:label>Shapes</rdfs:label></owl:Ontology>
<owl:AnnotationProperty rdf:about="&obo;IAO_0000115"><rdfs:label>definition</rdfs:label></owl:AnnotationProperty>
<!-- <owl:Class rdf:about="&shape;9"> a comment </owl:Class> -->
<owl:Class rdf:about="&shape;1">
  <owl:equivalentClass><owl:Class><owl:intersectionOf rdf:parseType="Collection">
    <rdf:Description rdf:about="&shape;2"/><owl:Restriction><owl:onProperty rdf:resource="&obo;part_of"/>
    <owl:someValuesFrom rdf:resource="&shape;3"/></owl:Restriction>
  </owl:intersectionOf></owl:Class></owl:equivalentClass>
  <rdfs:subClassOf rdf:resource="&shape;2"/>
  <rdfs:subClassOf><owl:Restriction><owl:onProperty rdf:resource="&obo;part_of"/></owl:Restriction></rdfs:subClassOf>
  <rdfs:label xml:lang="en">circle &amp; disc</rdfs:label>
  <rdfs:label xml:lang="de">Kreis</rdfs:label>
  <skos:altLabel xml:lang="en-GB">round</skos:altLabel>
  <oboInOwl:hasExactSynonym>ring</oboInOwl:hasExactSynonym>
  <oboInOwl:hasNarrowSynonym>unit circle</oboInOwl:hasNarrowSynonym>
  <oboInOwl:hasBroadSynonym>curve</oboInOwl:hasBroadSynonym>
  <oboInOwl:hasRelatedSynonym>wheel</oboInOwl:hasRelatedSynonym>
  <obo:IAO_0000115>All points at one distance.</obo:IAO_0000115>
  <oboInOwl:hasAlternativeId>SHAPE:11</oboInOwl:hasAlternativeId>
  <oboInOwl:hasDbXref>GEO:4</oboInOwl:hasDbXref>
  <oboInOwl:hasOBONamespace>plane</oboInOwl:hasOBONamespace>
</owl:Class>
<owl:Axiom><owl:annotatedSource rdf:resource="&shape;1"/><rdfs:label>of an axiom</rdfs:label></owl:Axiom>
<owl:Class rdf:about="&shape;2"><rdfs:label>figure</rdfs:label></owl:Class>
<owl:Class rdf:about="&shape;3">
  <rdfs:label>old figure</rdfs:label><owl:deprecated rdf:datatype="http://www.w3.org/2001/XMLSchema#boolean">true</owl:deprecated>
  <obo:IAO_0100001 rdf:resource="&shape;2"/>
</owl:Class>
<owl:Class rdf:about="http://www.orpha.net/ORDO/Orphanet_58"><rdfs:label>third</rdfs:label></owl:Class>
<owl:Class rdf:about="http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#C2991"><rdfs:label>fourth</rdfs:label></owl:Class>
<owl:Class rdf:about="http://example.org/things#fifth"><rdfs:label>fifth</rdfs:label></owl:Class>
<owl:NamedIndividual rdf:about="&obo;individual"><rdfs:label>somebody</rdfs:label></owl:NamedIndividual>
"#;

/// The same kind of content as Turtle, with what is said of one class in two places.
pub const TURTLE: &str = r#"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix obo: <http://purl.obolibrary.org/obo/> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
obo:SHAPE_1 rdfs:label "circle"@en , "Kreis"@de .
obo:SHAPE_2 a owl:Class ; skos:prefLabel "figure" ; skos:definition """What can
be drawn.""" ; rdfs:subClassOf [ a owl:Restriction ] .
obo:SHAPE_1 a owl:Class ; rdfs:subClassOf obo:SHAPE_2 ; skos:altLabel "ring" .
obo:SHAPE_3 rdfs:label "of no type" .
"#;

/// A whole file with declarations and one class.
pub const SMALL_XML: &str = r#"<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY owl "http://www.w3.org/2002/07/owl#">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="&owl;"><!-- one class -->
<owl:Class rdf:about="http://purl.obolibrary.org/obo/X_1"><rdfs:label>circle</rdfs:label>
<rdfs:comment><![CDATA[<b>]]></rdfs:comment><rdfs:subClassOf rdf:resource='http://purl.obolibrary.org/obo/X_2'/></owl:Class>
</rdf:RDF>
"#;

fn check(text: &str, config: &ImportConfig, expected: Expect) {
    check_with(SourceFormat::Owl, &[("shape.owl", text)], config, expected);
}

#[test]
fn classes_of_rdf_xml_become_concepts() {
    check(
        &rdf_xml(CLASSES),
        &ImportConfig::default(),
        expect![[r#"
            SHAPE:1 [Preferred "circle & disc"] [Exact "round"] [Exact "ring"] [Narrow "unit circle"] [Broad "curve"] [Related "wheel"] parents=SHAPE:2 alternatives=SHAPE:11 xrefs=GEO:4 definition=All points at one distance. source=plane
            SHAPE:2 [Preferred "figure"]
            SHAPE:2 alternatives=SHAPE:3
            Orphanet:58 [Preferred "third"]
            NCIT:C2991 [Preferred "fourth"]
            http://example.org/things#fifth [Preferred "fifth"]
            read 6
            dropped 1 name: language
            dropped 1 relation: not a named class
            dropped 3 subject: not a class
            dropped 1 term: obsolete
        "#]],
    );
    let config = ImportConfig {
        xrefs: true,
        keep_obsolete: true,
        languages: words(&["DE", "en"]),
        prefix: Some("THING".to_owned()),
        ..ImportConfig::default()
    };
    check(
        &rdf_xml(CLASSES),
        &config,
        expect![[r#"
            SHAPE:1 [Preferred "Kreis"] [Exact "circle & disc"] [Exact "round"] [Exact "ring"] [Narrow "unit circle"] [Broad "curve"] [Related "wheel"] parents=SHAPE:2 alternatives=SHAPE:11,GEO:4 xrefs=GEO:4 definition=All points at one distance. source=plane
            SHAPE:2 [Preferred "figure"]
            SHAPE:3 [Preferred "old figure"]
            Orphanet:58 [Preferred "third"]
            NCIT:C2991 [Preferred "fourth"]
            THING:fifth [Preferred "fifth"]
            read 6
            dropped 1 relation: not a named class
            dropped 3 subject: not a class
        "#]],
    );
    let plane = ImportConfig { sources: words(&["plane"]), ..ImportConfig::default() };
    check(
        &rdf_xml(CLASSES),
        &plane,
        expect![[r#"
            SHAPE:1 [Preferred "circle & disc"] [Exact "round"] [Exact "ring"] [Narrow "unit circle"] [Broad "curve"] [Related "wheel"] parents=SHAPE:2 alternatives=SHAPE:11 xrefs=GEO:4 definition=All points at one distance. source=plane
            SHAPE:2 alternatives=SHAPE:3
            read 6
            dropped 4 concept: source
            dropped 1 name: language
            dropped 1 relation: not a named class
            dropped 3 subject: not a class
            dropped 1 term: obsolete
        "#]],
    );
}

#[test]
fn turtle_statements_about_a_class_are_merged() {
    check(
        TURTLE,
        &ImportConfig::default(),
        expect![[r#"
        SHAPE:1 [Preferred "circle"] [Exact "ring"] parents=SHAPE:2
        SHAPE:2 [Preferred "figure"] definition=What can
        be drawn.
        read 2
        dropped 1 name: language
        dropped 1 relation: not a named class
        dropped 1 subject: not a class
    "#]],
    );
}

#[test]
fn malformed_files_are_errors_with_lines() {
    let none = ImportConfig::default();
    check(
        &rdf_xml("<owl:Class rdf:about=\"&shape;1\">\n</owl:Thing>"),
        &none,
        expect![[r#"
        error: shape.owl:11: invalid RDF/XML: ill-formed document: expected `</owl:Class>`, but `</owl:Thing>` was found
        hint: none
    "#]],
    );
    check(
        &rdf_xml("<owl:Class rdf:about=\"&unknown;1\"/>"),
        &none,
        expect![[r#"
        error: shape.owl:10: invalid RDF/XML: at 1..8: unrecognized entity `unknown`
        hint: none
    "#]],
    );
    let whole = rdf_xml(CLASSES);
    check(
        &whole[..whole.find("</owl:Class>\n<owl:Axiom>").unwrap() + 13],
        &none,
        expect![[r#"
        error: shape.owl:32: the file is truncated
        hint: download or export it again
    "#]],
    );
    check(
        &TURTLE[..TURTLE.len() - 20],
        &none,
        expect![[r#"
        error: shape.owl:9: invalid Turtle: Unexpected end
        hint: none
    "#]],
    );
    check(
        "@prefix a: <b> .\na:b a:c .\n",
        &none,
        expect![[r#"
        error: shape.owl:2: invalid Turtle: . is not a valid RDF object
        hint: none
    "#]],
    );
    check(
        "<?xml version=\"1.0\"?>\n<Ontology xmlns=\"http://www.w3.org/2002/07/owl#\"/>",
        &none,
        expect![[r#"
        error: shape.owl:1: OWL/XML is not supported
        hint: convert the ontology to RDF/XML, Turtle or OBO, for example with ROBOT
    "#]],
    );
    check(
        "Prefix(:=<http://example.org/>)\nOntology(<a>)\n",
        &none,
        expect![[r#"
        error: shape.owl:1: OWL functional syntax is not supported
        hint: convert the ontology to RDF/XML, Turtle or OBO, for example with ROBOT
    "#]],
    );
    check(
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>",
        &none,
        expect![[r#"
        error: shape.owl:1: no concepts in owl format found
        hint: check the file and its format (option `--format`)
    "#]],
    );
}

#[test]
fn entities_that_grow_are_refused() {
    let none = ImportConfig::default();
    let nested: String = (1..30).map(|n| format!("<!ENTITY e{n} \"&e{};&e{};\">\n", n - 1, n - 1)).collect();
    let bomb = format!("<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY e0 \"ha\">\n{nested}]>\n<a>&e29;</a>");
    check(
        &bomb,
        &none,
        expect![[r#"
        error: shape.owl: entity `e5` expands to more than 256 bytes, near line 31
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
    let hidden = bomb.replace("<!ENTITY e0 \"ha\">", "<!ENTITY e0 \"]\">");
    check(
        &hidden,
        &none,
        expect![[r#"
        error: shape.owl: an entity is declared outside the document type declaration, near line 2
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
    let later = "<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY e \"<\">]>\n<!-- <!ENTITY f \"&e;\"> -->";
    check(
        later,
        &none,
        expect![[r#"
        error: shape.owl: an entity is declared outside the document type declaration, near line 2
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
    let deep = format!("<?xml version=\"1.0\"?>\n{}", "<a>".repeat(600));
    check(
        &deep,
        &none,
        expect![[r#"
        error: shape.owl: elements are nested deeper than 512, near line 1
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
    let long = rdf_xml(&format!(
        "<owl:Class rdf:about=\"&shape;1\"><rdfs:label>{}</rdfs:label></owl:Class>",
        "a".repeat(2 << 20)
    ));
    check(
        &long,
        &none,
        expect![[r#"
        error: shape.owl: a statement or an element is longer than 1048576 bytes, near line 9
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
}

#[test]
fn the_format_is_detected_by_name_and_content() {
    let cases = [
        ("a.owl", "<anything/>"),
        ("a.xml", "<?xml version=\"1.0\"?>\n<rdf:RDF\n"),
        ("a", "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"),
        ("a.ttl", "# a comment\n"),
    ];
    for (name, text) in cases {
        assert_eq!(SourceFormat::detect_content(name, text.as_bytes()), Some(SourceFormat::Owl), "{name}");
    }
    assert_ne!(SourceFormat::detect_content("a.tsv", b"S1\t@prefix\n"), Some(SourceFormat::Owl));
}
