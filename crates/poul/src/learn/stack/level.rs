//! Members around the averages of one: what must be added to a member's effects so that their mean over the training
//! population is that of the anchor, by policy.

use crate::Result;
use crate::effect::{EffectModel, PolicyShift, ValidTrainingData};
use crate::net::RowSource;
use crate::nuisance::SomeRows;

/// Policies whose averages are compared, at most: those with most rows. Others follow by their mixtures.
const MOST_POLICIES: usize = 512;
/// Pairs of row and policy that means are taken over, about.
const MOST_PAIRS: usize = 1 << 23;
/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 18;

/// The policies that were run, and rows that means are taken over.
pub(super) struct Population<'a> {
    data: &'a ValidTrainingData<'a>,
    /// Sorted, without the policy that effects are taken against.
    known: Vec<usize>,
    against: usize,
    rows: Vec<u32>,
}

impl<'a> Population<'a> {
    pub(super) fn new(data: &'a ValidTrainingData<'a>, against: usize) -> Self {
        let mass = data.policy_mass();
        let mut known: Vec<usize> =
            (0..mass.len()).filter(|policy| mass[*policy] > 0.0 && *policy != against).collect();
        known.sort_by(|a, b| mass[*b].total_cmp(&mass[*a]).then(a.cmp(b)));
        known.truncate(MOST_POLICIES);
        known.sort_unstable();
        let n_rows = data.n_rows();
        let n_sample = n_rows.min(MOST_PAIRS / known.len().max(1)).max(1);
        // Evenly spaced: tables in order of time are met from end to end.
        let rows = (0..n_sample).map(|i| (i * n_rows / n_sample) as u32).collect();
        Self { data, known, against, rows }
    }

    /// The average effects of the known policies by a model that vouches for them, by outcome; none where it does not.
    pub(super) fn averages(&self, anchor: &dyn EffectModel) -> Result<Option<Vec<Vec<f64>>>> {
        let averages = anchor.averages(self.data.policies, &self.known, self.against, false)?;
        let effects = |own: &crate::effect::Averages| own.estimates.iter().map(|own| own.effect).collect();
        Ok(averages.map(|averages| averages.iter().map(effects).collect()))
    }

    /// The mean effects of the known policies over the rows, by outcome.
    pub(super) fn means(&self, model: &dyn EffectModel) -> Result<Vec<Vec<f64>>> {
        let n_known = self.known.len();
        let scorer = model.prepare(self.data.policies, &self.known, self.against)?;
        let mut sums = vec![vec![0.0; n_known]; model.outcomes().len()];
        let mut mass = 0.0;
        let x: &dyn RowSource = self.data.x;
        for rows in self.rows.chunks((BLOCK_PAIRS / n_known.max(1)).max(64)) {
            let scores = scorer.score(&SomeRows { x, rows }, false)?;
            for (place, row) in rows.iter().enumerate() {
                let weight = self.data.weight.map_or(1.0, |weight| weight[*row as usize]);
                mass += weight;
                for (sums, means) in sums.iter_mut().zip(&scores.mean) {
                    let effects = &means[place * n_known..][..n_known];
                    sums.iter_mut().zip(effects).for_each(|(sum, own)| *sum += weight * f64::from(*own));
                }
            }
        }
        let total = f64::max(mass, f64::MIN_POSITIVE);
        sums.iter_mut().flatten().for_each(|sum| *sum /= total);
        Ok(sums)
    }

    /// `differences` between averages, one for each known policy, as numbers that any policy has.
    pub(super) fn shift(&self, differences: &[f64]) -> Result<PolicyShift> {
        let mut known = vec![(self.against, 0.0)];
        known.extend(self.known.iter().copied().zip(differences.iter().copied()));
        known.sort_by_key(|(policy, _)| *policy);
        let rows: Vec<f64> =
            known.iter().map(|(policy, _)| self.data.policy_rows()[*policy].max(1) as f64).collect();
        let (known, shifts): (Vec<usize>, Vec<f64>) = known.into_iter().unzip();
        PolicyShift::fit(self.data.policies, &known, &shifts, &rows, self.against)
    }
}
