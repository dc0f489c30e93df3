//! What the RF2 importer reads and drops.

use std::io::Write;

use canonym_core::input::Source;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import, import_sources};
use expect_test::expect;
use proptest::prelude::*;

use crate::import::{check_with, words};

const FSN: &str = "900000000000003001";
const SYNONYM: &str = "900000000000013009";
const PREFERRED: &str = "900000000000548007";
const ACCEPTABLE: &str = "900000000000549004";
const US: &str = "900000000000509007";
const GB: &str = "900000000000508004";
const INFERRED: &str = "900000000000011006";

/// Lines in the layout of the release, each with `\r\n`; the first one opens with a byte order mark.
fn lines(rows: &[String]) -> String {
    format!("\u{feff}{}\r\n", rows.join("\r\n"))
}

/// Rows `id, active, time`.
fn concepts(rows: &[(u32, u8, u32)]) -> String {
    let mut text = vec!["id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId".to_owned()];
    text.extend(rows.iter().map(|(id, active, time)| format!("{id}\t{time}\t{active}\t900000\t900001")));
    lines(&text)
}

/// Rows `id, active, time, concept, language, type, term`.
fn descriptions(rows: &[(u32, u8, u32, u32, &str, &str, &str)]) -> String {
    let header = "id\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId";
    let mut text = vec![header.to_owned()];
    text.extend(rows.iter().map(|(id, active, time, concept, language, kind, term)| {
        format!("{id}\t{time}\t{active}\t900000\t{concept}\t{language}\t{kind}\t{term}\t900002")
    }));
    lines(&text)
}

/// Rows `active, refset, description, acceptability`.
fn choices(rows: &[(u8, &str, u32, &str)]) -> String {
    let header = "id\teffectiveTime\tactive\tmoduleId\trefsetId\treferencedComponentId\tacceptabilityId";
    let mut text = vec![header.to_owned()];
    text.extend(rows.iter().enumerate().map(|(row, (active, refset, description, acceptability))| {
        format!("uuid-{row}\t20240101\t{active}\t900000\t{refset}\t{description}\t{acceptability}")
    }));
    lines(&text)
}

/// Rows `id, active, child, parent, type, characteristic`.
fn relationships(rows: &[(u32, u8, u32, u32, &str, &str)]) -> String {
    let header = "id\teffectiveTime\tactive\tmoduleId\tsourceId\tdestinationId\trelationshipGroup\ttypeId\t\
                  characteristicTypeId\tmodifierId";
    let mut text = vec![header.to_owned()];
    text.extend(rows.iter().map(|(id, active, child, parent, kind, characteristic)| {
        format!("{id}\t20240101\t{active}\t900000\t{child}\t{parent}\t0\t{kind}\t{characteristic}\t900003")
    }));
    lines(&text)
}

