//! What the importer of MeSH as XML reads and drops, on made-up files.

use canonym_core::kb::import::{ImportConfig, SourceFormat};
use expect_test::{Expect, expect};

use crate::import::{check_with, words};

fn check(text: &str, expect: Expect) {
    check_with(SourceFormat::MeshXml, &[("desc.xml", text)], &ImportConfig::default(), expect);
}

pub const DESCRIPTORS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE DescriptorRecordSet SYSTEM "desc.dtd">
<DescriptorRecordSet LanguageCode = "eng">
<DescriptorRecord DescriptorClass = "1">
 <DescriptorUI>D000002</DescriptorUI>
 <DescriptorName>
  <String>Rings, Small</String>
 </DescriptorName>
 <AllowableQualifiersList>
  <AllowableQualifier>
   <QualifierReferredTo><QualifierUI>Q000008</QualifierUI><QualifierName><String>use</String></QualifierName></QualifierReferredTo>
  </AllowableQualifier>
 </AllowableQualifiersList>
 <SeeRelatedList>
  <SeeRelatedDescriptor><DescriptorReferredTo><DescriptorUI>D000009</DescriptorUI></DescriptorReferredTo></SeeRelatedDescriptor>
 </SeeRelatedList>
 <TreeNumberList>
  <TreeNumber>C01.200.100</TreeNumber>
  <TreeNumber>D02</TreeNumber>
 </TreeNumberList>
 <ConceptList>
  <Concept PreferredConceptYN="N">
   <ConceptUI>M2</ConceptUI>
   <ConceptName><String>Ringlets</String></ConceptName>
   <ScopeNote>Smaller ones.</ScopeNote>
   <ConceptRelationList>
    <ConceptRelation RelationName="NRW"><Concept1UI>M1</Concept1UI><Concept2UI>M2</Concept2UI></ConceptRelation>
   </ConceptRelationList>
   <TermList><Term RecordPreferredTermYN="N"><TermUI>T3</TermUI><String>Ringlets</String></Term></TermList>
  </Concept>
  <Concept PreferredConceptYN="Y">
   <ConceptUI>M1</ConceptUI>
   <ConceptName><String>Rings, Small</String></ConceptName>
   <RegistryNumberList><RegistryNumber>0</RegistryNumber><RegistryNumber>50-00-0</RegistryNumber></RegistryNumberList>
   <ScopeNote>A ring that is &lt; 1 &amp; round.
   </ScopeNote>
   <ConceptRelationList>
    <ConceptRelation RelationName="NRW"><Concept1UI>M1</Concept1UI><Concept2UI>M2</Concept2UI></ConceptRelation>
    <ConceptRelation RelationName="NRW"><Concept1UI>M3</Concept1UI><Concept2UI>M1</Concept2UI></ConceptRelation>
   </ConceptRelationList>
   <TermList>
    <Term RecordPreferredTermYN="N"><TermUI>T2</TermUI><String>Small Rings</String></Term>
    <Term RecordPreferredTermYN="Y"><TermUI>T1</TermUI><String>Rings, Small</String></Term>
   </TermList>
  </Concept>
  <Concept PreferredConceptYN="N">
   <ConceptUI>M3</ConceptUI>
   <TermList><Term RecordPreferredTermYN="N"><String>Round Things</String></Term></TermList>
  </Concept>
  <Concept PreferredConceptYN="N">
   <ConceptUI>M4</ConceptUI>
   <TermList><Term RecordPreferredTermYN="N"><String>Hoops</String></Term></TermList>
  </Concept>
 </ConceptList>
</DescriptorRecord>
<DescriptorRecord DescriptorClass = "1">
 <DescriptorUI>D000001</DescriptorUI>
 <DescriptorName><String>Rings</String></DescriptorName>
 <TreeNumberList><TreeNumber>C01.200</TreeNumber></TreeNumberList>
 <ConceptList>
  <Concept PreferredConceptYN="Y">
   <ConceptUI>M5</ConceptUI>
   <SemanticTypeList>
    <SemanticType><SemanticTypeUI>T001</SemanticTypeUI><SemanticTypeName>Shape</SemanticTypeName></SemanticType>
   </SemanticTypeList>
   <TermList><Term RecordPreferredTermYN="Y"><String>Rings</String></Term></TermList>
  </Concept>
 </ConceptList>
</DescriptorRecord>
</DescriptorRecordSet>
"#;

const SUPPLEMENTARY: &str = r#"<SupplementalRecordSet>
<SupplementalRecord SCRClass="3">
 <SupplementalRecordUI>C000001</SupplementalRecordUI>
 <SupplementalRecordName><String>ring 7</String></SupplementalRecordName>
 <Note>seven rings</Note>
 <HeadingMappedToList>
  <HeadingMappedTo><DescriptorReferredTo><DescriptorUI>*D000001</DescriptorUI><DescriptorName><String>Rings</String></DescriptorName></DescriptorReferredTo></HeadingMappedTo>
  <HeadingMappedTo><DescriptorReferredTo><DescriptorUI>D000001</DescriptorUI></DescriptorReferredTo><QualifierReferredTo><QualifierUI>Q1</QualifierUI></QualifierReferredTo></HeadingMappedTo>
 </HeadingMappedToList>
 <PharmacologicalActionList>
  <PharmacologicalAction><DescriptorReferredTo><DescriptorUI>D000007</DescriptorUI></DescriptorReferredTo></PharmacologicalAction>
 </PharmacologicalActionList>
 <ConceptList><Concept PreferredConceptYN="Y"><ConceptUI>M6</ConceptUI><TermList><Term><String>R-7</String></Term><Term><String> </String></Term></TermList></Concept></ConceptList>
