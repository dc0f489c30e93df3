#![doc = include_str!("../README.md")]
//!
//! # Open a knowledge base
//!
//! A knowledge base is a terminology compiled into one file, which opens without parsing: [`KnowledgeBase::open`]. [`starter()`] has about
//! 15,000 common concepts with MeSH ids.
//!
//! ```
//! let kb = canonym::starter()?;
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
//! # Choose a model
//!
//! [`Model::Default`] is embedded, [`Model::Lexical`] is faster and smaller, and [`Model::Path`] opens a trained model or its run folder.
//! [`SubsetConfig`] limits the concepts by source, semantic type or branch.
//!
//! ```
//! use canonym::{Model, Subset, SubsetConfig, System, SystemConfig, starter};
//!
//! let kb = starter()?;
//! let filter = SubsetConfig { only_types: vec!["Drug".to_owned()], ..SubsetConfig::default() };
//! let config = SystemConfig { subset: Some(Subset::choose(&kb, &filter)?.into()), ..SystemConfig::default() };
//! let system = System::open_with(Model::Lexical, kb, &config)?;
//! let found = system.annotate_text("Asthma, treated with prednisolone.")?;
//! assert_eq!(found.iter().map(|mention| mention.text.as_str()).collect::<Vec<_>>(), ["prednisolone"]);
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Link a corpus
//!
//! A [`Reader`] reads any corpus format document by document, and a [`Writer`] writes it. A [`System`] links a batch on all cores.
//!
//! ```no_run
//! use canonym::{AnnotatedDocument, CorpusFormat, Model, Reader, System, Writer, starter};
//!
//! let system = System::open(Model::Default, starter()?)?;
//! let mut reader = Reader::open("corpus.xml".as_ref(), None)?;
//! let mut writer = Writer::new(std::io::stdout(), "links.jsonl".as_ref(), CorpusFormat::Jsonl)?;
//! loop {
//!     let batch: Vec<AnnotatedDocument> = reader.by_ref().take(256).collect::<canonym::Result<_>>()?;
//!     if batch.is_empty() {
//!         break;
//!     }
//!     for document in system.link(batch)? {
//!         writer.write(&document)?;
//!     }
//! }
//! writer.finish()?;
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Link given mentions
//!
//! If the mentions are known, set [`SystemConfig::mentions`] to [`MentionSource::Given`].
//!
//! ```
//! use canonym::{AnnotatedDocument, Annotation, Document, MentionSource, Model, Span, System, SystemConfig, starter};
//!
//! let config = SystemConfig { mentions: MentionSource::Given, ..SystemConfig::default() };
//! let system = System::open_with(Model::Lexical, starter()?, &config)?;
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
//! use canonym::{LinkConfig, Model, Models, NameLinker, starter};
//!
//! let kb = starter()?;
//! let linker = NameLinker::new(&kb, &Models::open(&Model::Lexical)?, LinkConfig { top_k: 1, min_score: 0.5 }, None)?;
//! let links = linker.link_names(&["heart attack", "cisplatinum"])?;
//! assert_eq!(kb.preferred_name(links[0].candidates[0].concept), "Myocardial Infarction");
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Explain a link
//!
//! ```
//! use canonym::{AnnotatedDocument, Document, Model, System, starter};
//!
//! let system = System::open(Model::Lexical, starter()?)?;
//! let document = Document { text: "She has asthma.".to_owned(), ..Document::default() };
//! let explained = system.explain(vec![AnnotatedDocument { document, ..Default::default() }])?;
//! let (_, explanations) = &explained[0];
//! assert_eq!(explanations[0].compared, "asthma");
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Write tables and health records
//!
//! [`table`] writes mentions as rows, [`records`] as OMOP rows and FHIR resources. [`Translator`] gives codes of another code system.
//!
//! ```
//! use canonym::records::fhir::{FhirResources, Layout, ResourceTypes};
//! use canonym::{Document, Model, System, add_contexts, starter};
//!
//! let system = System::open(Model::Lexical, starter()?)?;
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
//! use canonym::{AnnotatedDocument, Annotation, Document, Model, Span, System, starter};
//!
//! let text = "She has asthma.".to_owned();
//! let asthma = Annotation {
//!     spans: vec![Span::new(8, 14)],
//!     ids: vec!["MESH:D001249".to_owned()],
//!     ..Annotation::default()
//! };
//! let document = Document { text, ..Document::default() };
//! let gold = vec![AnnotatedDocument { document, annotations: vec![asthma], ..Default::default() }];
//! let system = System::open(Model::Lexical, starter()?)?;
//! let found = system.link(gold.clone())?;
//! let report = evaluate(&gold, &found, &EvalConfig::default(), &mut SplitMix64::new(0))?;
//! assert_eq!(report.metrics[&Measure::Strict].f1, 1.0);
//! # Ok::<(), canonym::Error>(())
//! ```
//!
//! # Handle errors
//!
//! Every [`Error`] has a kind to match, a message, and where they are known a path, a line and a hint.
//!
//! ```
//! use canonym::{Error, KnowledgeBase};
//!
//! let error = KnowledgeBase::open("missing.kb").err().expect("the file is missing");
//! assert!(matches!(error, Error::Io { .. }));
//! assert_eq!(error.path(), Some("missing.kb".as_ref()));
//! ```
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `neural` (on by default) | [`Model`], [`starter()`] and training; without it, [`BuiltIn`] has the lexical model and BM25 |
//! | `parquet` | `ParquetWriter` |
//! | `serve` | `serve`: engine and training for the server |

#[cfg(feature = "serve")]
pub mod serve;

pub use canonym_core::corpus::contexts::add as add_contexts;
#[cfg(feature = "parquet")]
pub use canonym_core::corpus::parquet::ParquetWriter;
pub use canonym_core::corpus::table;
pub use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord, CorpusFormat, Reader, Writer};
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
pub use canonym_core::link::system::{BuiltIn, MentionSource, Runner, System, SystemConfig, SystemModel};
pub use canonym_core::link::{Annotator, Candidate, Link, LinkInput, LinkedMention, Linker, Reranker};
pub use canonym_core::text::analysis::Analysis;
pub use canonym_core::text::{Document, Mention, Span};
pub use canonym_core::{Error, Result, eval, records};
#[cfg(feature = "neural")]
pub use canonym_neural::program::{Program, set_hosted};
#[cfg(feature = "neural")]
pub use canonym_neural::recipes::{TrainOptions, train};
#[cfg(feature = "neural")]
pub use canonym_neural::system::terminology::{open as open_kb, starter};
#[cfg(feature = "neural")]
pub use canonym_neural::system::{Model, Models, NameLinker};