/// A made-up release: file name and content.
fn release() -> Vec<(&'static str, String)> {
    let concept = concepts(&[(100001, 1, 20240101), (100002, 1, 20240101), (100003, 0, 20240101)]);
    let description = descriptions(&[
        (200001, 1, 20240101, 100001, "en", FSN, "Round shape (shape)"),
        (200002, 1, 20240101, 100001, "en", SYNONYM, "Disc colour"),
        (200003, 1, 20240101, 100001, "en", SYNONYM, "Disk \"color\""),
        (200004, 1, 20240101, 100001, "es", SYNONYM, "Disco"),
        (200005, 0, 20240101, 100001, "en", SYNONYM, "Old disc"),
        (200006, 1, 20240101, 100002, "en", FSN, "Shape (at rest) (thing)"),
        (200007, 1, 20240101, 100003, "en", FSN, "Lost shape (shape)"),
        (200008, 1, 20240101, 100003, "en", SYNONYM, "Lost shape"),
        (200009, 1, 20240101, 100002, "en", "900000000000550004", "Of another type"),
    ]);
    let definition = descriptions(&[
        (300001, 1, 20240101, 100001, "en", "900000000000550004", "All that is round."),
        (300002, 0, 20240101, 100002, "en", "900000000000550004", "Withdrawn."),
    ]);
    let language = choices(&[
        (1, US, 200001, PREFERRED),
        (1, GB, 200001, PREFERRED),
        (1, GB, 200002, PREFERRED),
        (1, US, 200002, ACCEPTABLE),
        (1, US, 200003, PREFERRED),
        (0, GB, 200003, PREFERRED),
        (1, US, 200006, PREFERRED),
    ]);
    let relationship = relationships(&[
        (400001, 1, 100001, 100002, "116680003", INFERRED),
        (400002, 1, 100001, 100002, "363698007", INFERRED),
        (400003, 0, 100002, 100001, "116680003", INFERRED),
        (400004, 1, 100001, 100003, "116680003", INFERRED),
    ]);
    vec![
        ("sct2_Concept_Snapshot_INT_20240101.txt", concept),
        ("sct2_Description_Snapshot-en_INT_20240101.txt", description),
        ("sct2_TextDefinition_Snapshot-en_INT_20240101.txt", definition),
        ("der2_cRefset_LanguageSnapshot-en_INT_20240101.txt", language),
        ("sct2_Relationship_Snapshot_INT_20240101.txt", relationship),
        ("sct2_StatedRelationship_Snapshot_INT_20240101.txt", String::new()),
    ]
}

fn borrowed<'a>(files: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    files.iter().map(|(name, text)| (*name, text.as_str())).collect()
}

