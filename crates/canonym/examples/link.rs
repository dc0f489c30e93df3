//! Finds the mentions of a sentence and links them: `cargo run --example link -- mesh.kb`, or without a file with the starter terminology.

use std::path::Path;

use canonym::{Model, System, open_kb};

fn main() -> canonym::Result<()> {
    let file = std::env::args().nth(1);
    let kb = open_kb(file.as_deref().map(Path::new))?;
    let system = System::open(Model::Default, kb)?;
    for mention in system.annotate_text("Acute kidney injury after cisplatin.")? {
        println!("{} {:?} {:.2}", mention.text, mention.concept_id(), mention.probability());
    }
    Ok(())
}