</SupplementalRecord>
</SupplementalRecordSet>
"#;

#[test]
fn mesh_concepts_give_scopes_trees_and_parents() {
    let files = [("desc.xml", DESCRIPTORS), ("supp.xml", SUPPLEMENTARY)];
    let config = ImportConfig { xrefs: true, ..ImportConfig::default() };
    check_with(
        SourceFormat::MeshXml,
        &files,
        &config,
        expect![[r#"
            MESH:D000002 [Preferred "Rings, Small"] [Narrow "Ringlets"] [Exact "Small Rings"] [Broad "Round Things"] [Related "Hoops"] types=C01,D02 alternatives=CAS:50-00-0 xrefs=CAS:50-00-0 definition=A ring that is < 1 & round.
            MESH:D000001 [Preferred "Rings"] types=T001
            MESH:C000001 [Preferred "ring 7"] [Exact "R-7"] types=SCR_Disease parents=MESH:D000001 definition=seven rings
            MESH:D000002 parents=MESH:D000001
            read 3
            dropped 1 definition: not of the preferred concept
            dropped 1 name: empty
            dropped 1 parent: tree number not in the files
        "#]],
    );
    let config =
        ImportConfig { prefix: Some("M".to_owned()), semantic_types: words(&["C01"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::MeshXml,
        &files,
        &config,
        expect![[r#"
            M:D000002 [Preferred "Rings, Small"] [Narrow "Ringlets"] [Exact "Small Rings"] [Broad "Round Things"] [Related "Hoops"] types=C01,D02 xrefs=CAS:50-00-0 definition=A ring that is < 1 & round.
            read 3
            dropped 2 concept: semantic type
            dropped 1 definition: not of the preferred concept
            dropped 1 name: empty
            dropped 1 parent: tree number not in the files
        "#]],
    );
}

#[test]
fn qualifiers_are_records_too() {
    check(
        "<QualifierRecordSet><QualifierRecord><QualifierUI>Q000001</QualifierUI><QualifierName><String>use</String></QualifierName></QualifierRecord></QualifierRecordSet>",
        expect![[r#"
            MESH:Q000001 [Preferred "use"]
            read 1
        "#]],
    );
}

#[test]
fn broken_mesh_is_an_error_with_its_line() {
    let cut = DESCRIPTORS.find("Small Rings").unwrap();
    check(
        &DESCRIPTORS[..cut],
        expect![[r#"
        error: desc.xml:42: the file is truncated: 7 elements are not closed
        hint: none
    "#]],
    );
    check(
        &DESCRIPTORS.replace("&lt;", "&bomb;"),
        expect![[r#"
        error: desc.xml:35: unknown entity `&bomb;`
        hint: use the character itself, or a numeric reference such as `&#945;`
    "#]],
    );
    check(
        &DESCRIPTORS.replace("<DescriptorUI>D000001</DescriptorUI>", ""),
        expect![[r#"
        error: desc.xml:56: the record has no DescriptorUI
        hint: none
    "#]],
    );
    check(
        "<DescriptorRecordSet>\n<Book/></DescriptorRecordSet>",
        expect![[r#"
        error: desc.xml:2: `Book` is not a MeSH element
        hint: use an unmodified descYYYY.xml, suppYYYY.xml or qualYYYY.xml from NLM
    "#]],
    );
    check(
        "<DescriptorRecordSet>\n</DescriptorRecordSet>",
        expect![[r#"
        error: desc.xml:1: no concepts in mesh-xml format found
        hint: check the file and its format (option `--format`)
    "#]],
    );
    check(
        &format!("<DescriptorRecordSet><DescriptorRecord>{}", "<a>".repeat(100)),
        expect![[r#"
        error: desc.xml: line 1: elements are nested deeper than 64
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
    check(
        "",
        expect![[r#"
        error: desc.xml:1: no XML element found
        hint: none
    "#]],
    );
}

#[test]
fn endless_record_is_refused() {
    let text = format!("<DescriptorRecord>{}", "<TreeNumberList/>".repeat(1 << 20));
    check(
        &text,
        expect![[r#"
        error: desc.xml: the record at line 1 is longer than 16777216 bytes
        hint: check that this is the right file; if it is, split it into smaller ones
    "#]],
    );
}

#[test]
fn mesh_is_detected_by_its_elements() {
    for text in [DESCRIPTORS, SUPPLEMENTARY] {
        assert_eq!(SourceFormat::detect_content("input", text.as_bytes()), Some(SourceFormat::MeshXml));
    }
    assert_eq!(SourceFormat::detect_content("input", b"<html>"), None);
}