#[test]
fn the_language_reference_set_chooses_the_preferred_name() {
    let files = release();
    check_with(
        SourceFormat::Rf2,
        &borrowed(&files),
        &ImportConfig::default(),
        expect![[r#"
        SNOMEDCT:100001 [Exact "Disc colour"]
        SNOMEDCT:100001 [Preferred "Disk \"color\""]
        SNOMEDCT:100001 [Exact "Round shape"] types=shape
        SNOMEDCT:100002 [Preferred "Shape (at rest)"] types=thing
        SNOMEDCT:100001 definition=All that is round.
        SNOMEDCT:100001 parents=SNOMEDCT:100002
        read 3
        dropped 1 concept: inactive
        dropped 1 definition: inactive
        dropped 1 file: unused table
        dropped 1 language choice: inactive
        dropped 1 name: inactive
        dropped 1 name: language
        dropped 2 name: of a dropped concept
        dropped 1 name: of another type
        dropped 1 relation: inactive
        dropped 1 relation: not is-a
        dropped 1 relation: of a dropped concept
    "#]],
    );
    let british = ImportConfig { languages: words(&["en-GB"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Rf2,
        &borrowed(&files),
        &british,
        expect![[r#"
        SNOMEDCT:100001 [Preferred "Disc colour"]
        SNOMEDCT:100001 [Exact "Round shape"] types=shape
        SNOMEDCT:100001 definition=All that is round.
        SNOMEDCT:100001 parents=SNOMEDCT:100002
        read 3
        dropped 1 concept: inactive
        dropped 1 concept: no name
        dropped 1 definition: inactive
        dropped 1 file: unused table
        dropped 1 fully specified name: not in the language reference set
        dropped 1 language choice: inactive
        dropped 1 name: inactive
        dropped 1 name: language
        dropped 1 name: not in the language reference set
        dropped 2 name: of a dropped concept
        dropped 1 name: of another type
        dropped 1 relation: inactive
        dropped 1 relation: not is-a
        dropped 1 relation: of a dropped concept
    "#]],
    );
}

#[test]
fn inactive_concepts_are_kept_and_types_chosen_on_request() {
    let config = ImportConfig {
        keep_obsolete: true,
        semantic_types: words(&["shape"]),
        languages: words(&["en", "es"]),
        prefix: Some("SCT".to_owned()),
        ..ImportConfig::default()
    };
    check_with(
        SourceFormat::Rf2,
        &borrowed(&release()),
        &config,
        expect![[r#"
        SCT:100001 [Exact "Disc colour"]
        SCT:100001 [Preferred "Disk \"color\""]
        SCT:100001 [Exact "Disco"]
        SCT:100003 [Exact "Lost shape"]
        SCT:100001 [Exact "Round shape"] types=shape
        SCT:100003 [Preferred "Lost shape"] types=shape
        SCT:100001 definition=All that is round.
        SCT:100001 parents=SCT:100003
        read 3
        dropped 1 concept: semantic type
        dropped 1 definition: inactive
        dropped 1 file: unused table
        dropped 1 fully specified name: of a dropped concept
        dropped 1 language choice: inactive
        dropped 1 name: inactive
        dropped 2 name: of a dropped concept
        dropped 1 relation: inactive
        dropped 1 relation: not is-a
        dropped 1 relation: of a dropped concept
    "#]],
    );
}

#[test]
fn of_a_full_release_the_latest_version_counts() {
    let concept =
        concepts(&[(100001, 1, 20200101), (100001, 1, 20210101), (100002, 1, 20200101), (100002, 0, 20210101)]);
    let description = descriptions(&[
        (200002, 1, 20220101, 100001, "en", SYNONYM, "Disc"),
        (200002, 1, 20200101, 100001, "en", SYNONYM, "Disk"),
        (200003, 1, 20200101, 100001, "en", SYNONYM, "Dish"),
        (200003, 0, 20210101, 100001, "en", SYNONYM, "Dish"),
    ]);
    let full = [
        ("sct2_Concept_Full_INT_20240101.txt", concept.as_str()),
        ("sct2_Description_Full-en_INT_20240101.txt", description.as_str()),
        ("sct2_Concept_Delta_INT_20240101.txt", ""),
    ];
    check_with(
        SourceFormat::Rf2,
        &full,
        &ImportConfig::default(),
        expect![[r#"
        SNOMEDCT:100001 [Exact "Disc"]
        read 2
        dropped 1 concept: inactive
        dropped 2 concept: older version
        dropped 1 file: Delta beside the Full files
        dropped 1 name: inactive
        dropped 2 name: older version
    "#]],
    );
}

#[test]
fn versions_of_several_files_are_compared() {
    let (first, second) =
        (concepts(&[(100001, 1, 20200101)]), concepts(&[(100001, 1, 20200101), (100002, 1, 20210101)]));
    let one = descriptions(&[(200001, 1, 20200101, 100001, "en", SYNONYM, "Disc")]);
    let other = descriptions(&[
        (200001, 1, 20210101, 100001, "en", SYNONYM, "Disk"),
        (200002, 1, 20210101, 100002, "en", SYNONYM, "Cube"),
    ]);
    let files = [
        ("sct2_Concept_Snapshot_INT_20240101.txt", first.as_str()),
        ("sct2_Concept_Snapshot_XX_20240101.txt", second.as_str()),
        ("sct2_Description_Snapshot-en_INT_20240101.txt", one.as_str()),
        ("sct2_Description_Snapshot-en_XX_20240101.txt", other.as_str()),
    ];
    check_with(
        SourceFormat::Rf2,
        &files,
        &ImportConfig::default(),
        expect![[r#"
        SNOMEDCT:100001 [Exact "Disk"]
        SNOMEDCT:100002 [Exact "Cube"]
        read 2
        dropped 1 concept: older version
        dropped 1 name: older version
    "#]],
    );
}

#[test]
fn malformed_releases_are_errors() {
    let concept = "sct2_Concept_Snapshot_INT_20240101.txt";
    let description = "sct2_Description_Snapshot-en_INT_20240101.txt";
    let none = ImportConfig::default();
    let good = concepts(&[(100001, 1, 20240101)]);
    let named = descriptions(&[(200001, 1, 20240101, 100001, "en", SYNONYM, "Disc")]);
    check_with(
        SourceFormat::Rf2,
        &[("sct2_Concept_Delta_INT_1.txt", &good)],
        &none,
        expect![[r#"
        error: the release is a Delta, which contains only changes
        hint: use the Snapshot or Full files of the release
    "#]],
    );
    check_with(
        SourceFormat::Rf2,
        &[("concepts.txt", &good)],
        &none,
        expect![[r#"
        error: no sct2_Concept file in concepts.txt
        hint: use the zip file or folder of a SNOMED CT release, with its Snapshot or Full files
    "#]],
    );
    check_with(
        SourceFormat::Rf2,
        &[(concept, &good)],
        &none,
        expect![[r#"
        error: no sct2_Description file found
        hint: use the zip file or folder of a SNOMED CT release
    "#]],
    );
    check_with(
        SourceFormat::Rf2,
        &[(concept, "id\tname\n"), (description, &named)],
        &none,
        expect![[r#"
        error: sct2_Concept_Snapshot_INT_20240101.txt:1: missing header line of sct2_Concept
        hint: the columns are id, effectiveTime, active, moduleId, definitionStatusId, separated by tabs
    "#]],
    );
    let short = format!("{good}100002\t20240101\n");
    check_with(
        SourceFormat::Rf2,
        &[(concept, &short), (description, &named)],
        &none,
        expect![[r#"
        error: sct2_Concept_Snapshot_INT_20240101.txt:3: 2 columns, expected 5
        hint: none
    "#]],
    );
    let wrong = concepts(&[(1, 1, 20240101)]);
    check_with(
        SourceFormat::Rf2,
        &[(concept, &wrong), (description, &named)],
        &none,
        expect![[r#"
        error: sct2_Concept_Snapshot_INT_20240101.txt:2: `1` is not a SNOMED CT id of 6 to 18 digits
        hint: none
    "#]],
    );
    let british = ImportConfig { languages: words(&["en-GB"]), ..ImportConfig::default() };
    check_with(
        SourceFormat::Rf2,
        &[(concept, &good), (description, &named)],
        &british,
        expect![[r#"
        error: the release has no language reference set
        hint: add der2_cRefset_Language…, or use the language `en`
    "#]],
    );
}

#[test]
fn releases_are_read_from_zips_and_folders() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("release.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let below = folder.path().join("Snapshot/Terminology");
    std::fs::create_dir_all(&below).unwrap();
    for (name, text) in release() {
        std::fs::write(below.join(name), &text).unwrap();
        for kind in ["Snapshot", "Full"] {
            let name = format!("Release/{kind}/Terminology/{}", name.replace("Snapshot", kind));
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
    }
    zip.finish().unwrap();
    let mut seen = Vec::new();
    for source in [path, folder.path().join("Snapshot")] {
        assert_eq!(SourceFormat::detect(&source).unwrap(), SourceFormat::Rf2);
        let mut report = Report::default();
        let mut records = Vec::new();
        import(SourceFormat::Rf2, &[source], &ImportConfig::default(), &mut report, &mut |record| {
            records.push(record);
            Ok(())
        })
        .unwrap();
        seen.push((records, report.n_read, report.n_dropped("file", "Full beside a Snapshot")));
    }
    assert_eq!(seen[0].0, seen[1].0);
    assert_eq!((seen[0].1, seen[0].2, seen[1].2), (3, 5, 0));
}

proptest! {
    #[test]
    fn changed_bytes_never_panic(which in 0..6usize, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let sources: Vec<Source> = release()
            .into_iter()
            .enumerate()
            .map(|(row, (name, text))| {
                let mut bytes = text.into_bytes();
                if row == which && !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
                Source::from_bytes(name, bytes)
            })
            .collect();
        let _ = import_sources(SourceFormat::Rf2, &sources, &ImportConfig::default(), &mut Report::default(), &mut |_| {
            Ok(())
        });
    }
}
