//! Links mentions in biomedical text to the concepts of any terminology.
//!
//! ```
//! use canonym::{Model, System, open_kb};
//!
//! fn main() -> canonym::Result<()> {
//!     let kb = open_kb(None)?;
//!     let system = System::open(Model::Default, kb)?;
//!     for mention in system.annotate_text("Acute kidney injury after cisplatin.")? {
//!         println!("{} {:?} {:.2}", mention.text, mention.concept_id(), mention.probability());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Open a knowledge base
//!
//! A knowledge base is a terminology compiled into one file, which opens without parsing. [`open_kb`] opens a file, or the starter
//! terminology of about 15,000 common concepts with MeSH ids.
//!
//! ```
//! let kb = canonym::open_kb(None)?;
//! let concept = kb.find("MESH:D003693").expect("the starter has it");
//! assert_eq!(kb.preferred_name(concept), "Delirium");
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Build one
//!
//! `canonym kb build` reads OBO, OWL, UMLS RRF, SNOMED CT RF2, MeSH XML, CTD, TSV and more; [`KnowledgeBaseBuilder`] takes concepts one by one.
//!
//! ```
//! use canonym::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, Meta, NameRecord, Scope};
//!
//! let mut builder = KnowledgeBaseBuilder::new();
//! builder.add(ConceptRecord {
//!     id: "CLINIC:1".to_owned(),
//!     names: vec![
//!         NameRecord { text: "Tennis elbow".to_owned(), scope: Scope::Preferred },
//!         NameRecord { text: "lateral epicondylitis".to_owned(), scope: Scope::Exact },
//!     ],
//!     ..ConceptRecord::default()
//! })?;
//! let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default())?, "clinic")?;
//! assert_eq!(kb.n_concepts(), 1);
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Link given mentions
//!
//! Where the mentions are known, a [`Linker`] ranks concepts for them; [`SystemConfig::mentions`] says so to a [`System`].
//!
//! ```
//! use canonym::{AnnotatedDocument, Annotation, Document, MentionSource, Model, Span, System, SystemConfig, open_kb};
//!
//! let config = SystemConfig { mentions: MentionSource::Given, ..SystemConfig::default() };
//! let system = System::open_with(Model::Lexical, open_kb(None)?, &config)?;
//! let text = "Delirium after surgery".to_owned();
//! let mention = Annotation { spans: vec![Span::new(0, 8)], text: "Delirium".to_owned(), ..Annotation::default() };
//! let document = Document { text, ..Document::default() };
//! let linked = system.link(vec![AnnotatedDocument { document, annotations: vec![mention], ..Default::default() }])?;
//! assert_eq!(linked[0].annotations[0].concept_id(), Some("MESH:D003693"));
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Map names
//!
//! [`NameLinker`] links names without a text, such as the terms of a table.
//!
//! ```
//! use canonym::{LinkConfig, Model, Models, NameLinker, open_kb};
//!
//! let kb = open_kb(None)?;
//! let linker = NameLinker::new(&kb, &Models::open(&Model::Lexical)?, LinkConfig { top_k: 1, min_score: 0.5 }, None)?;
//! let links = linker.link_names(&["heart attack", "cisplatinum"])?;
//! assert_eq!(kb.preferred_name(links[0].candidates[0].concept), "Myocardial Infarction");
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Explain a link
//!
//! ```
//! use canonym::{AnnotatedDocument, Document, Model, System, open_kb};
//!
//! let system = System::open(Model::Lexical, open_kb(None)?)?;
//! let document = Document { text: "She has asthma.".to_owned(), ..Document::default() };
//! let explained = system.explain(vec![AnnotatedDocument { document, ..Default::default() }])?;
//! let (_, explanations) = &explained[0];
//! assert_eq!(explanations[0].compared, "asthma");
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Write tables and health records
//!
//! [`table`] has mentions as rows, [`records`] as rows of OMOP and resources of FHIR. [`Translator`] gives codes of another code system.
//!
//! ```
//! use canonym::records::fhir::{FhirResources, Layout, ResourceTypes};
//! use canonym::{Document, Model, System, add_contexts, open_kb};
//!
//! let system = System::open(Model::Lexical, open_kb(None)?)?;
//! let text = "She denies asthma.".to_owned();
//! let mut linked = system.annotate(vec![Document { text, ..Document::default() }])?;
//! linked.iter_mut().for_each(add_contexts);
//! let fhir = FhirResources { types: ResourceTypes::default(), layout: Layout::Bundles };
//! let mut lines = Vec::new();
//! fhir.write(system.kb(), &linked[0], &mut lines);
//! assert!(String::from_utf8_lossy(&lines).contains("refuted"));
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Train
//!
//! [`train`] runs an experiment file, as `canonym train` does; the folder that it writes is opened by [`Model::Path`].
//!
//! ```no_run
//! use canonym::{TrainOptions, train};
//!
//! train(&TrainOptions { config: "experiments/ncbi-disease-rescnn.toml".into(), out: "runs/ncbi".into(), ..TrainOptions::default() })?;
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Evaluate
//!
//! [`eval`] scores predictions against gold annotations; it never sees the system that made them.
//!
//! ```
//! use canonym::eval::bootstrap::SplitMix64;
//! use canonym::eval::matching::Measure;
//! use canonym::eval::report::{EvalConfig, evaluate};
//! use canonym::{AnnotatedDocument, Annotation, Document, Model, Span, System, open_kb};
//!
//! let text = "She has asthma.".to_owned();
//! let asthma = Annotation {
//!     spans: vec![Span::new(8, 14)],
//!     ids: vec!["MESH:D001249".to_owned()],
//!     ..Annotation::default()
//! };
//! let document = Document { text, ..Document::default() };
//! let gold = vec![AnnotatedDocument { document, annotations: vec![asthma], ..Default::default() }];
//! let system = System::open(Model::Lexical, open_kb(None)?)?;
//! let found = system.link(gold.clone())?;
//! let report = evaluate(&gold, &found, &EvalConfig::default(), &mut SplitMix64::new(0))?;
//! assert_eq!(report.metrics[&Measure::Strict].f1, 1.0);
//! # Ok::<(), canonym::Error>(())
//! ```

