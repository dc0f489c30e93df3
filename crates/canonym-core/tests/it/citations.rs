//! Citations of PubMed as XML.

use canonym_core::Result;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, Reader};
use canonym_core::input::Input;
use expect_test::{Expect, expect};

use crate::corpus::{data, read, written};

/// An article set of one citation.
fn set(citation: &str) -> String {
    format!(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC \"-//NLM//DTD\" \"pubmed.dtd\">\n<PubmedArticleSet>\n\
         <PubmedArticle><MedlineCitation Status=\"MEDLINE\">{citation}</MedlineCitation><PubmedData><ArticleIdList>\
         <ArticleId IdType=\"pubmed\">9</ArticleId></ArticleIdList></PubmedData></PubmedArticle>\n</PubmedArticleSet>\n"
    )
}

fn check(bytes: &[u8], expect: Expect) {
    let input = Input::from_bytes("a.xml", bytes.to_vec());
    let reader = input.and_then(|input| Reader::from_input(input, Some(CorpusFormat::PubmedXml)));
    let mut shown = String::new();
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return expect.assert_eq(&error.to_string()),
    };
    for item in &mut reader {
        match item {
            Ok(read) => {
                shown.push_str(&format!("{} {:?}\n", read.document.id, read.document.text));
                for section in &read.document.sections {
                    shown.push_str(&format!("  {}: {:?}\n", section.kind, section.span.of(&read.document.text)));
                }
                for one in &read.attributes {
                    shown.push_str(&format!("  {}={}\n", one.name, one.value));
                }
            }
            Err(error) => shown.push_str(&format!("{error} (hint: {})\n", error.hint().unwrap_or("none"))),
        }
    }
    shown.push_str(&format!("deleted: {}\n", reader.counts().n_deleted));
    expect.assert_eq(&shown);
}

