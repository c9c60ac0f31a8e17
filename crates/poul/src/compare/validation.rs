//! The validation R-loss, the only number that settings are chosen by: mean (Y − m̂(X) − τ̂(X; T) + Σ_t π̂(t|X) τ̂(X; t))²
//! over rows that no learner was trained on, with one m̂ and π̂ for all (Sec. 2.2 of the paper).

use super::part::{EncodedTable, Part, Setting};
use crate::effect::EffectModel;
use crate::nuisance::{
    FirstStage, Needs, OutcomeLoss, OutcomeParams, Propensity, PropensityOrigin, PropensityParams, SomeRows,
};
use crate::{Error, Result, Run};

/// Pairs of row and policy scored together, about.
const BLOCK_PAIRS: usize = 1 << 19;

/// Held-out rows and what is expected of them without effects.
pub(crate) struct Validation {
    pub(crate) part: Part,
    /// For each outcome, Y − m̂(X) in standard deviations of the training rows.
    residual: Vec<Vec<f64>>,
    /// The standard deviation of each outcome over the training rows.
    scales: Vec<f64>,
    propensity: Propensity,
    /// The policies with a propensity, without the control.
    targets: Vec<usize>,
}

impl Validation {
    /// Fits m and π once: m on the training rows; π as designed where it was, learned on the training rows otherwise.
    pub(crate) fn new(
        table: &EncodedTable,
        train: &Part,
        part: Part,
        setting: &Setting,
        run: Run<'_>,
    ) -> Result<Self> {
        let (x, held_x) = (train.x(table.x()), part.x(table.x()));
        let (rows, held) = (train.observed(&x, setting), part.observed(&held_x, setting));
        let (outcome, propensity) = (OutcomeParams::default().check()?, PropensityParams::default().check()?);
        let is_learned = rows.propensity_origin() == PropensityOrigin::Learned;
        let needs = Needs {
            n_folds: 1,
            outcome: Some((&outcome, OutcomeLoss::Squared)),
            by_name: false,
            propensity: is_learned.then_some(&propensity),
        };
        let mut first = FirstStage::fit(&rows, &needs, run)?;
        let m = first.take_outcome()?;
        let given = m.given(&held.outcomes);
        let given: Vec<(usize, &[f32])> = given.iter().map(|(of, values)| (*of, values.as_slice())).collect();
        let predicted = m.outcome.models.predict(&held_x, &given)?;
        let n_outcomes = m.scales.len();
        let residual = (0..n_outcomes).map(|outcome| {
            let (mean, sd) = (m.means[outcome], m.scales[outcome]);
            let expected = predicted.iter().skip(outcome).step_by(n_outcomes);
            let values = part.outcomes[outcome].iter().zip(expected);
            values.map(|(y, m)| (y - mean) / sd - f64::from(*m)).collect()
        });
        let residual = residual.collect();
        let learned = first.propensity.and_then(|fit| fit.models);
        let propensity = match learned {
            Some(models) => models.predict(&held_x)?,
            None => {
                let both = table.part(train.rows.iter().chain(&part.rows).copied().collect());
                let x = both.x(table.x());
                let needs = Needs { n_folds: 1, propensity: Some(&propensity), ..Needs::default() };
                let rows = both.observed(&x, setting);
                let fit = FirstStage::fit(&rows, &needs, run)?.take_propensity()?;
                let places: Vec<u32> = (train.n_rows() as u32..both.n_rows() as u32).collect();
                fit.propensity.subset(&places, setting.policies.len())
            }
        };
        let mut is_run = vec![false; setting.policies.len()];
        train.policy.iter().chain(&part.policy).for_each(|policy| is_run[*policy as usize] = true);
        let targets =
            (0..is_run.len()).filter(|policy| is_run[*policy] && *policy != setting.control).collect();
        Ok(Self { part, residual, scales: m.scales, propensity, targets })
    }

    /// The R-loss of each outcome, in units of its variance over the training rows.
    pub(crate) fn r_loss(
        &self,
        table: &EncodedTable,
        setting: &Setting,
        effects: &dyn EffectModel,
    ) -> Result<Vec<f64>> {
        let (n_outcomes, n_targets) = (self.residual.len(), self.targets.len());
        let scorer = effects.prepare(&setting.policies, &self.targets, setting.control)?;
        let mut place = vec![None; setting.policies.len()];
        self.targets.iter().enumerate().for_each(|(index, policy)| place[*policy] = Some(index));
        let all = table.x();
        let (mut losses, mut mass) = (vec![0.0; n_outcomes], 0.0);
        let block_rows = (BLOCK_PAIRS / n_targets.max(1)).max(64);
        for (block, rows) in self.part.rows.chunks(block_rows).enumerate() {
            let scores = scorer.score(&SomeRows { x: all, rows }, false)?;
            for index in 0..rows.len() {
                let row = block * block_rows + index;
                let weight = self.part.weight_of(row);
                mass += weight;
                let shares = self.propensity.of_row(row, setting.policies.len());
                let own = place[self.part.policy[row] as usize];
                for (outcome, loss) in losses.iter_mut().enumerate() {
                    let effects = &scores.mean[outcome][index * n_targets..][..n_targets];
                    let expected: f64 = self
                        .targets
                        .iter()
                        .zip(effects)
                        .map(|(policy, effect)| f64::from(shares[*policy]) * f64::from(*effect))
                        .sum();
                    let own = own.map_or(0.0, |own| f64::from(effects[own]));
                    let error = self.residual[outcome][row] - (own - expected) / self.scales[outcome];
                    *loss += weight * error * error;
                }
            }
        }
        let losses: Vec<f64> = losses.into_iter().map(|loss| loss / mass).collect();
        match losses.iter().all(|loss| loss.is_finite()) {
            true => Ok(losses),
            false => Err(Error::other("the validation R-loss is not finite")
                .hint("the effects overflow: lower the learning rate, or look at the outcomes")),
        }
    }
}
