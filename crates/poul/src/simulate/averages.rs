//! The true average effect of every policy over the training rows and over the test rows, `averages.csv`.

use std::fmt::Write as _;

use rayon::prelude::*;

use super::world::{Part, Setting, World};

/// Sums of true effects by part, outcome and policy.
pub(super) struct AverageTruth {
    sums: [Vec<f64>; 2],
    rows: [f64; 2],
    n_policies: usize,
}

impl AverageTruth {
    pub(super) fn new(setting: &Setting) -> Self {
        let n_policies = setting.policies.names.len();
        let zeros = || vec![0.0; n_policies * setting.outcomes.len()];
        Self { sums: [zeros(), zeros()], rows: [0.0; 2], n_policies }
    }

    /// Adds the first `n_rows` units of a block.
    pub(super) fn add<W: World>(&mut self, world: &W, part: Part, units: &W::Units, n_rows: usize) {
        let place = usize::from(part != Part::Train);
        let n_policies = self.n_policies;
        let of_cell = |cell: usize| {
            let (outcome, policy) = (cell / n_policies, cell % n_policies);
            (0..n_rows).map(|row| world.effect(units, outcome, row, policy)).sum::<f64>()
        };
        let sums: Vec<f64> = (0..self.sums[place].len()).into_par_iter().map(of_cell).collect();
        self.sums[place].iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        self.rows[place] += n_rows as f64;
    }

    /// `policy,outcome,train,test`.
    pub(super) fn csv(&self, setting: &Setting) -> String {
        let mut text = "policy,outcome,train,test\n".to_owned();
        for (policy, name) in setting.policies.names.iter().enumerate() {
            for (outcome, outcome_name) in setting.outcomes.iter().enumerate() {
                let of = |part: usize| {
                    self.sums[part][outcome * self.n_policies + policy] / self.rows[part].max(1.0)
                };
                // Writing to a text cannot fail.
                let _ = writeln!(text, "{name},{outcome_name},{},{}", of(0), of(1));
            }
        }
        text
    }
}
