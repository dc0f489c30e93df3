//! Finds the mentions of a sentence and links them: `cargo run --example link`.

use canonym::{Model, System, starter};

fn main() -> canonym::Result<()> {
    let kb = starter()?; // or KnowledgeBase::open("mesh.kb")?
    let system = System::open(Model::Default, kb)?;
    for mention in system.annotate_text("Acute kidney injury after cisplatin.")? {
        println!("{} {:?} {:.2}", mention.text, mention.concept_id(), mention.probability());
    }
    Ok(())
}
