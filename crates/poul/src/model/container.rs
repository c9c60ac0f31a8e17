//! The bytes of a model file: a safetensors container whose metadata hold the manifest under the key `poul`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, View};

use super::manifest::Manifest;
use crate::effect::{Tensor, Tensors};
use crate::{AtomicFile, Error, Result};

/// Where the manifest stands in the metadata.
const KEY: &str = "poul";
/// The length of the header comes first, in eight bytes.
const LENGTH_BYTES: usize = 8;
/// A header longer than this is none: the limit of the format.
const MAX_HEADER: u64 = 100_000_000;
/// Numbers that are written at once.
const BLOCK_VALUES: usize = 1 << 16;

/// Writes a model file.
pub(super) fn write(path: &Path, manifest: &Manifest, tensors: &[Tensor<'_>]) -> Result<()> {
    let header = header(manifest, tensors).map_err(|error| error.file(path))?;
    let mut file = AtomicFile::create_named(path, "a model")?;
    write_all(&mut file, &header, tensors).map_err(|error| Error::output(path, error))?;
    file.commit()
}

/// The content of a model file.
pub(super) fn bytes(manifest: &Manifest, tensors: &[Tensor<'_>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let header = header(manifest, tensors)?;
    write_all(&mut bytes, &header, tensors)
        .map_err(|error| Error::other(format!("cannot store the model: {error}")).source(error))?;
    Ok(bytes)
}

/// Writes numbers block by block: a forest takes gigabytes, and should not take them again as bytes.
fn write_all(out: &mut impl Write, header: &[u8], tensors: &[Tensor<'_>]) -> std::io::Result<()> {
    out.write_all(header)?;
    // Tensors of one type lie in the order of their names.
    let mut in_order: Vec<&Tensor<'_>> = tensors.iter().collect();
    in_order.sort_by(|a, b| a.name.cmp(&b.name));
    let mut block = Vec::with_capacity(4 * BLOCK_VALUES);
    for values in in_order.iter().flat_map(|tensor| tensor.values.chunks(BLOCK_VALUES)) {
        block.clear();
        block.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        out.write_all(&block)?;
    }
    Ok(())
}

/// What comes before the numbers.
fn header(manifest: &Manifest, tensors: &[Tensor<'_>]) -> Result<Vec<u8>> {
    let failed = |what: String| Error::other(format!("cannot store the model: {what}"));
    for tensor in tensors {
        let n_values = tensor.shape.iter().try_fold(1_usize, |n, side| n.checked_mul(*side));
        if n_values != Some(tensor.values.len()) {
            let (name, found) = (&tensor.name, tensor.values.len());
            return Err(failed(format!("tensor `{name}` of shape {:?} has {found} values", tensor.shape)));
        }
        if let Some(value) = tensor.values.iter().find(|value| !value.is_finite()) {
            return Err(failed(format!("tensor `{}` holds {value}", tensor.name)));
        }
    }
    // One key: the order of a hash map cannot show.
    let metadata = [(KEY.to_owned(), manifest.to_text()?)].into_iter().collect();
    let views = tensors.iter().map(|tensor| (tensor.name.as_str(), Outline(tensor)));
    safetensors::serialize(views, Some(metadata)).map_err(|error| failed(error.to_string()))
}

/// The bytes of a file, if it begins like a model: a large table that was named by mistake is not read.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::read(path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    (&mut file).take(LENGTH_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if !begins_like_model(&bytes) {
        return Err(not_a_model("it does not begin like one").file(path));
    }
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The manifest's text and the tensors.
pub(super) fn parse(bytes: &[u8]) -> Result<(String, Tensors)> {
    // The reader adds up offsets that stand in the file without minding overflow; nothing of it is used after a panic.
    let parsed = catch_unwind(AssertUnwindSafe(|| parse_container(bytes)));
    parsed.unwrap_or_else(|_| Err(damaged("its offsets are impossible")))
}

fn parse_container(bytes: &[u8]) -> Result<(String, Tensors)> {
    if !begins_like_model(bytes) {
        return Err(not_a_model("it does not begin like one"));
    }
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| wrong(&error))?;
    let Some(manifest) = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY)) else {
        return Err(not_a_model("it is a safetensors file of some other program"));
    };
    let container = SafeTensors::deserialize(bytes).map_err(|error| wrong(&error))?;
    let mut tensors = Tensors::default();
    for (name, view) in container.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(damaged("its type is not F32").at(format!("tensor `{name}`")));
        }
        let number = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
        let (numbers, _) = view.data().as_chunks::<4>();
        let values: Vec<f32> = numbers.iter().map(number).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(damaged("it holds NaN or infinity").at(format!("tensor `{name}`")));
        }
        tensors.insert(name, view.shape().to_vec(), values);
    }
    Ok((manifest.clone(), tensors))
}

fn begins_like_model(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return false };
    u64::from_le_bytes(*length) <= MAX_HEADER && rest.first() == Some(&b'{')
}

fn wrong(error: &SafeTensorError) -> Error {
    match error {
        SafeTensorError::InvalidHeaderLength | SafeTensorError::MetadataIncompleteBuffer => {
            Error::input("the model is cut short, or something was added to it")
                .hint("copy the file again; if it was never whole, fit again")
        }
        error => damaged(&error.to_string()),
    }
}

fn damaged(what: &str) -> Error {
    Error::input(format!("the model is damaged: {what}")).hint("copy the file again, or fit again")
}

fn not_a_model(what: &str) -> Error {
    Error::input(format!("not a model: {what}"))
        .hint("give a file that fitting wrote; the model comes before the data")
}

/// A tensor's place in the file, without its numbers.
struct Outline<'a>(&'a Tensor<'a>);

impl View for Outline<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&[])
    }

    fn data_len(&self) -> usize {
        4 * self.0.values.len()
    }
}
