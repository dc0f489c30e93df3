//! Minimal CoNLL files.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::corpus::{Reader, Writer, format, jsonl};

fn read(text: &str, tags: Tags) -> (Vec<Result<AnnotatedDocument>>, u64) {
    let input = Input::from_bytes("in.conll", text.as_bytes().to_vec()).unwrap();
    let mut reader = Reader::from_input(input, Some(CorpusFormat::Conll)).unwrap().with_tags(tags);
    let items = reader.by_ref().collect();
    (items, reader.counts().n_broken_tags)
}

/// The documents read, as JSON lines, and the number of mentions with invalid tags.
fn check_tags(text: &str, tags: &str, expect: Expect) {
    let (items, n_broken) = read(text, tags.parse().unwrap());
    let (mut shown, mut back) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Ok(read) => {
                jsonl::write(&read, &mut shown).unwrap();
                write(&read, Scheme::Bio, &mut back).unwrap();
            }
            Err(error) => shown.extend(format!("{error} (hint: {})\n", error.hint().unwrap_or("none")).bytes()),
        }
    }
    if n_broken > 0 {
        shown.extend(format!("{n_broken} broken\n").bytes());
    }
    if tags == "auto" && !text.contains("gout\tDisease") && !back.is_empty() {
        assert_eq!(String::from_utf8(back).unwrap(), text, "unchanged lines are written as they were");
    }
    expect.assert_eq(&String::from_utf8(shown).unwrap());
}

fn check(text: &str, expect: Expect) {
    check_tags(text, "auto", expect);
}

