//! Named weights, and their safetensors files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use canonym_core::artifact::AtomicFile;
use canonym_core::error::Context;
use canonym_core::{Error, Result};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};
use xxhash_rust::xxh3::Xxh3;

use crate::tensor::matrix::Matrix;
use crate::tensor::random::{self, SplitMix64};

/// Key of our metadata in a safetensors file; the value is JSON.
const METADATA: &str = "canonym";

/// Key of the checksum over all tensors and other metadata.
const CHECKSUM: &str = "checksum";

/// The weights of a model, in insertion order. Every weight is a matrix; a bias is a single row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters {
    // Private: `row_of` maps names to entries.
    entries: Vec<Entry>,
    row_of: BTreeMap<String, usize>,
    tables: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    value: Matrix,
    frozen: bool,
    /// Learning-rate multiplier.
    lr_multiplier: f32,
}

/// Number format of weights on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// f32, lossless.
    Single,
    /// f16.
    Half,
    /// f16 rounded to the seven fraction bits of bf16: of the same size, but about a tenth smaller when compressed.
    RoundedHalf,
}

impl Parameters {
    /// Adds or replaces a weight.
    pub fn add(&mut self, name: impl std::convert::Into<String>, value: Matrix) {
        let name = name.into();
        match self.row_of.get(&name) {
            Some(row) => self.entries[*row].value = value,
            None => {
                self.row_of.insert(name.clone(), self.entries.len());
                self.entries.push(Entry { name, value, frozen: false, lr_multiplier: 1.0 });
            }
        }
    }

    /// Adds weight and bias of a linear layer, initialised uniformly within `±1 / sqrt(n_in)`.
    pub fn add_linear(&mut self, name: &str, n_in: usize, n_out: usize, rng: &mut SplitMix64) {
        let bound = 1.0 / (n_in as f32).sqrt();
        let mut uniform = |n| (0..n).map(|_| (2.0 * random::unit(rng) - 1.0) * bound).collect::<Vec<f32>>();
        let weight = Matrix::new(n_in, n_out, uniform(n_in * n_out));
        let bias = Matrix::new(1, n_out, uniform(n_out));
        self.add(format!("{name}.weight"), weight);
        self.add(format!("{name}.bias"), bias);
    }

    /// Adds or replaces a named byte table, stored beside the weights.
    pub fn add_table(&mut self, name: impl std::convert::Into<String>, bytes: Vec<u8>) {
        self.tables.insert(name.into(), bytes);
    }

    /// A byte table by name.
    pub fn table(&self, name: &str) -> Result<&[u8]> {
        let missing = || Error::mismatch(format!("the model has no table `{name}`"));
        let table = self.tables.get(name).map(Vec::as_slice);
        table.ok_or_else(|| missing().with_hint("the bundle contains another kind of model"))
    }

    /// Names and bytes of all tables, sorted by name.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.tables.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// The weights whose names start with `prefix`, with the prefix removed.
    pub fn under(&self, prefix: &str) -> Parameters {
        let mut part = Parameters::default();
        for entry in &self.entries {
            if let Some(name) = entry.name.strip_prefix(prefix) {
                part.add(name, entry.value.clone());
            }
        }
        part
    }

    /// Number of weights.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The row of a weight by name.
    pub fn find(&self, name: &str) -> Result<usize> {
        let missing = || Error::mismatch(format!("the model has no weight `{name}`"));
        self.row_of.get(name).copied().ok_or_else(|| missing().with_hint("the bundle contains another kind of model"))
    }

    /// The weight of a row.
    pub fn at(&self, row: usize) -> &Matrix {
        &self.entries[row].value
    }

    /// The mutable weight of a row.
    pub fn at_mut(&mut self, row: usize) -> &mut Matrix {
        &mut self.entries[row].value
    }

    /// A weight by name.
    pub fn get(&self, name: &str) -> Result<&Matrix> {
        Ok(self.at(self.find(name)?))
    }

    /// A weight by name; an error if its shape differs.
    pub fn shaped(&self, name: &str, n_rows: usize, n_cols: usize) -> Result<&Matrix> {
        let value = self.get(name)?;
        if (value.n_rows, value.n_cols) != (n_rows, n_cols) {
            let message =
                format!("the weight `{name}` is {} x {}, not {n_rows} x {n_cols}", value.n_rows, value.n_cols);
            return Err(Error::mismatch(message).with_hint("weights and config of the bundle do not match"));
        }
        Ok(value)
    }