#[test]
fn parts_of_an_abstract_keep_their_labels_in_the_text() {
    let citation = "<PMID Version=\"1\">7</PMID><Article><Journal><JournalIssue><PubDate><MedlineDate>1998 Dec</MedlineDate></PubDate>\
        </JournalIssue><Title>Made up</Title></Journal><ArticleTitle>Ca<sup>2+</sup> &amp; <i>x</i>.</ArticleTitle><Abstract>\
        <AbstractText Label=\"AIM\" NlmCategory=\"OBJECTIVE\">To see.</AbstractText><AbstractText Label=\"UNLABELLED\">One\n   <mml:math>\n\
        <mml:mi>α</mml:mi></mml:math> more.</AbstractText><AbstractText/><CopyrightInformation>(c)</CopyrightInformation></Abstract>\
        <VernacularTitle>Anders</VernacularTitle></Article><MeshHeadingList><MeshHeading><DescriptorName UI=\"D1\">A</DescriptorName>\
        </MeshHeading><MeshHeading><DescriptorName UI=\"D2\">B</DescriptorName></MeshHeading></MeshHeadingList><OtherAbstract>\
        <AbstractText>Anders.</AbstractText></OtherAbstract><CommentsCorrectionsList><CommentsCorrections><PMID>8</PMID>\
        </CommentsCorrections></CommentsCorrectionsList>";
    check(
        set(citation).as_bytes(),
        expect![[r#"
        7 "Ca2+ & x. AIM: To see. One α more."
          title: "Ca2+ & x."
          AIM: "AIM: To see."
          abstract: "One α more."
          journal=Made up
          year=1998
          mesh=D1|D2
        deleted: 0
    "#]],
    );
}

#[test]
fn every_kind_of_citation_is_found() {
    check(
        b"<MedlineCitation><PMID>1</PMID><Article><ArticleTitle>Alone.</ArticleTitle></Article></MedlineCitation>",
        expect![[r#"
            1 "Alone."
              title: "Alone."
            deleted: 0
        "#]],
    );
    check(
        b"<PubmedArticleSet><PubmedBookArticle><BookDocument><PMID>2</PMID><Book><BookTitle>A book.</BookTitle></Book>\
          <ArticleTitle>A chapter.</ArticleTitle><Abstract><AbstractText>Text.</AbstractText></Abstract></BookDocument>\
          <PubmedBookData/></PubmedBookArticle><DeleteCitation><PMID>3</PMID><PMID>4</PMID></DeleteCitation></PubmedArticleSet>",
        expect![[r#"
            2 "A chapter. Text."
              title: "A chapter."
              abstract: "Text."
            deleted: 2
        "#]],
    );
    check(
        b"<MedlineCitationSet><MedlineCitation><PMID>5</PMID></MedlineCitation></MedlineCitationSet>",
        expect![[r#"
        5 ""
        deleted: 0
    "#]],
    );
    check(
        b"<PubmedArticleSet></PubmedArticleSet>",
        expect![[r#"
        deleted: 0
    "#]],
    );
}

#[test]
fn citations_of_a_set_follow_each_other() {
    let one = |id: u32| {
        format!(
            "<PubmedArticle><MedlineCitation><PMID>{id}</PMID></MedlineCitation><PubmedData><ArticleIdList/></PubmedData></PubmedArticle>\n"
        )
    };
    let bytes = format!("<PubmedArticleSet>{}</PubmedArticleSet>", (1..=3).map(one).collect::<String>());
    let ids: Vec<String> = read(bytes.as_bytes(), None).unwrap().into_iter().map(|read| read.document.id).collect();
    assert_eq!(ids, ["1", "2", "3"]);
}

#[test]
fn other_records_are_refused() {
    check(
        b"",
        expect![[r#"
        a.xml:1: no XML element found (hint: none)
        deleted: 0
    "#]],
    );
    check(
        b"<pmc-articleset><article/></pmc-articleset>",
        expect![[r#"
        a.xml:1: expected PubMed citations, found `pmc-articleset` (hint: citations are in a `PubmedArticleSet`)
        deleted: 0
    "#]],
    );
    check(
        b"<PubmedArticleSet>\n<MedlineCitation><Article/></MedlineCitation>\n<MedlineCitation><PMID>2</PMID></MedlineCitation></PubmedArticleSet>",
        expect![[r#"
            a.xml:2: the citation has no PMID (hint: none)
            2 ""
            deleted: 0
        "#]],
    );
    check(
        b"<PubmedArticleSet><MedlineCitation><PMID>2</PMID><Article>",
        expect![[r#"
        a.xml:1: the file is truncated: 3 elements are not closed (hint: none)
        deleted: 0
    "#]],
    );
    check(b"\xfe\xff\0<", expect!["a.xml:1: the text is UTF-16"]);
}

#[test]
fn written_citations_round_trip() {
    let bytes = set(
        "<PMID>7</PMID><Article><ArticleTitle>A &lt; b.</ArticleTitle><Abstract><AbstractText Label=\"A &amp; M\">To see.</AbstractText><AbstractText>More.</AbstractText></Abstract></Article>",
    );
    let documents = read(bytes.as_bytes(), None).unwrap();
    let back = read(&written(&documents, CorpusFormat::PubmedXml).unwrap(), None).unwrap();
    assert_eq!(back, documents);
    let plain = read(b"{\"id\":\"1\",\"text\":\"One. Two.\"}", None).unwrap();
    let back = read(&written(&plain, CorpusFormat::PubmedXml).unwrap(), None).unwrap();
    assert_eq!(back[0].document.text, "One. Two.");
}

#[test]
fn real_citations_are_read() {
    let mut shown = String::new();
    for name in ["pubmed1", "pubmed2", "pubmed4", "pubmed5", "pubmed6", "pubmed7", "efetch_pmc"] {
        let Some(path) = data(&format!("formats/pubmed-xml/{name}.xml")) else { return };
        let documents: Result<Vec<AnnotatedDocument>> =
            Reader::open(&path, Some(CorpusFormat::PubmedXml)).unwrap().collect();
        match documents {
            Ok(documents) => {
                for read in documents {
                    let kinds: Vec<&str> = read.document.sections.iter().map(|section| section.kind.as_str()).collect();
                    let n_chars = read.document.text.chars().count();
                    shown.push_str(&format!(
                        "{name} {} {n_chars} {kinds:?} {}\n",
                        read.document.id,
                        read.attributes.len()
                    ));
                }
            }
            Err(error) => shown.push_str(&format!("{name} {}\n", error.to_string().rsplit_once(": ").unwrap().1)),
        }
    }
    expect![[r#"
        pubmed1 12091962 66 ["title"] 3
        pubmed1 9997 770 ["title", "abstract"] 3
        pubmed2 11748933 1989 ["title", "abstract"] 3
        pubmed2 11700088 1233 ["title", "abstract"] 2
        pubmed4 27797938 1854 ["title", "OBJECTIVE", "DESIGN", "RESULTS", "CONCLUSIONS"] 3
        pubmed5 28775130 2031 ["title", "OBJECTIVES", "METHODS", "RESULTS", "CONCLUSIONS"] 2
        pubmed6 30108519 2408 ["title", "abstract"] 2
        pubmed7 29963580 1569 ["title", "abstract"] 2
        efetch_pmc expected PubMed citations, found `pmc-articleset`
    "#]]
    .assert_eq(&shown);
}
