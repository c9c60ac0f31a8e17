//! Files with a header around their content: the content changes, the header says so.

use serde_json::{Map, Value};

use super::{NUMBERS, bytes, json};
use crate::random::Random;

/// Where the manifest stands in a model file.
const METADATA: &str = "__metadata__";
const MANIFEST: &str = "poul";
/// Tensors are not made longer than this.
const MOST_VALUES: usize = 1 << 14;
/// What an entry of a checkpoint begins with.
const ENTRY: &[u8] = b"poulpart";
/// What the state of a network begins with, which ends an entry and has a checksum of its own.
const NETWORK: &[u8] = b"poulnet\0";

/// A tensor with its shape.
struct Tensor {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    data: Vec<u8>,
}

/// Changes the manifest or the tensors of a model file, and writes the container anew; none where `file` is no model.
pub(crate) fn model(random: &mut Random, file: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let (mut manifest, mut tensors) = parse(file)?;
    match random.below(8) {
        // Tensors of another model under this manifest, or a few of them among its own.
        0 => {
            let (_, others) = parse(other)?;
            let keep = random.below(tensors.len() + 1);
            tensors.truncate(keep);
            tensors.extend(others.into_iter().skip(keep));
        }
        1 | 2 if !tensors.is_empty() => {
            for _ in 0..1 + random.below(3) {
                let at = random.below(tensors.len());
                change(random, &mut tensors[at]);
            }
        }
        3 => {
            json(random, &mut manifest);
            if !tensors.is_empty() {
                let at = random.below(tensors.len());
                change(random, &mut tensors[at]);
            }
        }
        _ => json(random, &mut manifest),
    }
    Some(write(&manifest, &tensors))
}

fn parse(file: &[u8]) -> Option<(Value, Vec<Tensor>)> {
    let (length, rest) = file.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (header, data) = (rest.get(..length)?, rest.get(length..)?);
    let header: Map<String, Value> = serde_json::from_slice(header).ok()?;
    let manifest = serde_json::from_str(header.get(METADATA)?.get(MANIFEST)?.as_str()?).ok()?;
    let mut tensors = Vec::new();
    for (name, entry) in header.iter().filter(|(name, _)| *name != METADATA) {
        let offset = |idx: usize| usize::try_from(entry["data_offsets"][idx].as_u64()?).ok();
        tensors.push(Tensor {
            name: name.clone(),
            dtype: entry["dtype"].as_str()?.to_owned(),
            shape: entry["shape"].as_array()?.iter().filter_map(Value::as_u64).collect(),
            data: data.get(offset(0)?..offset(1)?)?.to_vec(),
        });
    }
    Some((manifest, tensors))
}

fn change(random: &mut Random, tensor: &mut Tensor) {
    let n_values = tensor.data.len() / 4;
    let set = |tensor: &mut Tensor, at: usize, value: f32| {
        if let Some(bytes) = tensor.data.get_mut(4 * at..4 * at + 4) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    };
    match random.below(9) {
        0 => {
            let value = *random.pick(&[
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                f32::MAX,
                f32::MIN,
                1e-40,
                0.0,
                -0.0,
                1e30,
            ]);
            set(tensor, random.below(n_values), value);
        }
        1 => {
            let value = (random.normal() * 10_f64.powi(random.below(80) as i32 - 40)) as f32;
            (0..n_values).for_each(|at| set(tensor, at, value));
        }
        2 => set(tensor, random.below(n_values), random.below(1 << 20) as f32),
        3 => set(tensor, random.below(n_values), *random.pick(NUMBERS) as f32),
        // Another shape, and as many values as it says.
        4 | 5 if !tensor.shape.is_empty() => {
            let axis = random.below(tensor.shape.len());
            tensor.shape[axis] = random.below(2 * tensor.shape[axis] as usize + 2) as u64;
            let wanted =
                tensor.shape.iter().fold(1_usize, |product, length| product.saturating_mul(*length as usize));
            tensor.data.resize(4 * wanted.min(MOST_VALUES), 0);
        }
        6 => tensor.shape.reverse(),
        7 => tensor.name.push('x'),
        _ => {
            tensor.shape.push(1);
            if random.once_in(4) {
                tensor.dtype = "F64".to_owned();
            }
        }
    }
}

fn write(manifest: &Value, tensors: &[Tensor]) -> Vec<u8> {
    let mut header = Map::new();
    header.insert(METADATA.to_owned(), serde_json::json!({ MANIFEST: manifest.to_string() }));
    let mut data = Vec::new();
    for tensor in tensors {
        let offsets = [data.len(), data.len() + tensor.data.len()];
        let entry =
            serde_json::json!({ "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets });
        header.insert(tensor.name.clone(), entry);
        data.extend(&tensor.data);
    }
    let mut header = Value::Object(header).to_string();
    let padding = header.len().next_multiple_of(8) - header.len();
    header.extend(std::iter::repeat_n(' ', padding));
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

/// Changes the content of an entry of a checkpoint and puts the right checksum under it; none where `file` is no entry.
pub(crate) fn checkpoint_entry(random: &mut Random, file: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let content = file.strip_prefix(ENTRY)?;
    let mut content = content.get(..content.len().checked_sub(8)?)?.to_vec();
    match serde_json::from_slice::<Value>(&content) {
        Ok(mut tree) => {
            json(random, &mut tree);
            content = tree.to_string().into_bytes();
        }
        Err(_) => match model(random, &content, other) {
            Some(changed) if !random.once_in(4) => content = changed,
            _ => bytes(random, &mut content, other),
        },
    }
    if let Some(start) = content.windows(NETWORK.len()).position(|window| window == NETWORK)
        && let Some(end) = content.len().checked_sub(8).filter(|end| *end > start)
    {
        let sum = checksum(&content[start..end]).to_le_bytes();
        content[end..].copy_from_slice(&sum);
    }
    let mut whole = [ENTRY, &content].concat();
    whole.extend(checksum(&whole).to_le_bytes());
    Some(whole)
}

/// The checksum that ends an entry of a checkpoint.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    let words =
        bytes.chunks(8).map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    words.fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, step)
}
