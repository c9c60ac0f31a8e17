//! The state of a trainer as bytes: a run that stops and resumes gives the same bits as one that does not.
//!
//! Little-endian: magic, version, fingerprint of the layout, members, whether averages are kept, steps; then, for each
//! member, the updates of each segment and the arenas (weights, both moments, average); then a checksum.

use super::layout::Layout;
use super::trainer::Trainer;
use crate::checkpoint::hash;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"poulnet\0";
const VERSION: u64 = 1;

impl Trainer {
    /// Everything that training changes, as bytes.
    pub fn export(&self) -> Vec<u8> {
        let has_average = self.members.iter().any(|member| !member.average.is_empty());
        let n_arenas = 3 + usize::from(has_average);
        let n_member = 8 * self.layout.segments().len() + 4 * n_arenas * self.layout.n_values();
        let mut bytes = Vec::with_capacity(64 + self.members.len() * n_member);
        bytes.extend(MAGIC);
        let header = [
            VERSION,
            fingerprint(&self.layout),
            self.members.len() as u64,
            u64::from(has_average),
            self.n_steps,
        ];
        header.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        for member in &self.members {
            member.n_updates.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            for arena in [&member.weights, &member.first, &member.second, &member.average] {
                arena.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
            }
        }
        let checksum = hash(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// Takes up the state that [`export`](Self::export) gave, of a trainer with the same network and settings.
    pub fn import(&mut self, bytes: &[u8]) -> Result<()> {
        let mut reader = Reader { rest: bytes };
        let body = bytes.len().checked_sub(8).map(|length| &bytes[..length]);
        if reader.take(8)? != MAGIC {
            return Err(Error::input("this is no checkpoint of a network"));
        }
        let version = reader.number()?;
        if version != VERSION {
            return Err(Error::input(format!("a checkpoint of version {version}"))
                .hint(format!("this program reads version {VERSION}: train again, or use a newer program")));
        }
        let stored = bytes.last_chunk::<8>().map(|chunk| u64::from_le_bytes(*chunk));
        if body.map(hash) != stored {
            return Err(Error::input("the checkpoint is damaged").hint("delete it and start again"));
        }
        let other = "the checkpoint is of another network or ensemble";
        let hint = "use the settings it was made with, or delete it and start again";
        let has_average = self.members.iter().any(|member| !member.average.is_empty());
        for own in [fingerprint(&self.layout), self.members.len() as u64, u64::from(has_average)] {
            if reader.number()? != own {
                return Err(Error::input(other).hint(hint));
            }
        }
        let n_steps = reader.number()?;
        let n_arenas = 3 + usize::from(has_average);
        let n_member = 8 * self.layout.segments().len() + 4 * n_arenas * self.layout.n_values();
        if reader.rest.len() != self.members.len() * n_member + 8 {
            return Err(Error::input(other).hint(hint));
        }
        for member in &mut self.members {
            for number in &mut member.n_updates {
                *number = reader.number()?;
            }
            for arena in [&mut member.weights, &mut member.first, &mut member.second, &mut member.average] {
                let bytes = reader.take(4 * arena.len())?;
                for (value, bytes) in arena.iter_mut().zip(bytes.chunks_exact(4)) {
                    *value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
            }
        }
        self.n_steps = n_steps;
        Ok(())
    }
}

pub(super) struct Reader<'b> {
    pub(super) rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn take(&mut self, n_bytes: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(n_bytes)
            .ok_or_else(|| Error::input("the checkpoint ends too early").hint("delete it and start again"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// Names, shapes and order of the matrices, in one number.
pub(super) fn fingerprint(layout: &Layout) -> u64 {
    let mut text = String::new();
    for segment in layout.segments() {
        text.push_str(&format!("{}:{}x{};", segment.name, segment.n_rows, segment.n_cols));
    }
    hash(text.as_bytes())
}
