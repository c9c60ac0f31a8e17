//! Trees that a forest leaves in a checkpoint while it grows, so that work that was stopped goes on from those that stand.
//!
//! Groups of trees are written in blocks of consecutive groups, each once: a block is due when it is whole, or when the work is asked
//! to stop. A tree is decided by its number and its stream, so which of them were read changes no byte.

mod blocks;

use rayon::prelude::*;

use self::blocks::Blocks;
use super::bins::Bins;
use super::criterion::Criterion;
use crate::checkpoint::hash;
use crate::tree::Tree;
use crate::{Checkpoint, Error, Result, Run};

/// So many rows of a tree take about as long as a step of a network: what lies between two writes is counted in those.
const STEP_ROWS: u64 = 1 << 14;
/// Rows whose labels are hashed together.
const HASHED_ROWS: usize = 1 << 12;

/// Groups of trees, about to be grown.
pub(super) struct Groups<'a> {
    /// Its stream names the trees.
    pub(super) run: Run<'a>,
    pub(super) n_groups: usize,
    pub(super) group_trees: usize,
    pub(super) n_rows: usize,
    pub(super) n_features: usize,
    pub(super) leaf_width: usize,
    /// Of what trees are grown on; a forest of the same stream on something else is another.
    pub(super) fingerprint: u64,
}

impl<'a> Groups<'a> {
    /// Groups of so many trees, grown by a criterion on rows of these bins and weights.
    pub(super) fn new<C: Criterion>(
        (n_groups, group_trees): (usize, usize),
        criterion: &C,
        (bins, weight): (&Bins, Option<&[f32]>),
        run: Run<'a>,
    ) -> Self {
        let mut leaf = Vec::new();
        criterion.leaf(&criterion.start(), &[0], &mut leaf);
        Self {
            run,
            n_groups,
            group_trees,
            n_rows: bins.n_rows(),
            n_features: bins.n_features(),
            leaf_width: leaf.len(),
            fingerprint: run.checkpoint.map_or(0, |_| fingerprint(criterion, bins, weight)),
        }
    }

    /// The trees of every group with what goes with them: `fresh` grows a group, `again` makes what goes with one that was read.
    pub(super) fn grow<T: Send>(
        &self,
        fresh: impl Fn(u64) -> Result<(Vec<Tree>, T)> + Sync,
        again: impl Fn(u64) -> T + Sync,
    ) -> Result<Vec<(Vec<Tree>, T)>> {
        let Self { run, .. } = self;
        let Some(checkpoint) = run.checkpoint else {
            let group =
                |number| if run.progress.cancelled() { Err(Error::cancelled()) } else { fresh(number) };
            return (0..self.n_groups as u64).into_par_iter().map(group).collect();
        };
        let blocks = Blocks::read(self, checkpoint)?;
        let group = |number: u64| {
            if let Some(trees) = blocks.take(number) {
                run.progress.advance(trees.len() as u64);
                return Ok((trees, again(number)));
            }
            if run.progress.cancelled() {
                return Err(Error::cancelled());
            }
            let grown = fresh(number)?;
            blocks.keep(number, &grown.0);
            Ok(grown)
        };
        let grown = (0..self.n_groups as u64).into_par_iter().map(group).collect::<Result<Vec<_>>>();
        if grown.is_err() {
            blocks.write_all();
        }
        grown
    }

    /// Deletes the trees, which something that came of them makes superfluous.
    pub(super) fn forget(&self) -> Result<()> {
        let Some(checkpoint) = self.run.checkpoint else { return Ok(()) };
        let n_blocks = self.n_groups.div_ceil(self.groups_between(checkpoint));
        (0..n_blocks).try_for_each(|block| checkpoint.delete(&self.entry(block)))
    }

    /// An entry for something that came of the trees.
    pub(super) fn entry_of(&self, what: &str) -> String {
        format!("{:016x}-{:016x}.{what}", self.run.seed.value(), self.fingerprint)
    }

    fn entry(&self, block: usize) -> String {
        self.entry_of(&format!("trees-{block}"))
    }

    /// How many groups make a block.
    fn groups_between(&self, checkpoint: &Checkpoint) -> usize {
        let rows = checkpoint.n_steps_between().saturating_mul(STEP_ROWS);
        let of_group = (self.n_rows as u64).saturating_mul(self.group_trees as u64).max(1);
        usize::try_from(rows / of_group).unwrap_or(usize::MAX).clamp(1, self.n_groups.max(1))
    }
}

