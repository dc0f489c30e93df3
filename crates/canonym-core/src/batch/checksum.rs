//! Sizes and checksums of files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::{Error, Result};

/// Number of bytes read at a time.
const PIECE: usize = 1 << 20;

/// Size and XXH3 hash of content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// Number of bytes.
    pub bytes: u64,
    /// The 128-bit XXH3 hash in hexadecimal digits, as printed by `xxh128sum`.
    pub xxh3: String,
}

/// The checksum of files, one after the other.
///
/// # Errors
/// If a file cannot be read.
pub fn checksum(paths: &[&Path]) -> Result<Checksum> {
    let (mut hasher, mut n_bytes) = (Xxh3::new(), 0);
    let mut piece = vec![0; PIECE];
    for path in paths {
        let mut file = File::open(path).map_err(|source| Error::io("open", path, source))?;
        loop {
            match file.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => {
                    hasher.update(&piece[..n]);
                    n_bytes += n as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::io("read", path, source)),
            }
        }
    }
    Ok(Checksum { bytes: n_bytes, xxh3: format!("{:032x}", hasher.digest128()) })
}
