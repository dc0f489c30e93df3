//! Retrieve and rerank for given mentions: a linker retrieves candidates, a cross-encoder rescores them in context.

use std::path::Path;
use std::sync::Arc;

use crate::bundle::cross_encoder::CrossBundle;
use crate::models::cross_encoder::infer::CrossEncoder;
use canonym_core::error::Context;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::{Link, LinkInput, Linker, Reranker};

use crate::system::{LinkingModel, Target};

/// A linker followed by a reranker.
pub struct RetrieveAndRerank {
    linker: Box<dyn Linker>,
    reranker: CrossEncoder,
    config: LinkConfig,
}

/// Names of models that are not files.
const BUILT_IN: [&str; 3] = ["default", "lexical", "bm25"];

/// Opens a reranker.
pub fn open(path: &Path) -> canonym_core::Result<Arc<CrossBundle>> {
    let context = || format!("cannot rerank with {}", path.display());
    if !path.exists() && path.to_str().is_some_and(|name| BUILT_IN.contains(&name)) {
        let error = canonym_core::Error::unsupported(format!("`{}` is not a cross-encoder", path.display()));
        return Err(error.with_hint("use a model trained with `system = \"cross-encoder\"`"));
    }
    Ok(Arc::new(CrossBundle::open(path).with_context(context)?))
}

impl RetrieveAndRerank {
    /// The two stages. The reranker scores as many candidates as it was trained with.
    pub fn new(
        on: &Target,
        model: &dyn LinkingModel,
        bundle: &CrossBundle,
        config: LinkConfig,
    ) -> canonym_core::Result<RetrieveAndRerank> {
        let first = LinkConfig { top_k: bundle.manifest.retrieval.n_candidates, min_score: 0.0 };
        let linker = model.linker(on, first)?;
        let reranker = CrossEncoder::new(on.kb.clone(), Arc::new(bundle.scorer()?));
        Ok(RetrieveAndRerank { linker, reranker, config })
    }
}

impl Linker for RetrieveAndRerank {
    fn kb(&self) -> &KnowledgeBase {
        self.linker.kb()
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> canonym_core::Result<Vec<Vec<Link>>> {
        let mut links = self.linker.link(inputs)?;
        self.reranker.rerank(inputs, &mut links)?;
        for link in links.iter_mut().flatten() {
            link.candidates.truncate(self.config.top_k.max(1));
            link.nil = link.candidates.first().is_none_or(|best| best.p_link < self.config.min_score);
        }
        Ok(links)
    }

    fn explain(&self, _: &[LinkInput<'_>]) -> canonym_core::Result<Vec<Vec<(Link, Explanation)>>> {
        let hint = "omit the explanations (option `--explain`) or the reranker (option `--rerank`)";
        Err(canonym_core::Error::usage("reranking does not support explanations", hint))
    }
}