#[cfg(feature = "serve")]
pub mod serve;

pub use canonym_core::corpus::contexts::add as add_contexts;
#[cfg(feature = "parquet")]
pub use canonym_core::corpus::parquet::ParquetWriter;
pub use canonym_core::corpus::table;
pub use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord, CorpusFormat, Reader};
pub use canonym_core::kb::build::{BuildConfig, build as build_kb};
pub use canonym_core::kb::format::Meta;
pub use canonym_core::kb::record::{ConceptRecord, NameRecord, Scope};
pub use canonym_core::kb::search::{SearchHit, search};
pub use canonym_core::kb::subset::{Subset, SubsetConfig};
pub use canonym_core::kb::translate::{PredicateMappings, Translator};
pub use canonym_core::kb::xref::{Predicate, Xref, XrefRecord};
pub use canonym_core::kb::{ConceptId, KnowledgeBase, KnowledgeBaseBuilder};
pub use canonym_core::link::explain::Explanation;
pub use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
pub use canonym_core::link::recognise::senses::SenseInventory;
pub use canonym_core::link::recognise::{DictionaryAnnotator, Nested, RecogniseConfig};
#[cfg(not(feature = "neural"))]
pub use canonym_core::link::system::BuiltIn as Model;
pub use canonym_core::link::system::{MentionSource, System, SystemConfig, SystemModel};
pub use canonym_core::link::{Annotator, Candidate, Link, LinkInput, LinkedMention, Linker, Reranker};
pub use canonym_core::text::{Document, Mention, Span};
pub use canonym_core::{Error, Result, eval, records};
#[cfg(feature = "neural")]
pub use canonym_neural::program::{Program, set_hosted};
#[cfg(feature = "neural")]
pub use canonym_neural::recipes::{TrainOptions, train};
#[cfg(feature = "neural")]
pub use canonym_neural::system::terminology::open as open_kb;
#[cfg(feature = "neural")]
pub use canonym_neural::system::{Model, Models, NameLinker};