/// Of bins, weights and labels: what a leaf would keep of every row alone.
fn fingerprint<C: Criterion>(criterion: &C, bins: &Bins, weight: Option<&[f32]>) -> u64 {
    let rows: Vec<u32> = (0..bins.n_rows() as u32).collect();
    let of_some = |rows: &[u32]| {
        let (mut leaves, above) = (Vec::new(), criterion.start());
        rows.iter().for_each(|row| criterion.leaf(&above, &[*row], &mut leaves));
        hash(bytemuck::cast_slice(&leaves))
    };
    let mut hashes: Vec<u64> = rows.par_chunks(HASHED_ROWS).map(of_some).collect();
    hashes.extend((0..bins.n_features() as u32).map(|feature| hash(bins.column(feature))));
    hashes.push(hash(bytemuck::cast_slice(weight.unwrap_or_default())));
    hash(bytemuck::cast_slice(&hashes))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;

    use super::*;
    use crate::{Progress, Seed, Silent};

    const GROUPS: u64 = 40;

    /// Asks to stop after so many trees.
    struct Stop {
        after: u64,
        n_trees: AtomicU64,
        warnings: AtomicU64,
    }

    impl Stop {
        fn after(after: u64) -> Self {
            Self { after, n_trees: AtomicU64::new(0), warnings: AtomicU64::new(0) }
        }
    }

    impl Progress for Stop {
        fn advance(&self, n: u64) {
            self.n_trees.fetch_add(n, Ordering::Relaxed);
        }

        fn warn(&self, _: &str) {
            self.warnings.fetch_add(1, Ordering::Relaxed);
        }

        fn cancelled(&self) -> bool {
            self.n_trees.load(Ordering::Relaxed) >= self.after
        }
    }

    fn tree(number: u64, of_group: u64) -> Tree {
        let mut tree = Tree::default();
        let root = tree.push_split((number % 3) as u32, number as u8, of_group == 1);
        tree.push_leaf(0);
        tree.next_is_right_of(root);
        tree.push_leaf(1);
        tree.leaves = vec![number as f32, 0.5, -1.5, of_group as f32];
        tree
    }

    fn groups<'a>(checkpoint: Option<&'a Checkpoint>, progress: &'a dyn Progress) -> Groups<'a> {
        let run = Run { checkpoint, ..Run::new(Seed::new(1), progress) };
        // Blocks of 8 groups.
        let n_rows = STEP_ROWS as usize / 16;
        Groups {
            run,
            n_groups: GROUPS as usize,
            group_trees: 2,
            n_rows,
            n_features: 3,
            leaf_width: 2,
            fingerprint: 7,
        }
    }

    type Grown = Vec<(Vec<Tree>, u64)>;

    /// Grows, and says how many groups were grown anew.
    fn grown(groups: &Groups<'_>) -> (Result<Grown>, u64) {
        let n_fresh = AtomicU64::new(0);
        let fresh = |number| {
            n_fresh.fetch_add(1, Ordering::Relaxed);
            groups.run.progress.advance(2);
            Ok((vec![tree(number, 0), tree(number, 1)], 10 * number))
        };
        let grown = groups.grow(fresh, |number| 10 * number);
        (grown, n_fresh.into_inner())
    }

    fn open(folder: &std::path::Path, resume: bool) -> Checkpoint {
        let checkpoint = match resume {
            true => Checkpoint::resume(folder, json!({})).unwrap(),
            false => Checkpoint::create(folder, json!({})),
        };
        checkpoint.steps_between(1)
    }

    fn entries(folder: &std::path::Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).unwrap().flatten();
        names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name != "work.json")
            .collect()
    }

    #[test]
    fn trees_that_stand_are_not_grown_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("m.partial");
        let (whole, n_fresh) = grown(&groups(None, &Silent));
        assert_eq!(n_fresh, GROUPS);
        let stop = Stop::after(50);
        let (stopped, first) = grown(&groups(Some(&open(&folder, false)), &stop));
        assert!(stopped.is_err() && (25..GROUPS).contains(&first), "{first}");
        let (resumed, second) = grown(&groups(Some(&open(&folder, true)), &Silent));
        assert_eq!(first + second, GROUPS);
        assert_eq!(resumed.unwrap(), whole.as_deref().unwrap());
        assert_eq!(entries(&folder).len(), 5);
        let (again, third) = grown(&groups(Some(&open(&folder, true)), &Silent));
        assert_eq!((again.unwrap(), third), (whole.unwrap(), 0));
        groups(Some(&open(&folder, true)), &Silent).forget().unwrap();
        assert!(entries(&folder).is_empty());
    }

    #[test]
    fn a_kill_costs_the_blocks_that_were_not_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("m.partial");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            let checkpoint = open(&folder, false);
            let groups = groups(Some(&checkpoint), &Silent);
            // Nothing is asked to stop: the 21st group never comes.
            let fresh = |number| {
                assert!(number < 20, "killed");
                Ok((vec![tree(number, 0), tree(number, 1)], ()))
            };
            let killed =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| groups.grow(fresh, |_| ())));
            assert!(killed.is_err());
        });
        assert_eq!(entries(&folder).len(), 2);
        assert_eq!(grown(&groups(Some(&open(&folder, true)), &Silent)).1, GROUPS - 16);
    }

    #[test]
    fn another_forest_of_the_same_stream_and_damage_are_not_taken_for_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("m.partial");
        let checkpoint = open(&folder, false);
        let own = groups(Some(&checkpoint), &Silent);
        assert!(grown(&own).0.is_ok());
        let other = Groups { fingerprint: 8, ..groups(Some(&checkpoint), &Silent) };
        assert_eq!(grown(&other).1, GROUPS);
        let good = checkpoint.get(&own.entry(0)).unwrap().unwrap();
        // A group of another block, a group twice, a leaf that is not there, half a tree, a number that is not one.
        let of_group = good.len() / 8;
        let mut foreign = good.clone();
        foreign[0] = 9;
        let twice = [&good[..of_group], &good[..of_group]].concat();
        let mut missing = good.clone();
        missing[28] = 9;
        let half = good[..good.len() - 1].to_vec();
        let mut infinite = good.clone();
        infinite[of_group - 4..of_group].copy_from_slice(&f32::INFINITY.to_le_bytes());
        for bytes in [foreign, twice, missing, half, infinite] {
            checkpoint.put(&own.entry(0), &bytes).unwrap();
            let error = grown(&own).0.unwrap_err();
            assert!(error.to_string().ends_with("the checkpoint is damaged"), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_told_once_and_costs_no_tree() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("m.partial");
        std::fs::write(&folder, "a file where the folder should be").unwrap();
        let listener = Stop::after(u64::MAX);
        let (whole, n_fresh) = grown(&groups(Some(&open(&folder, false)), &listener));
        assert_eq!((whole.unwrap().len() as u64, n_fresh), (GROUPS, GROUPS));
        assert_eq!(listener.warnings.into_inner(), 1);
    }
}