#[test]
fn schemes_are_detected_from_tag_letters() {
    check(
        "No\tO\nchest\tB-Sign\npain\tI-Sign\n,\tO\n\ngout\tB-Disease\nflu\tB-Disease\n",
        expect![[r#"
        {"id":"in","text":"No chest pain ,\ngout flu","annotations":[{"spans":[[3,13]],"text":"chest pain","type":"Sign","ids":[]},{"spans":[[16,20]],"text":"gout","type":"Disease","ids":[]},{"spans":[[21,24]],"text":"flu","type":"Disease","ids":[]}]}
    "#]],
    );
    check(
        "chest NN S-Place\nwall NN B-Sign\npain NN E-Sign\n",
        expect![[r#"
        {"id":"in","text":"chest wall pain","annotations":[{"spans":[[0,5]],"text":"chest","type":"Place","ids":[]},{"spans":[[6,15]],"text":"wall pain","type":"Sign","ids":[]}]}
    "#]],
    );
    check(
        "chest\tU-Place\nwall\tB-Sign\npain\tL-Sign\n",
        expect![[r#"
        {"id":"in","text":"chest wall pain","annotations":[{"spans":[[0,5]],"text":"chest","type":"Place","ids":[]},{"spans":[[6,15]],"text":"wall pain","type":"Sign","ids":[]}]}
    "#]],
    );
}

#[test]
fn documents_without_ids_get_them() {
    check(
        "-DOCSTART- -X- O\n\npain O\n\n-DOCSTART- (8)\n\ngout B-Disease\n",
        expect![[r#"
        {"id":"in-1","text":"pain","annotations":[]}
        {"id":"8","text":"gout","annotations":[{"spans":[[0,4]],"text":"gout","type":"Disease","ids":[]}]}
    "#]],
    );
    check(
        "# id = 7\n# a remark\npain\tO\n\n# id = 8\ngout\tB\n",
        expect![[r#"
        {"id":"7","text":"pain","annotations":[]}
        {"id":"8","text":"gout","annotations":[{"spans":[[0,4]],"text":"gout","ids":[]}]}
    "#]],
    );
}

#[test]
fn document_without_tokens_is_kept() {
    check(
        "-DOCSTART- (7)\n# id = 7\n\n# pmid = 8\n\n-DOCSTART-\n# id = 9\npain\tO\n",
        expect![[r#"
            {"id":"7","text":"","annotations":[]}
            {"id":"8","text":"","annotations":[]}
            {"id":"9","text":"pain","annotations":[]}
        "#]],
    );
}

#[test]
fn documents_of_several_files_stay_apart() {
    let mut writer = Writer::new(Vec::new(), Path::new("out.conll"), CorpusFormat::Conll).unwrap();
    for (name, text) in [("a", "pain\tO\n"), ("b", "gout\tB\n"), ("c", "# id = 7\nflu\tO\n")] {
        let input = Input::from_bytes(name, text.as_bytes().to_vec()).unwrap();
        writer.write(&Reader::from_input(input, Some(CorpusFormat::Conll)).unwrap().next().unwrap().unwrap()).unwrap();
    }
    let written = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!(written, "pain\tO\n# id = b\ngout\tB\n# id = 7\nflu\tO\n");
}

#[test]
fn ids_that_look_like_tags_are_ids() {
    check(
        "# id = 7\nflu\t0\t3\tB-X\tE-12\n",
        expect![[r#"
        {"id":"7","text":"flu","annotations":[{"spans":[[0,3]],"text":"flu","type":"X","ids":["E-12"]}]}
    "#]],
    );
}

#[test]
fn line_without_a_token_is_malformed() {
    check("pain\tO\n\tB-X\n", expect![["in.conll:2: the line has no token before its first tab (hint: none)\n"]]);
}

#[test]
fn ids_are_read_from_column_or_tag() {
    check(
        "wall\tB-Sign\tX:1|X:2\npain\tI-Sign\tX:1|X:2\n.\tO\t_\ngout\tB-Disease\t\n",
        expect![[r#"
        {"id":"in","text":"wall pain . gout","annotations":[{"spans":[[0,9]],"text":"wall pain","type":"Sign","ids":["X:1|X:2"]},{"spans":[[12,16]],"text":"gout","type":"Disease","ids":[]}]}
    "#]],
    );
    check(
        "gout\tB-MESH:D006073\n",
        expect![[r#"
        {"id":"in","text":"gout","annotations":[{"spans":[[0,4]],"text":"gout","ids":["MESH:D006073"]}]}
    "#]],
    );
}

#[test]
fn offsets_put_tokens_where_they_were() {
    check(
        "# id = 7\nβ\t2\t3\tO\t_\ncell\t3\t7\tB-Cell\tX:1\n\npain\t9\t13\tO\t_\n",
        expect![[r#"
        {"id":"7","text":"  βcell\n pain","annotations":[{"spans":[[3,7]],"text":"cell","type":"Cell","ids":["X:1"]}]}
    "#]],
    );
}

#[test]
fn broken_tags_are_repaired_or_left_out() {
    let text = "a\tI-X\nb\tO\nc\tB-X\nd\tI-Y\n";
    check_tags(
        text,
        "bio",
        expect![[r#"
        {"id":"in","text":"a b c d","annotations":[{"spans":[[0,1]],"text":"a","type":"X","ids":[]},{"spans":[[4,5]],"text":"c","type":"X","ids":[]},{"spans":[[6,7]],"text":"d","type":"Y","ids":[]}]}
        2 broken
    "#]],
    );
    check_tags(
        text,
        "bio-strict",
        expect![[r#"
        {"id":"in","text":"a b c d","annotations":[{"spans":[[4,5]],"text":"c","type":"X","ids":[]}]}
        2 broken
    "#]],
    );
    check_tags(
        "a\tB-X\nb\tO\nc\tE-X\n",
        "auto-strict",
        expect![[r#"
        {"id":"in","text":"a b c","annotations":[]}
        2 broken
    "#]],
    );
}

#[test]
fn malformed_lines_are_named() {
    check(
        "pain\tO\ngout\tDisease\n\n# id = 8\ngout\tB\n",
        expect![[r#"
        in.conll:2: invalid tag `Disease` (hint: each line has a token and, in its last or second to last column, a tag such as `B-Disease` or `O`)
        {"id":"8","text":"gout","annotations":[{"spans":[[0,4]],"text":"gout","ids":[]}]}
    "#]],
    );
    check(
        "pain\n",
        expect![[r#"
        in.conll:1: the token `pain` has no tag (hint: each line has a token and, in its last or second to last column, a tag such as `B-Disease` or `O`)
    "#]],
    );
    assert!("bmes".parse::<Tags>().is_err());
}

#[test]
fn token_formats_are_detected_by_name_and_content() {
    let detected = |name: &str, head: &str| format::detect(Path::new(name), head.as_bytes()).unwrap();
    assert_eq!(detected("train.bioes.gz", ""), CorpusFormat::Conll);
    assert_eq!(detected("train.tsv", "No\tO\nchest\tB-Sign\n"), CorpusFormat::Conll);
    assert_eq!(detected("train.tsv", "D1\tgout\nD2\tflu\n"), CorpusFormat::Csv);
    assert_eq!(detected("a.txt", "Pain\n"), CorpusFormat::Text);
}

fn tokens_of(document: &AnnotatedDocument, scheme: Scheme) -> String {
    let mut out = Vec::new();
    write(document, scheme, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn document(text: &str, spans: &[&[(usize, usize)]]) -> AnnotatedDocument {
    let annotation = |spans: &&[(usize, usize)]| Annotation {
        spans: spans.iter().map(|&(start, end)| Span::new(start, end)).collect(),
        text: spans.iter().map(|&(start, end)| &text[start..end]).collect::<Vec<&str>>().join(" "),
        semantic_type: "X".to_owned(),
        ids: vec!["D1".to_owned()],
        ..Annotation::default()
    };
    let annotations = spans.iter().map(annotation).collect();
    let document = Document { id: "7".to_owned(), text: text.to_owned(), sections: Vec::new() };
    AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() }
}

#[test]
fn text_is_cut_into_tokens_at_mentions_and_marks() {
    let document = document("The TNF-α (wild\ntype). Parkinson's.", &[&[(4, 7)], &[(4, 10)], &[(12, 21)], &[(25, 30)]]);
    expect![[r#"
        # id = 7
        The	0	3	O	_
        TNF	4	7	B-X	D1
        -	7	8	I-X	D1
        α	8	9	L-X	D1
        (	10	11	O	_
        wild	11	15	B-X	D1
        type	16	20	L-X	D1
        )	20	21	O	_
        .	21	22	O	_

        P	23	24	O	_
        arkin	24	29	U-X	D1
        son	29	32	O	_
        '	32	33	O	_
        s	33	34	O	_
        .	34	35	O	_

    "#]]
    .assert_eq(&tokens_of(&document, Scheme::Bilou));
}

#[test]
fn longest_of_overlapping_mentions_is_kept() {
    let document = document("breast and ovarian cancer", &[&[(0, 6), (19, 25)], &[(11, 25)], &[(0, 18)], &[(19, 25)]]);
    assert_eq!(kept(&document.annotations), [2, 3]);
}

proptest! {
    #[test]
    fn spans_survive_tokens(
        text in "([a-zA-Z0-9]{1,4}|[ .,'()-]|α|\n|😀|e\u{301}){1,30}",
        choices in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..5),
        scheme in prop::sample::select(vec![Scheme::Bio, Scheme::Bioes, Scheme::Bilou]),
    ) {
        let mut offsets: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
        offsets.push(text.len());
        let spans: Vec<Vec<(usize, usize)>> = choices.iter().filter_map(|choice| {
            let (one, two) = (offsets[choice[0].index(offsets.len())], offsets[choice[1].index(offsets.len())]);
            let (start, end) = (one.min(two), one.max(two));
            let covered = text.get(start..end)?;
            (!covered.is_empty() && covered.trim() == covered).then_some(vec![(start, end)])
        }).collect();
        let spans: Vec<&[(usize, usize)]> = spans.iter().map(Vec::as_slice).collect();
        let document = document(&text, &spans);
        let (back, n_broken) = read(&tokens_of(&document, scheme), Tags { scheme: Some(scheme), ..Tags::default() });
        let back = back.into_iter().next().unwrap().unwrap();
        let code_points = |document: &Document, span: Span| {
            let count = |byte: u32| document.text[..byte as usize].chars().count();
            (count(span.start), count(span.end))
        };
        let found: Vec<_> = back.annotations.iter().map(|one| code_points(&back.document, one.spans[0])).collect();
        let expected: Vec<_> = kept(&document.annotations).iter()
            .map(|&row| code_points(&document.document, document.annotations[row].spans[0])).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(n_broken, 0);
    }
}

#[test]
fn types_that_are_not_single_words_are_given_by_comments() {
    let text = "ache itch cough rash";
    let kinds = ["Sign or Symptom", "Sign_or_Symptom", "GO:1", ""];
    let mut start = 0;
    let annotations = text.split(' ').zip(kinds).map(|(word, kind)| {
        let span = Span::new(start, start + word.len());
        start += word.len() + 1;
        Annotation { spans: vec![span], text: word.to_owned(), semantic_type: kind.to_owned(), ..Annotation::default() }
    });
    let annotations: Vec<Annotation> = annotations.collect();
    let document = Document { id: "7".to_owned(), text: text.to_owned(), sections: Vec::new() };
    let made = AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() };
    let mut written = Vec::new();
    write(&made, Scheme::Bio, &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    expect![[r#"
        # id = 7
        # type GO_1 = GO:1
        # type Sign_or_Symptom_2 = Sign or Symptom
        ache	0	4	B-Sign_or_Symptom_2	_
        itch	5	9	B-Sign_or_Symptom	_
        cough	10	15	B-GO_1	_
        rash	16	20	B	_

    "#]]
    .assert_eq(&written);
    let (mut items, _) = read(&written, Tags::default());
    assert_eq!(items.remove(0).unwrap().annotations, made.annotations);
}

#[test]
fn line_breaks_added_between_sentences_are_counted() {
    let text = "No pain. No gout.\nNo flu.  No rash.";
    let document = Document { id: "7".to_owned(), text: text.to_owned(), sections: Vec::new() };
    let made = AnnotatedDocument { document, ..AnnotatedDocument::default() };
    assert_eq!(n_added_line_breaks(&made), 2);
    let mut written = Vec::new();
    write(&made, Scheme::Bio, &mut written).unwrap();
    let (mut items, _) = read(&String::from_utf8(written).unwrap(), Tags::default());
    let again = items.remove(0).unwrap();
    assert_eq!(again.document.text, "No pain.\nNo gout.\nNo flu.\n No rash.");
    assert!(is_unchanged(&again) && !is_unchanged(&made));
}
