//! A small, randomly initialised tagger.

use super::tokenized::Splitter;
use super::*;
use crate::models::bert::tests::drawn_model;
use crate::tensor::elementwise::Activation;
use crate::tokenizer::Tokenizer;

/// Words of the vocabulary.
pub const WORDS: &str = "[UNK] [CLS] [SEP] we saw a fever gout rash . the";

/// A model of two types and three concepts.
pub struct Drawn {
    pub model: MultitaskConfig,
    pub parameters: Parameters,
    pub splitter: Splitter,
}

/// A model with all tasks and one LSTM layer.
pub fn drawn_tagger(framing: Framing, crf: bool) -> Drawn {
    drawn_tagger_with(framing, crf, |_| {})
}

/// Like [`drawn_tagger`], with other settings.
pub fn drawn_tagger_with(framing: Framing, crf: bool, change: impl Fn(&mut MultitaskConfig)) -> Drawn {
    let (bert, weights) = drawn_model(1, Activation::Gelu);
    let mut parameters = Parameters::default();
    for (name, value) in weights.iter().filter(|(name, _)| !name.starts_with("pooler")) {
        parameters.add(format!("{ENCODER}{name}"), value.clone());
    }
    let mut model = MultitaskConfig {
        bert,
        tasks: Task::ALL.to_vec(),
        framing,
        lstm: Some(BiLstmConfig { n_layers: 1, hidden: 4, dropout: 0.1 }),
        crf,
        type_tags: crf,
        lenient: false,
        hidden_layer: false,
        linked_spans: LinkedSpans::Runs,
        max_wordpieces: 24,
        types: vec!["A".to_owned(), "B".to_owned()],
    };
    change(&mut model);
    model.init(&mut parameters, 3, &mut SplitMix64::new(1));
    model.check(&parameters, 3).unwrap();
    let tokenizer = Tokenizer::of(WORDS.split(' ').map(str::to_owned).collect()).unwrap();
    let splitter = Splitter::new(tokenizer, model.max_wordpieces).unwrap();
    Drawn { model, parameters, splitter }
}

#[test]
fn settings_at_their_defaults_are_written_as_before() {
    let json = serde_json::to_string(&drawn_tagger(Framing::Token, false).model).unwrap();
    for key in ["\"lenient\"", "\"hidden_layer\"", "\"linked_spans\""] {
        assert!(!json.contains(key), "{json}");
    }
    let with = drawn_tagger_with(Framing::Token, false, |model| model.hidden_layer = true);
    assert!(with.parameters.get("concepts.hidden.weight").is_ok());
    let json = serde_json::to_string(&with.model).unwrap();
    assert_eq!(serde_json::from_str::<MultitaskConfig>(&json).unwrap(), with.model);
    let without = with.parameters.without("types.hidden.bias");
    assert!(with.model.check(&without, 3).unwrap_err().to_string().contains("types.hidden.bias"));
}
