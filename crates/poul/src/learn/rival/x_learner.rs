//! X-learner: imputed effects of treated and of control rows, each regressed on features, then blended (Künzel et al.
//! 2019): Y − μ_0(x) on the rows of arm t, μ_t(x) − Y on control rows, τ_t = e·τ⁰_t + (1 − e)·τ¹_t, where
//! e = π_t/(π_0 + π_t) is the propensity among the two arms.

use serde::{Deserialize, Serialize};

use super::effect_heads::{EffectHeads, MetaParams};
use super::first_stage::Needs;
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::effect::ValidTrainingData;
use crate::net::{Activation, Batch, Init, LayoutBuilder, Mlp, Tape, Var};
use crate::nuisance::PropensityOrigin;

/// The propensity that blends the two estimates. Any weight is valid; new rows have no stratum or propensity columns, so
/// it must be a function of the features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Blend {
    /// `shares` in randomized data, `propensity` otherwise.
    #[default]
    Auto,
    /// The arms' shares.
    Shares,
    /// A softmax network of the features, trained beside the effects.
    Propensity,
}

/// `[model]` of the learner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct XLearnerParams {
    /// Both stages.
    #[serde(flatten)]
    pub(super) meta: MetaParams,
    /// What blends the two estimates. Default `auto`: `shares` in randomized data, else `propensity`.
    pub(super) blend: Blend,
}

/// τ¹ and τ⁰ of every arm.
pub(super) struct XLearner {
    treated: EffectHeads,
    control_side: EffectHeads,
    /// Logits of the arms, where they are learned.
    propensity: Option<Mlp>,
    shares: Vec<f32>,
    control: usize,
}

impl Surface for XLearner {
    const NAME: &'static str = "x-learner";
    const HAS_FIRST_STAGE: bool = true;
    type Model = XLearnerParams;

    fn check(model: &XLearnerParams) -> Result<()> {
        model.meta.check()
    }

    fn tier(model: &XLearnerParams) -> Tier {
        model.meta.tier
    }

    fn members(model: &XLearnerParams) -> usize {
        model.meta.members
    }

    fn needs(model: &XLearnerParams) -> Needs<'_> {
        Needs { residual: false, propensity: None, levels: Some(&model.meta) }
    }

    fn adapt(model: &mut XLearnerParams, data: &ValidTrainingData<'_>) -> Result<()> {
        let is_random = data.propensity_origin() == PropensityOrigin::Shares;
        if model.blend == Blend::Auto {
            model.blend = if is_random { Blend::Shares } else { Blend::Propensity };
        }
        Ok(())
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &XLearnerParams) -> Self {
        let group = layout.group("tau");
        let treated = EffectHeads::new(layout, "tau1", shape, &model.meta, group);
        let control_side = EffectHeads::new(layout, "tau0", shape, &model.meta, group);
        let mut widths = vec![shape.n_features];
        widths.extend(&model.meta.hidden);
        widths.push(shape.treatments.arms.len());
        let propensity = (model.blend == Blend::Propensity).then(|| {
            let group = layout.group("propensity");
            let mlp = Mlp::new(layout, "propensity", &widths, Activation::Relu, Init::Uniform, group);
            mlp.dropout(model.meta.dropout)
        });
        let total: u64 = shape.treatments.arm_rows.iter().sum();
        let shares =
            shape.treatments.arm_rows.iter().map(|rows| *rows as f32 / total.max(1) as f32).collect();
        Self { treated, control_side, propensity, shares, control: shape.treatments.control }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.treated.share(tape, treatments);
        self.control_side.share(tape, treatments);
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let treated = self.treated.all(tape, treatments, 0);
        let control_side = self.control_side.all(tape, treatments, self.treated.n_shared());
        let blend = self.blend(tape, treatments);
        // τ¹ + e·(τ⁰ − τ¹)
        let change = tape.sub(control_side, treated);
        let change = tape.mul(change, blend);
        tape.add(treated, change)
    }

    fn n_goals(&self) -> usize {
        1 + self.shares.len()
    }

    fn fitted(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let own: Vec<u32> = batch.pick(rows.arm).collect();
        let treated = self.treated.factual(tape, rows.treatments, &own, 0);
        let control_side = self.control_effects(tape, rows, &own);
        tape.concat(&[treated, control_side])
    }

    fn goal(&self, rows: &Rows<'_>, row: usize, goal: &mut [f32], weight: &mut [f32]) {
        let n_arms = self.shares.len();
        let (own, outcome) = (rows.arm[row] as usize, rows.outcome[row]);
        let levels = &rows.levels[row * n_arms..][..n_arms];
        let is_control = own == self.control;
        goal[0] = if is_control { 0.0 } else { outcome - levels[self.control] };
        weight[0] = f32::from(self.treated.counts(own));
        for arm in 0..n_arms {
            goal[1 + arm] = if arm == self.control { 0.0 } else { levels[arm] - outcome };
            let counts = is_control && self.control_side.counts(arm);
            weight[1 + arm] = if counts { rows.share(arm) } else { 0.0 };
        }
    }

    fn loss(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let fitted = self.fitted(tape, rows, batch);
        let loss = super::surface::goal_loss(self, tape, fitted, rows, batch);
        let Some(mlp) = &self.propensity else { return loss };
        let x = tape.features();
        let logits = mlp.forward(tape, x);
        let weights = rows.weights(tape, batch);
        let fit = tape.cross_entropy(logits, batch.pick(rows.arm), Some(weights), rows.scale(batch));
        tape.add(loss, fit)
    }
}

impl XLearner {
    /// τ⁰ of control rows under every arm, which learns from them alone; other rows have anything.
    fn control_effects(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, own: &[u32]) -> Var {
        let controls: Vec<u32> =
            (0..own.len() as u32).filter(|row| own[*row as usize] as usize == self.control).collect();
        if controls.is_empty() {
            let n_arms = self.shares.len();
            return tape.constant(own.len(), n_arms, &vec![0.0; own.len() * n_arms]);
        }
        let mut place = vec![0; own.len()];
        controls.iter().zip(0..).for_each(|(row, number)| place[*row as usize] = number);
        let x = tape.features();
        let x = tape.gather(x, controls);
        let effects = self.control_side.all_of(tape, x, rows.treatments, self.treated.n_shared());
        tape.gather(effects, place)
    }

    /// e of each row (or of all) and treatment; a policy that was never run has that of the nearest that was.
    fn blend(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        let control = self.control;
        let Some(mlp) = &self.propensity else {
            let base = self.shares[control];
            let share = |arm: &u32| self.shares[*arm as usize];
            let e: Vec<f32> = treatments.arm.iter().map(|arm| share(arm) / (share(arm) + base)).collect();
            return tape.constant(1, e.len(), &e);
        };
        let x = tape.features();
        let logits = mlp.forward(tape, x);
        let base = tape.slice_cols(logits, control, 1);
        let columns: Vec<Var> =
            treatments.arm.iter().map(|arm| tape.slice_cols(logits, *arm as usize, 1)).collect();
        let logits = tape.concat(&columns);
        // π_t/(π_t + π_0) is the sigmoid of the difference of their logits.
        let change = tape.sub(logits, base);
        tape.activate(change, Activation::Sigmoid)
    }
}
