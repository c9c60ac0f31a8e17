//! The digest of a fit of m: everything that decides its bits.

use super::params::{OutcomeParams, ValidOutcomeParams};
use super::problem::{ExtraRows, OutcomeProblem};
use crate::data::Digest;
use crate::net::RowSource;
use crate::nuisance::Folds;
use crate::{Error, Result, Seed};

/// Rows that are copied out at once.
const BLOCK_ROWS: usize = 4096;

pub(super) fn digest(
    problem: &OutcomeProblem<'_>,
    folds: &Folds,
    ValidOutcomeParams(params): &ValidOutcomeParams,
    seed: Seed,
) -> Result<u128> {
    // Named one by one, so that what is added to a problem cannot be forgotten here.
    let OutcomeProblem { x, outcomes, losses, weight, cluster, given, policy, extra } = *problem;
    let text = |params: &OutcomeParams| serde_json::to_vec(&(params, losses));
    let failed = |error| Error::other(format!("cannot describe the outcome model: {error}")).source(error);
    let mut digest = Digest::new();
    digest.values(&[seed.value(), folds.n_folds as u64]);
    digest.values(&text(params).map_err(failed)?);
    digest.values(&folds.of_row);
    add_rows(&mut digest, x);
    digest.values(outcomes);
    digest.optional_values(weight);
    digest.optional_values(cluster);
    digest.optional_values(policy);
    for (outcome, values) in given {
        digest.values(&[*outcome as u64]);
        digest.values(values);
    }
    digest.values(&[given.len() as u64, u64::from(extra.is_some())]);
    if let Some(ExtraRows { x, outcomes, weight, cluster }) = extra {
        add_rows(&mut digest, x);
        digest.values(outcomes);
        digest.optional_values(weight);
        digest.optional_values(cluster);
    }
    Ok(digest.value())
}

fn add_rows(digest: &mut Digest, x: &dyn RowSource) {
    let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
    digest.values(&[n_rows as u64, n_cols as u64]);
    let mut block = vec![0.0; BLOCK_ROWS.min(n_rows) * n_cols];
    for first in (0..n_rows).step_by(BLOCK_ROWS) {
        let rows: Vec<u32> = (first as u32..(first + BLOCK_ROWS).min(n_rows) as u32).collect();
        let block = &mut block[..rows.len() * n_cols];
        x.copy_rows(&rows, block);
        digest.values(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::net::DenseRows;
    use crate::nuisance::{OutcomeFit, OutcomeLoss, fit_outcome};
    use crate::{Progress, Run, Silent};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts stages: fits that were not remembered.
    #[derive(Default)]
    struct Counting {
        n_stages: AtomicUsize,
    }

    impl Progress for Counting {
        fn start(&self, _: &str, _: &str, _: Option<u64>) {
            self.n_stages.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_fit_is_given_again_to_the_bit_and_only_for_the_same_problem() {
        let x: Vec<f32> = (0..240).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
        let y: Vec<f32> = x.chunks(2).map(|x| x[0] - 0.5 * x[1]).collect();
        let weight = vec![1.0; 120];
        let rows = DenseRows::new(&x, 2).unwrap();
        let mut params = OutcomeParams { hidden: vec![4], ..OutcomeParams::default() };
        params.schedule.epochs = 2;
        let params = params.check().unwrap();
        let fit = |y: &[f32], weight: Option<&[f32]>, folds: usize, run: Run<'_>| {
            let losses = [OutcomeLoss::Squared];
            let problem = OutcomeProblem { weight, ..OutcomeProblem::new(&rows, y, &losses) };
            let folds = Folds::deal(120, None, folds, Seed::new(1));
            fit_outcome(&problem, &folds, &params, run).unwrap()
        };
        let bits = |fit: &OutcomeFit| fit.predicted.iter().map(|m| m.to_bits()).collect::<Vec<_>>();
        let (progress, memory) = (Counting::default(), Memory::default());
        let n_fits = || progress.n_stages.swap(0, Ordering::Relaxed);
        let remembering = |seed| Run { memory: Some(&memory), ..Run::new(Seed::new(seed), &progress) };
        let alone = fit(&y, None, 2, Run::new(Seed::new(7), &Silent));
        for n_expected in [2, 0] {
            let shared = fit(&y, None, 2, remembering(7));
            assert_eq!(n_fits(), n_expected);
            assert_eq!(bits(&shared), bits(&alone));
            let predicted = |fit: &OutcomeFit| fit.models.folds()[0].predict(&rows).unwrap();
            assert_eq!(predicted(&shared), predicted(&alone));
        }
        let changed: Vec<f32> = y.iter().map(|y| y + 1.0).collect();
        fit(&changed, None, 2, remembering(7));
        assert_eq!(n_fits(), 2, "other outcomes");
        fit(&y, Some(&weight), 2, remembering(7));
        assert_eq!(n_fits(), 2, "weights");
        fit(&y, None, 3, remembering(7));
        assert_eq!(n_fits(), 3, "other folds");
        fit(&y, None, 2, remembering(8));
        assert_eq!(n_fits(), 2, "another seed");
    }
}
