//! Tests that hold for every kind of bundle.

use std::fmt::Debug;

use canonym_core::eval::learned::{Fingerprints, Role, TrainingSource};

use super::*;
use crate::bundle::{cross_encoder, dual_encoder, multitask, names};

/// A change of a bundle, and what the error then says.
pub type Refusal<'a, M> = (&'a dyn Fn(&mut ModelFile<M>), &'a str);

/// Checks that each change is refused with a message and a hint.
pub fn refusals<M: Manifest + Debug>(bundle: impl Fn() -> ModelFile<M>, cases: &[Refusal<'_, M>]) {
    for (change, expected) in cases {
        let mut bundle = bundle();
        change(&mut bundle);
        let bytes = bundle.to_bytes(Precision::Single).unwrap();
        let error = ModelFile::<M>::from_bytes(&bytes, Path::new("model.safetensors")).unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert!(error.hint().is_some(), "{error}");
    }
}

/// What holds for every kind.
fn holds<M: Manifest + Debug + PartialEq + Clone>(bundle: &ModelFile<M>) {
    let path = Path::new("model.safetensors");
    let opened = |bytes: &[u8]| ModelFile::<M>::from_bytes(bytes, path);
    // A bundle comes back from its bytes, and equal bundles have equal bytes.
    let whole = bundle.to_bytes(Precision::Single).unwrap();
    let back = opened(&whole).unwrap();
    assert_eq!((&back.manifest, &back.tokenizer, &back.learned), (&bundle.manifest, &bundle.tokenizer, &None));
    for (name, value) in bundle.parameters.iter() {
        assert_eq!(back.parameters.get(name).unwrap(), value, "{name}");
    }
    assert_eq!(bundle.clone().to_bytes(Precision::Single).unwrap(), whole);
    assert_eq!(back.to_bytes(Precision::Single).unwrap().len(), whole.len());
    let half = bundle.to_bytes(Precision::Half).unwrap();
    assert_ne!(opened(&half).unwrap().fingerprint, back.fingerprint);
    assert_eq!(system_in(&whole, path).unwrap().as_deref(), M::SYSTEM);
    // The header is that of the settings in the file, in the order of the file.
    let settings = &Parameters::metadata(&whole, path).unwrap()[MANIFEST];
    assert_eq!(settings, &serde_json::to_string(&bundle.manifest).unwrap());
    let (header, read) = (Header::of(&bundle.manifest).unwrap(), serde_json::from_str::<Header>(settings).unwrap());
    assert_eq!((header.format, header.system.as_deref(), &header.card), (FORMAT, M::SYSTEM, &read.card));
    assert_eq!(header.rules(), bundle.tokenizer.rules().unwrap());
    // A record of documents is added without moving a weight.
    let mut learned = Learned::default();
    learned.add(TrainingSource::new(
        "part",
        Role::Trained,
        "shapes/train.jsonl",
        ["A ring.", "A box."].map(Fingerprints::of_text),
    ));
    let with = with_record(&half, path, &learned).unwrap();
    let recorded = opened(&with).unwrap();
    assert_eq!(recorded.learned.as_ref(), Some(&learned));
    let before = opened(&half).unwrap();
    assert_eq!((&recorded.parameters, &recorded.manifest), (&before.parameters, &before.manifest));
    let trained = ModelFile { learned: Some(learned.clone()), ..bundle.clone() };
    assert_eq!(trained.to_bytes(Precision::Half).unwrap(), with);
    assert_eq!(with_record(&with, path, &learned).unwrap(), with);
    // Files that are no bundle are refused.
    let mut metadata = Parameters::metadata(&half, path).unwrap();
    metadata.insert(LEARNED.to_owned(), "{\"sources\": 7}".to_owned());
    for (bytes, expected) in [
        (whole[..whole.len() - 10].to_vec(), "incomplete safetensors file"),
        (Vec::new(), "incomplete safetensors file"),
        (b"\x80\x02}q\x00.".repeat(100), "incomplete safetensors file"),
        (Parameters::default().to_bytes(Precision::Single, &BTreeMap::new()).unwrap(), "no entry `settings`"),
        (Parameters::with_metadata(&half, path, &metadata).unwrap(), "invalid training record"),
    ] {
        let error = opened(&bytes).unwrap_err();
        assert!(error.to_string().contains(expected) && error.hint().is_some(), "{expected}: {error}");
    }
}

#[test]
fn every_kind_is_written_and_read() {
    holds(&names::tests::bundle());
    holds(&dual_encoder::tests::bundle());
    holds(&cross_encoder::tests::bundle());
    holds(&multitask::tests::bundle());
}

#[test]
fn no_kind_is_taken_for_another() {
    let path = Path::new("model.safetensors");
    let names = names::tests::bundle().to_bytes(Precision::Single).unwrap();
    let dual = dual_encoder::tests::bundle().to_bytes(Precision::Single).unwrap();
    let cross = cross_encoder::tests::bundle().to_bytes(Precision::Single).unwrap();
    let errors = [
        NameEncoderBundle::from_bytes(&cross, path).unwrap_err(),
        DualBundle::from_bytes(&names, path).unwrap_err(),
        CrossBundle::from_bytes(&dual, path).unwrap_err(),
    ];
    let expected = [
        "of the system `cross-encoder`, not a name encoder",
        "of the system `rescnn`, not a dual encoder",
        "of the system `dual-encoder`, not a cross-encoder",
    ];
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.to_string().contains(expected), "{error}");
    }
}
