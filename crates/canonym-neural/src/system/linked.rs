//! The models of this crate as models of a [`System`].

use std::sync::Arc;

use canonym_core::kb::KnowledgeBase;
pub use canonym_core::link::system::{MentionSource, System, SystemConfig, drop_unlinked, link_given, retain};
use canonym_core::link::system::{Runner, SystemModel, no_leaky_tokenisation};
use canonym_core::{Error, Result};

use super::rerank::RetrieveAndRerank;
use super::{Model, Models, Target};
use crate::status::Stage;

impl SystemModel for Model {
    fn runner(self, kb: &Arc<KnowledgeBase>, config: &SystemConfig) -> Result<Runner> {
        Models::open(&self)?.runner(kb, config)
    }
}

impl SystemModel for Models {
    fn runner(self, kb: &Arc<KnowledgeBase>, config: &SystemConfig) -> Result<Runner> {
        let detects = config.mentions == MentionSource::Detect;
        if self.senses.is_some() && !(detects && self.linking.uses_dictionary()) {
            let hint = "omit the abbreviations (option `--abbreviations`), or detect mentions with the model `default` or `lexical`";
            return Err(Error::usage("this model does not support custom abbreviations", hint));
        }
        let on = Target { kb: kb.clone(), subset: config.subset.clone(), senses: self.senses, index: self.index };
        let (linking, detection, given) = (&*self.linking, config.detection(), config.linking());
        let stage = Stage::start();
        let runner = match (&self.rerank, detects) {
            (Some(_), true) => {
                let hint = "link given mentions (option `--mentions gold`)";
                return Err(Error::usage("reranking requires given mentions", hint));
            }
            _ if config.leaky_tokenisation && !detects => {
                return Err(no_leaky_tokenisation());
            }
            _ if config.leaky_tokenisation => Runner::Leaky(linking.leaky_annotator(&on, detection)?),
            (None, true) => Runner::Detect(linking.annotator(&on, detection)?),
            (None, false) => Runner::Given(linking.linker(&on, given)?),
            (Some(bundle), false) => Runner::Given(Box::new(RetrieveAndRerank::new(&on, linking, bundle, given)?)),
        };
        stage.done("built the system");
        Ok(runner)
    }
}