    /// Names and weights, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Matrix)> {
        self.entries.iter().map(|entry| (entry.name.as_str(), &entry.value))
    }

    /// Excludes a weight from training.
    pub fn freeze(&mut self, name: &str) -> Result<()> {
        let row = self.find(name)?;
        self.entries[row].frozen = true;
        Ok(())
    }

    /// Rounds a weight to f16, as it is written.
    pub fn round(&mut self, name: &str) -> Result<()> {
        let row = self.find(name)?;
        self.at_mut(row).values.iter_mut().for_each(|value| *value = f16::from_f32(*value).to_f32());
        Ok(())
    }

    /// Whether a weight is frozen.
    pub fn is_frozen(&self, row: usize) -> bool {
        self.entries[row].frozen
    }

    /// Sets the learning-rate multiplier of a weight.
    pub fn lr_multiplier(&mut self, name: &str, factor: f32) -> Result<()> {
        let row = self.find(name)?;
        self.entries[row].lr_multiplier = factor;
        Ok(())
    }

    /// The learning-rate multiplier of a weight; 1 by default.
    pub fn pace_of(&self, row: usize) -> f32 {
        self.entries[row].lr_multiplier
    }

    /// Removes a weight.
    #[must_use]
    pub fn without(self, name: &str) -> Parameters {
        let entries: Vec<Entry> = self.entries.into_iter().filter(|entry| entry.name != name).collect();
        let row_of = entries.iter().enumerate().map(|(row, entry)| (entry.name.clone(), row)).collect();
        Parameters { entries, row_of, tables: self.tables.clone() }
    }

    /// Number of trained values, and of all values.
    pub fn counts(&self) -> (usize, usize) {
        let count = |entry: &Entry| entry.value.values.len();
        let trained = self.entries.iter().filter(|entry| !entry.frozen).map(count).sum();
        (trained, self.entries.iter().map(count).sum())
    }

    /// Serialises to the safetensors format.
    pub fn to_bytes(&self, precision: Precision, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
        let (dtype, bytes): (Dtype, Vec<Vec<u8>>) = match precision {
            Precision::Single => (Dtype::F32, self.entries.iter().map(|entry| single_bytes(&entry.value)).collect()),
            Precision::Half => (Dtype::F16, self.entries.iter().map(|entry| half_bytes(&entry.value)).collect()),
            Precision::RoundedHalf => {
                (Dtype::F16, self.entries.iter().map(|entry| rounded_half_bytes(&entry.value)).collect())
            }
        };
        let failed = "cannot write the weights";
        let mut views = Vec::with_capacity(self.len());
        for (entry, bytes) in self.entries.iter().zip(&bytes) {
            let shape = vec![entry.value.n_rows, entry.value.n_cols];
            views.push((entry.name.as_str(), TensorView::new(dtype, shape, bytes).context(failed)?));
        }
        for (name, bytes) in &self.tables {
            views.push((name.as_str(), TensorView::new(Dtype::U8, vec![bytes.len()], bytes).context(failed)?));
        }
        let mut metadata = metadata.clone();
        let sum = checksum(&metadata, views.iter().map(|(name, view)| (*name, view)).collect());
        metadata.insert(CHECKSUM.to_owned(), sum);
        // A single entry, since the library writes several in random order.
        let metadata = serde_json::to_string(&metadata).context("cannot write the metadata")?;
        safetensors::serialize(views, Some([(METADATA.to_owned(), metadata)].into())).context(failed)
    }

    /// Writes a safetensors file atomically.
    pub fn write(&self, path: &Path, precision: Precision, metadata: &BTreeMap<String, String>) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let bytes = self.to_bytes(precision, metadata)?;
        file.write_all(&bytes).map_err(|error| Error::io("write", path, error))?;
        file.commit()
    }

    /// Reads a safetensors file with its metadata.
    pub fn read(path: &Path) -> Result<(Parameters, BTreeMap<String, String>)> {
        let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
        Parameters::from_bytes(&bytes, path)
    }

    /// Reads the tensors with `wanted` names; the content of others is not checked.
    pub fn read_some(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<Parameters> {
        let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
        Ok(Parameters::some_from_bytes(&bytes, path, wanted)?.0)
    }

    /// Deserialises a safetensors file; `path` is used in error messages. One-dimensional tensors become a single row; those with more than
    /// two dimensions are flattened to rows of the first.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<(Parameters, BTreeMap<String, String>)> {
        Parameters::some_from_bytes(bytes, path, |_| true)
    }

    fn some_from_bytes(
        bytes: &[u8],
        path: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(Parameters, BTreeMap<String, String>)> {
        let refused = |message: String| {
            Error::artifact(path, message).with_hint("expected a safetensors file; check that it was copied completely")
        };
        let damaged = |error| refused(format!("invalid or incomplete safetensors file: {error}"));
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let mut metadata = own_metadata(&header);
        let mut named = tensors.tensors();
        // Files of other programs and older versions have no checksum.
        if let Some(told) = metadata.remove(CHECKSUM)
            && told != checksum(&metadata, named.iter().map(|(name, view)| (name.as_str(), view)).collect())
        {
            return Err(refused("it is damaged: checksum mismatch".to_owned()));
        }
        let mut parameters = Parameters::default();
        // Sorted by name, so that files of equal content give equal models.
        named.sort_by(|left, right| left.0.cmp(&right.0));
        for (name, tensor) in named.into_iter().filter(|(name, _)| wanted(name)) {
            if tensor.dtype() == Dtype::U8 {
                parameters.add_table(name, tensor.data().to_vec());
                continue;
            }
            let values = values_of(&tensor)
                .ok_or_else(|| refused(format!("`{name}` has the unsupported type {:?}", tensor.dtype())))?;
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                return Err(refused(format!("`{name}` contains the value {value}")));
            }
            let (n_rows, n_cols) = match tensor.shape() {
                [] => (1, 1),
                [n_cols] => (1, *n_cols),
                [n_rows, rest @ ..] => (*n_rows, rest.iter().product()),
            };
            parameters.add(name, Matrix::new(n_rows, n_cols, values));
        }
        Ok((parameters, metadata))
    }

    /// The metadata of a safetensors file; `path` is used in error messages.
    pub fn metadata(bytes: &[u8], path: &Path) -> Result<BTreeMap<String, String>> {
        let damaged = |error| {
            let error = Error::artifact(path, format!("invalid or incomplete safetensors file: {error}"));
            error.with_hint("expected a safetensors file; check that it was copied completely")
        };
        Ok(own_metadata(&SafeTensors::read_metadata(bytes).map_err(damaged)?.1))
    }

    /// Whether a safetensors file has a tensor of this name; the content is not read.
    pub fn has_tensor(bytes: &[u8], path: &Path, name: &str) -> Result<bool> {
        let damaged = |error| {
            let error = Error::artifact(path, format!("invalid or incomplete safetensors file: {error}"));
            error.with_hint("expected a safetensors file; check that it was copied completely")
        };
        Ok(SafeTensors::read_metadata(bytes).map_err(damaged)?.1.info(name).is_some())
    }

    /// Replaces the metadata of a safetensors file; tensors stay identical to the byte.
    pub fn with_metadata(bytes: &[u8], path: &Path, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
        let damaged = |error| Error::artifact(path, format!("invalid or incomplete safetensors file: {error}"));
        let tensors = SafeTensors::deserialize(bytes).map_err(damaged)?;
        let failed = "cannot write the metadata";
        let mut metadata = metadata.clone();
        metadata.remove(CHECKSUM);
        let named = tensors.tensors();
        let sum = checksum(&metadata, named.iter().map(|(name, view)| (name.as_str(), view)).collect());
        metadata.insert(CHECKSUM.to_owned(), sum);
        let metadata = serde_json::to_string(&metadata).context(failed)?;
        let metadata = Some([(METADATA.to_owned(), metadata)].into());
        safetensors::serialize(named, metadata).context(failed)
    }
}

