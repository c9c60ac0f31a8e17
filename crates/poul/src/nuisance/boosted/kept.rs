//! Boosted trees that a checkpoint holds from before the work was stopped.
//!
//! Rows and settings decide every bit of them, so an entry is named by these alone.

use super::fit::{Rows, Target, boost};
use super::model::FoldTrees;
use super::params::BoostedParams;
use crate::checkpoint::hash;
use crate::tree::Tree;
use crate::{Error, Result, Run};

/// The trees of [`boost`], which are fitted unless the checkpoint holds them, and left there once they are.
pub(in crate::nuisance) fn boost_once(
    rows: &Rows<'_>,
    target: Target<'_>,
    params: &BoostedParams,
    stage: &str,
    run: Run<'_>,
) -> Result<FoldTrees> {
    let Some(checkpoint) = run.checkpoint else { return boost(rows, target, params, stage, run.progress) };
    let name = format!("{:016x}.boosted", fingerprint(rows, target, params)?);
    if let Some(bytes) = checkpoint.get(&name)? {
        let kept = decode(&bytes, target, rows.tiles.n_features());
        return kept.ok_or_else(|| checkpoint.damaged_entry(&name));
    }
    let fitted = boost(rows, target, params, stage, run.progress)?;
    checkpoint.keep(&name, &encode(&fitted), run.progress);
    Ok(fitted)
}

fn fingerprint(rows: &Rows<'_>, target: Target<'_>, params: &BoostedParams) -> Result<u64> {
    let failed = |error| Error::other(format!("cannot name boosted trees: {error}"));
    let settings = serde_json::to_vec(&(params, target.objective())).map_err(failed)?;
    let mut hashes = vec![rows.n_training as u64, rows.tiles.fingerprint(), hash(&settings)];
    hashes.push(hash(bytemuck::cast_slice(target.values())));
    hashes.push(rows.weight.map_or(0, |weight| hash(bytemuck::cast_slice(weight))));
    Ok(hash(bytemuck::cast_slice(&hashes)))
}

fn encode(fitted: &FoldTrees) -> Vec<u8> {
    let mut bytes = (fitted.n_trees() as u64).to_le_bytes().to_vec();
    fitted.base.iter().for_each(|base| bytes.extend(base.to_le_bytes()));
    fitted.trees.iter().flatten().for_each(|tree| tree.write(&mut bytes));
    bytes
}

fn decode(mut bytes: &[u8], target: Target<'_>, n_features: usize) -> Option<FoldTrees> {
    let objective = target.objective();
    let mut word = || -> Option<[u8; 8]> { bytes.split_off(..8)?.try_into().ok() };
    let n_trees = u64::from_le_bytes(word()?);
    let base: Option<Vec<f64>> = (0..objective.n_outputs()).map(|_| word().map(f64::from_le_bytes)).collect();
    let base = base.filter(|base| base.iter().all(|base| base.is_finite()))?;
    let mut of_output =
        |_| (0..n_trees).map(|_| Tree::read(&mut bytes, n_features, 1)).collect::<Option<Vec<_>>>();
    let trees = base.iter().map(&mut of_output).collect::<Option<Vec<_>>>()?;
    bytes.is_empty().then_some(FoldTrees { objective, base, trees })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;

    use super::*;
    use crate::net::DenseRows;
    use crate::nuisance::boosted::{Cuts, Tiles};
    use crate::{Checkpoint, Progress, Seed};

    /// Counts the trees that are grown.
    #[derive(Default)]
    struct Counting(AtomicU64);

    impl Progress for Counting {
        fn advance(&self, n: u64) {
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    #[test]
    fn trees_are_grown_once_for_the_same_rows_and_settings_and_damage_is_told() {
        let values: Vec<f32> = (0..600).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let x = DenseRows::new(&values, 2).unwrap();
        let rows: Vec<u32> = (0..300).collect();
        let tiles = Tiles::new(&Cuts::learn(&x, &rows), &x, &rows);
        let y: Vec<f32> = values.chunks(2).map(|row| row[0] * row[0] - row[1]).collect();
        let class: Vec<f32> = y.iter().map(|y| f32::from(u8::from(*y > 0.0))).collect();
        let params = BoostedParams { trees: 12, ..BoostedParams::default() };
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("m.partial");
        drop(Checkpoint::create(&folder, json!({})).put("begun", b""));
        let fit = |target, params: &BoostedParams, n_training| {
            let checkpoint = Checkpoint::resume(&folder, json!({})).unwrap();
            let counting = Counting::default();
            let run = Run { checkpoint: Some(&checkpoint), ..Run::new(Seed::new(1), &counting) };
            let fitted = Rows { tiles: &tiles, n_training, weight: None };
            boost_once(&fitted, target, params, "", run).map(|fitted| (fitted, counting.0.into_inner()))
        };
        let targets = [Target::Values(&y), Target::Shares(&class), Target::Classes(&class, 2)];
        for target in targets {
            let (first, n_grown) = fit(target, &params, 200).unwrap();
            assert!(n_grown > 0 && first.n_trees() > 0, "{target:?}");
            let (second, n_again) = fit(target, &params, 200).unwrap();
            assert_eq!((&second, n_again), (&first, 0));
        }
        let others = [
            fit(targets[0], &BoostedParams { leaves: 4, ..params.clone() }, 200),
            fit(targets[0], &params, 210),
            fit(Target::Values(&values[..300]), &params, 200),
        ];
        assert!(others.into_iter().all(|other| other.unwrap().1 > 0));
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".part").filter(|name| name.ends_with("boosted")) {
                let checkpoint = Checkpoint::resume(&folder, json!({})).unwrap();
                let mut bytes = checkpoint.get(name).unwrap().unwrap();
                bytes.push(0);
                checkpoint.put(name, &bytes).unwrap();
            }
        }
        for target in targets {
            let error = fit(target, &params, 200).unwrap_err();
            assert!(error.to_string().ends_with("the checkpoint is damaged"), "{error}");
        }
    }
}
