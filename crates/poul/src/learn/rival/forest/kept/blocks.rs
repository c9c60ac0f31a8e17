//! Blocks of consecutive groups, each an entry of a checkpoint that is written once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Groups;
use crate::checkpoint::NOT_KEPT;
use crate::tree::Tree;
use crate::{Checkpoint, Result};

/// What a checkpoint holds and is to hold of some groups.
pub(super) struct Blocks<'a> {
    groups: &'a Groups<'a>,
    checkpoint: &'a Checkpoint,
    /// Groups of a block; the last may have fewer.
    n_groups: usize,
    /// Nothing can be written any more, which was told.
    is_full: AtomicBool,
    blocks: Vec<Mutex<Block>>,
}

#[derive(Default)]
struct Block {
    /// Groups that stand, as bytes: the number of each, and its trees.
    bytes: Vec<u8>,
    n_done: usize,
    /// Groups that were read and are not taken yet.
    read: BTreeMap<u64, Vec<Tree>>,
    is_written: bool,
}

impl<'a> Blocks<'a> {
    /// Reads what is there.
    pub(super) fn read(groups: &'a Groups<'a>, checkpoint: &'a Checkpoint) -> Result<Self> {
        let n_groups = groups.groups_between(checkpoint);
        let mut own =
            Self { groups, checkpoint, n_groups, is_full: AtomicBool::new(false), blocks: Vec::new() };
        for block in 0..groups.n_groups.div_ceil(n_groups) {
            let name = groups.entry(block);
            let found = match checkpoint.get(&name)? {
                None => Block::default(),
                Some(bytes) => own.decode(block, bytes).ok_or_else(|| checkpoint.damaged_entry(&name))?,
            };
            own.blocks.push(Mutex::new(found));
        }
        Ok(own)
    }

    fn decode(&self, block: usize, bytes: Vec<u8>) -> Option<Block> {
        let Groups { group_trees, n_features, leaf_width, .. } = *self.groups;
        let (mut rest, mut read) = (bytes.as_slice(), BTreeMap::new());
        while !rest.is_empty() {
            let (number, after) = rest.split_first_chunk()?;
            rest = after;
            let number = u64::from_le_bytes(*number);
            let trees = (0..group_trees).map(|_| Tree::read(&mut rest, n_features, leaf_width));
            let known = read.insert(number, trees.collect::<Option<Vec<Tree>>>()?);
            if known.is_some() || !self.numbers(block).contains(&number) {
                return None;
            }
        }
        let n_done = read.len();
        // Whole blocks are not written again.
        let bytes = if n_done == self.numbers(block).count() { Vec::new() } else { bytes };
        Some(Block { bytes, n_done, read, is_written: true })
    }

    /// The numbers of a block's groups.
    fn numbers(&self, block: usize) -> std::ops::Range<u64> {
        let first = block * self.n_groups;
        first as u64..(first + self.n_groups).min(self.groups.n_groups) as u64
    }

    fn block(&self, number: u64) -> (usize, MutexGuard<'_, Block>) {
        let block = number as usize / self.n_groups;
        (block, self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take(&self, number: u64) -> Option<Vec<Tree>> {
        let (_, mut own) = self.block(number);
        own.read.remove(&number)
    }

    pub(super) fn keep(&self, number: u64, trees: &[Tree]) {
        if self.is_full.load(Ordering::Relaxed) {
            return;
        }
        let (block, mut own) = self.block(number);
        own.bytes.extend(number.to_le_bytes());
        trees.iter().for_each(|tree| tree.write(&mut own.bytes));
        own.n_done += 1;
        own.is_written = false;
        if own.n_done == self.numbers(block).count() {
            self.write(block, &mut own);
        }
    }

    /// Writes what is not written yet.
    pub(super) fn write_all(&self) {
        for (number, block) in self.blocks.iter().enumerate() {
            self.write(number, &mut block.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A disk that is full costs what would have been kept, not the work.
    fn write(&self, number: usize, block: &mut Block) {
        if block.is_written || block.bytes.is_empty() || self.is_full.load(Ordering::Relaxed) {
            return;
        }
        block.is_written = true;
        let bytes = std::mem::take(&mut block.bytes);
        if let Err(error) = self.checkpoint.put(&self.groups.entry(number), &bytes)
            && !self.is_full.swap(true, Ordering::Relaxed)
        {
            self.groups.run.progress.warn(&format!("{error}; the work goes on, and {NOT_KEPT}"));
        }
    }
}