/// Our metadata; empty for files of other programs.
fn own_metadata(header: &Metadata) -> BTreeMap<String, String> {
    let json = header.metadata().as_ref().and_then(|entries| entries.get(METADATA));
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// Hash of metadata, names, types, shapes and values, in hexadecimal; independent of the order of tensors.
fn checksum(metadata: &BTreeMap<String, String>, mut tensors: Vec<(&str, &TensorView<'_>)>) -> String {
    tensors.sort_by_key(|(name, _)| *name);
    let mut hasher = Xxh3::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    for (name, value) in metadata {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    for (name, tensor) in tensors {
        add(name.as_bytes());
        add(format!("{:?} {:?}", tensor.dtype(), tensor.shape()).as_bytes());
        add(tensor.data());
    }
    format!("{:032x}", hasher.digest128())
}

fn single_bytes(value: &Matrix) -> Vec<u8> {
    value.values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn half_bytes(value: &Matrix) -> Vec<u8> {
    value.values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect()
}

fn rounded_half_bytes(value: &Matrix) -> Vec<u8> {
    // A carry into the exponent rounds up to the next power of two.
    let rounded = |value: &f32| ((f16::from_f32(*value).to_bits() + 4) & !7).to_le_bytes();
    value.values.iter().flat_map(rounded).collect()
}

fn values_of(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let data = tensor.data();
    Some(match tensor.dtype() {
        Dtype::F32 => data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
        Dtype::F16 => data.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect(),
        Dtype::BF16 => data.as_chunks::<2>().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut parameters = Parameters::default();
        parameters.add("layer.weight", Matrix::new(2, 3, vec![1.0, -2.0, 0.5, 3.0, 4.0, -0.25]));
        parameters.add("layer.bias", Matrix::new(1, 3, vec![0.0, 1.0, 2.0]));
        parameters.add_table("words", b"liver\nheart".to_vec());
        let metadata = BTreeMap::from([("settings".to_owned(), "{\"width\": 3}".to_owned())]);
        parameters.to_bytes(Precision::Single, &metadata).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<(Parameters, BTreeMap<String, String>)> {
        Parameters::from_bytes(bytes, Path::new("model.safetensors"))
    }

    #[test]
    fn rounded_weights_keep_seven_fraction_bits() {
        let mut parameters = Parameters::default();
        let values = vec![1.0, -0.003, 0.1234, 1.9999, 0.0];
        parameters.add("weight", Matrix::new(1, 5, values.clone()));
        let bytes = parameters.to_bytes(Precision::RoundedHalf, &BTreeMap::new()).unwrap();
        let (back, _) = read(&bytes).unwrap();
        for (was, is) in values.iter().zip(&back.get("weight").unwrap().values) {
            assert!((was - is).abs() <= was.abs() / 240.0, "{was}: {is}");
            assert_eq!(f16::from_f32(*is).to_bits() & 7, 0, "{is}");
        }
        assert_eq!(back.get("weight").unwrap().values[3], 2.0);
    }

    #[test]
    fn no_changed_bit_of_weights_settings_or_tables_goes_unnoticed() {
        let whole = written();
        let (parameters, metadata) = read(&whole).unwrap();
        assert_eq!(metadata.keys().collect::<Vec<_>>(), ["settings"]);
        let mut n_refused = 0;
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match read(&damaged) {
                // Without the `checksum` key it is an older file, and without settings no bundle.
                Ok((back, told)) => {
                    assert!(back == parameters, "bit {bit}");
                    assert!(told.get("settings").is_none_or(|told| *told == metadata["settings"]), "bit {bit}");
                }
                Err(_) => n_refused += 1,
            }
        }
        assert!(n_refused > 8 * whole.len() * 8 / 10, "{n_refused}");
    }

    #[test]
    fn files_without_a_checksum_open() {
        let weight = [1.0_f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let view = TensorView::new(Dtype::F32, vec![1, 2], &weight).unwrap();
        let metadata = [(METADATA.to_owned(), "{\"settings\": \"{}\"}".to_owned())];
        let bytes = safetensors::serialize([("layer", view)], Some(metadata.into())).unwrap();
        let (parameters, metadata) = read(&bytes).unwrap();
        assert_eq!((parameters.get("layer").unwrap().values.as_slice(), metadata.len()), (&[1.0, 2.0][..], 1));
    }
}
