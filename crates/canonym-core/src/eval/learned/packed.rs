//! Fingerprints as Base64 of their little-endian bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// A fingerprint, or half of one.
pub trait Number: Sized {
    /// Its size in bytes.
    const SIZE: usize;
    fn bytes(&self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

impl Number for u64 {
    const SIZE: usize = 8;

    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl Number for u32 {
    const SIZE: usize = 4;

    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }

    fn of(bytes: &[u8]) -> u32 {
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }
}

pub fn serialize<T: Number, S: Serializer>(prints: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = prints.iter().flat_map(|print| print.bytes()).collect();
    serializer.serialize_str(&STANDARD.encode(bytes))
}

pub fn deserialize<'de, T: Number, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let refused = || D::Error::custom(format!("fingerprints are Base64 of numbers of {} bytes", T::SIZE));
    let bytes = STANDARD.decode(text).map_err(|_| refused())?;
    if !bytes.len().is_multiple_of(T::SIZE) {
        return Err(refused());
    }
    Ok(bytes.chunks_exact(T::SIZE).map(T::of).collect())
}
