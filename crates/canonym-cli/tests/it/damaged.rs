//! Compiled files that are cut off, changed, foreign or from another version.

use std::io::Cursor;

use canonym_core::artifact::{ArtifactKind, ContainerWriter};
use canonym_core::kb::format::KIND;
use expect_test::expect;

use crate::support::{Workplace, bytes_of};

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let place = Workplace::with_shapes();
    let whole = bytes_of(&place.path("shapes.kb"));
    place.write("cut.kb", &whole[..whole.len() / 2]);
    place.write("stub.kb", &whole[..20]);
    let mut changed = whole.clone();
    changed[64] ^= 1;
    place.write("changed.kb", &changed);
    changed = whole;
    changed[13] = 1;
    place.write("header.kb", &changed);
    place.write("empty.kb", "");
    for (file, expected) in [
        (
            "cut.kb",
            expect![[r#"
                status 1
                --- stderr
                error: cannot open the knowledge base
                  caused by: cannot use cut.kb: it is truncated: 3892 of 7784 bytes
                hint: rebuild it with `canonym kb build`
            "#]],
        ),
        (
            "stub.kb",
            expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use stub.kb: it has 20 bytes, too few for a header
            hint: build it with `canonym kb build`
        "#]],
        ),
        (
            "changed.kb",
            expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use changed.kb: its section `meta` is damaged
            hint: rebuild it with `canonym kb build`
        "#]],
        ),
        (
            "header.kb",
            expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use header.kb: its header is damaged
            hint: rebuild it with `canonym kb build`
        "#]],
        ),
        (
            "empty.kb",
            expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use empty.kb: it has 0 bytes, too few for a header
            hint: build it with `canonym kb build`
        "#]],
        ),
        (
            "shapes.tsv",
            expect![[r#"
                status 1
                --- stderr
                error: cannot open the knowledge base
                  caused by: cannot use shapes.tsv: it is not a compiled knowledge base
                hint: build one with `canonym kb build`
            "#]],
        ),
        (
            ".",
            expect![[r#"
                status 1
                --- stderr
                error: cannot open the knowledge base
                  caused by: cannot use .: it is not a regular file
                hint: get a complete copy of the file
            "#]],
        ),
        (
            "missing.kb",
            expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot open missing.kb
              caused by: No such file or directory (os error 2)
            hint: check the path; relative paths are resolved from the current folder
        "#]],
        ),
    ] {
        place.check(&["kb", "info", file], expected);
    }
}

#[test]
fn files_of_another_version_say_so() {
    let place = Workplace::new();
    for (name, kind) in [
        ("newer.kb", ArtifactKind { format: KIND.format + 1, ..KIND }),
        ("foreign.kb", ArtifactKind { tag: *b"ELSE", ..KIND }),
        ("hollow.kb", KIND),
    ] {
        let mut writer = ContainerWriter::new(kind, Cursor::new(Vec::new())).unwrap();
        writer.section("meta", [&b"{}"[..]]).unwrap();
        place.write(name, writer.finish().unwrap().into_inner());
    }
    place.check(
        &["kb", "info", "newer.kb"],
        expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use newer.kb: it has format 5; this version reads up to 4
            hint: use the newer version of canonym that built it, or rebuild it with this version
        "#]],
    );
    place.check(
        &["map", "-", "--kb", "foreign.kb"],
        expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use foreign.kb: it is not a compiled knowledge base
            hint: build one with `canonym kb build`
        "#]],
    );
    place.check(
        &["kb", "info", "hollow.kb"],
        expect![[r#"
            status 1
            --- stderr
            error: cannot open the knowledge base
              caused by: cannot use hollow.kb: it has no section `id.at`
            hint: get a complete copy of the file
        "#]],
    );
}
