//! Files that earlier versions wrote, one of each kind and format number; see `tests/data/formats/README.md`. The data folder of the server is in `served`.

use super::linking::commands;

#[test]
fn knowledge_base_of_format_1() {
    commands(
        "knowledge-base-1",
        &[
            "kb info knowledge-base-1/ailments.kb --json",
            "kb show knowledge-base-1/ailments.kb A2 --json",
            "kb search knowledge-base-1/ailments.kb fever --json",
            "map --model lexical --kb knowledge-base-1/ailments.kb ailments.txt",
        ],
    );
}

#[test]
fn knowledge_base_of_format_2() {
    commands(
        "knowledge-base-2",
        &[
            "kb info knowledge-base-2/ailments.kb --json",
            "kb show knowledge-base-2/ailments.kb A2 --json",
            "kb search knowledge-base-2/ailments.kb fever --json",
            "map --model lexical --kb knowledge-base-2/ailments.kb ailments.txt",
        ],
    );
}

#[test]
fn knowledge_base_of_format_3_with_name_index_of_format_1() {
    commands(
        "knowledge-base-3",
        &[
            "kb info knowledge-base-3/ailments.kb --json",
            "kb show knowledge-base-3/ailments.kb A2 --json",
            "kb search knowledge-base-3/ailments.kb fever --json",
            "index info name-index-1/ailments.index --json",
            "map --model rescnn-2 --kb knowledge-base-3/ailments.kb --index name-index-1/ailments.index --top-k 2 ailments.txt",
        ],
    );
}

/// In the layout of large knowledge bases.
#[test]
fn knowledge_base_of_format_4() {
    commands(
        "knowledge-base-4",
        &[
            "kb info knowledge-base-4/ailments.kb --json",
            "kb show knowledge-base-4/ailments.kb A2 --json",
            "kb search knowledge-base-4/ailments.kb fever --json",
            "map --model lexical --kb knowledge-base-4/ailments.kb ailments.txt",
        ],
    );
}

#[test]
fn bundles_of_format_1() {
    commands(
        "bundles-1",
        &[
            "map --model rescnn-1 --kb knowledge-base-1/ailments.kb --top-k 2 ailments.txt",
            "map --model pipeline-1 --kb knowledge-base-1/ailments.kb --top-k 2 ailments.txt",
            "map --model dual-encoder-1 --kb knowledge-base-1/ailments.kb --top-k 2 ailments.txt",
            "map --model dual-encoder-given-1 --kb knowledge-base-1/ailments.kb --top-k 2 ailments.txt",
            "link --rerank cross-encoder-1 --kb knowledge-base-1/ailments.kb --to jsonl --mentions gold --top-k 2 notes.jsonl",
        ],
    );
}

#[test]
fn generative_bundle_of_format_1() {
    commands(
        "generative-1",
        &[
            "link --model generative-1 --kb knowledge-base-3/ailments.kb --to jsonl --mentions gold --top-k 2 notes.jsonl",
            "map --model generative-1 --kb knowledge-base-3/ailments.kb --top-k 2 ailments.txt",
        ],
    );
}

/// Its record of documents has format 3.
#[test]
fn multitask_bundle_of_format_1() {
    commands(
        "multitask-1",
        &[
            "link --model multitask-1 --kb knowledge-base-3/ailments.kb --to jsonl --top-k 2 notes.jsonl",
            "link --model multitask-1 --kb knowledge-base-3/ailments.kb --to jsonl --mentions gold --top-k 2 notes.jsonl",
            "model info multitask-1 --json",
        ],
    );
}
