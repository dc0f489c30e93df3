//! What importers read of real terminologies; a message where they are not there.

use std::path::PathBuf;

use canonym_core::kb::Scope;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import};
use expect_test::{Expect, expect};

/// The folder of real terminologies; a message where it is absent.
fn data(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CANONYM_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = root.join(path);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// Detects the format, imports, and sums up: concepts and names, then what was dropped.
fn summary(path: PathBuf) -> String {
    let format = SourceFormat::detect(&path).unwrap();
    let mut report = Report::default();
    let (mut n_concepts, mut n_parts, mut n_names, mut n_parents, mut n_alternative) = (0, 0, 0, 0, 0);
    import(format, &[path], &ImportConfig::default(), &mut report, &mut |record| {
        if record.names.is_empty() {
            n_parts += 1;
        } else {
            n_concepts += 1;
            assert!(record.names.iter().filter(|name| name.scope == Scope::Preferred).count() <= 1, "{record:?}");
        }
        assert!(record.names.iter().all(|name| name.text.trim() == name.text));
        n_names += record.names.len();
        n_parents += record.parents.len();
        n_alternative += record.alternative_ids.len();
        Ok(())
    })
    .unwrap();
    let mut text = format!(
        "{} read {}: concepts {n_concepts}, parts {n_parts}, names {n_names}, parents {n_parents}, alternatives {n_alternative}\n",
        format.name(),
        report.n_read
    );
    for ((kind, reason), n) in report.dropped {
        text.push_str(&format!("dropped {n} {kind}: {reason}\n"));
    }
    text
}

fn check_real(path: &str, expect: Expect) {
    if let Some(path) = data(path) {
        expect.assert_eq(&summary(path));
    }
}

/// Counts lines with these beginnings, as grep does.
fn grep(text: &str, beginning: &str) -> u64 {
    text.lines().filter(|line| line.starts_with(beginning)).count() as u64
}

#[test]
fn real_obo_files_hold_what_grep_counts() {
    let files = [
        "terminologies/cl-basic-2022-12-15.obo",
        "terminologies/doid-2016-09-01.obo",
        "terminologies/hp-2014-11-26.obo",
        "terminologies/symp.obo",
        "craft/CL.obo.zip",
        "craft/UBERON.obo.zip",
    ];
    for path in files.into_iter().filter_map(data) {
        let mut input = canonym_core::input::Input::open(&path).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut input, &mut text).unwrap();
        let stanzas: Vec<&str> = text.split("\n[").filter(|stanza| stanza.starts_with("Term]")).collect();
        let terms = stanzas.join("\n");
        let config = ImportConfig { keep_obsolete: true, ..ImportConfig::default() };
        let mut report = Report::default();
        let (mut n_synonyms, mut n_preferred, mut n_parents) = (0, 0, 0);
        import(SourceFormat::Obo, std::slice::from_ref(&path), &config, &mut report, &mut |record| {
            let preferred = record.names.iter().filter(|name| name.scope == Scope::Preferred).count() as u64;
            n_preferred += preferred;
            n_synonyms += record.names.len() as u64 - preferred;
            n_parents += record.parents.len() as u64;
            Ok(())
        })
        .unwrap();
        let shown = path.display();
        assert_eq!(report.n_read, grep(&text, "[Term]"), "{shown}");
        let dropped = report.n_dropped("name", "empty");
        assert_eq!(n_preferred, grep(&terms, "name:"), "{shown}");
        assert_eq!(n_synonyms + dropped, grep(&terms, "synonym:"), "{shown}");
        let nameless: u64 = stanzas
            .iter()
            .filter(|stanza| grep(stanza, "name:") + grep(stanza, "synonym:") == 0)
            .map(|stanza| grep(stanza, "is_a:"))
            .sum();
        assert_eq!(n_parents + nameless, grep(&terms, "is_a:"), "{shown}");
        let mut report = Report::default();
        import(SourceFormat::Obo, std::slice::from_ref(&path), &ImportConfig::default(), &mut report, &mut |_| Ok(()))
            .unwrap();
        assert_eq!(report.n_dropped("term", "obsolete"), grep(&terms, "is_obsolete: true"), "{shown}");
    }
}

#[test]
fn real_terminologies_are_imported() {
    check_real(
        "terminologies/cl-basic-2022-12-15.obo",
        expect![[r#"
        obo read 2804: concepts 2644, parts 101, names 5317, parents 3705, alternatives 178
        dropped 1896 relation: not is_a
        dropped 13 stanza: Typedef
        dropped 160 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/doid-2016-09-01.obo",
        expect![[r#"
        obo read 9344: concepts 6971, parts 0, names 18991, parents 8155, alternatives 1335
        dropped 15 stanza: Typedef
        dropped 2373 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/hp-2014-11-26.obo",
        expect![[r#"
        obo read 10838: concepts 10783, parts 24, names 17749, parents 14398, alternatives 3463
        dropped 55 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/symp.obo",
        expect![[r#"
        obo read 1020: concepts 895, parts 19, names 1142, parents 898, alternatives 30
        dropped 1 stanza: Typedef
        dropped 125 term: obsolete
    "#]],
    );
    check_real(
        "craft/CL.obo.zip",
        expect![[r#"
        obo read 2164: concepts 2068, parts 7, names 4142, parents 2869, alternatives 79
        dropped 412 relation: not is_a
        dropped 29 stanza: Typedef
        dropped 96 term: obsolete
    "#]],
    );
    check_real(
        "craft/UBERON.obo.zip",
        expect![[r#"
        obo read 14074: concepts 13080, parts 201, names 50454, parents 20370, alternatives 535
        dropped 18927 relation: not is_a
        dropped 62 stanza: Typedef
        dropped 994 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/doid-2018.obographs.json.gz",
        expect![[r#"
        obographs read 17453: concepts 14943, parts 17105, names 29339, parents 17112, alternatives 1361
        dropped 109 node: property
        dropped 2 node: without a type
        dropped 2 parent: of a dropped node
        dropped 1935 relation: not is_a
        dropped 2399 term: obsolete
    "#]],
    );
    check_real(
        "terminologies/ncit-disease-2018.obographs.json.gz",
        expect![[r#"
        obographs read 20385: concepts 20324, parts 29057, names 82065, parents 29060, alternatives 0
        dropped 61 node: property
        dropped 21144 relation: not is_a
    "#]],
    );
    check_real(
        "terminologies/ordo-2018.obographs.json.gz",
        expect![[r#"
        obographs read 13894: concepts 13871, parts 30516, names 35992, parents 30526, alternatives 0
        dropped 23 node: property
        dropped 33559 relation: not is_a
    "#]],
    );
    check_real(
        "terminologies/mesh-descriptors-2019.tsv",
        expect![[r#"
        tsv read 29351: concepts 29351, parts 0, names 153253, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "bc5cdr/mesh-names.tsv",
        expect![[r#"
        tsv read 29054: concepts 29054, parts 0, names 29054, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "terminologies/medic-2012-07-06.txt",
        expect![[r#"
        biosyn read 11915: concepts 11915, parts 0, names 76237, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "biosyn-ncbi-disease/dev_dictionary.txt",
        expect![[r#"
        biosyn read 72887: concepts 13782, parts 0, names 72887, parents 0, alternatives 0
    "#]],
    );
    check_real(
        "biosyn-bc5cdr-disease/train_dictionary.txt",
        expect![[r#"
        biosyn read 71924: concepts 12883, parts 0, names 71924, parents 0, alternatives 0
    "#]],
    );
}
