//! DR-learner: doubly robust scores of every arm, regressed on features (Kennedy 2023): the goal of τ_t(x) is
//! μ_t − μ_0 + 1[T = t]·(Y − μ_t)/π_t − 1[T = 0]·(Y − μ_0)/π_0, for every row and arm t.

use super::effect_heads::{EffectHeads, MetaParams};
use super::first_stage::Needs;
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Batch, LayoutBuilder, Tape, Var};

/// τ of every arm.
pub(super) struct DrLearner {
    effects: EffectHeads,
    n_arms: usize,
    control: usize,
}

impl Surface for DrLearner {
    const NAME: &'static str = "dr-learner";
    const HAS_FIRST_STAGE: bool = true;
    type Model = MetaParams;

    fn check(model: &MetaParams) -> Result<()> {
        model.check()
    }

    fn tier(model: &MetaParams) -> Tier {
        model.tier
    }

    fn members(model: &MetaParams) -> usize {
        model.members
    }

    fn needs(model: &MetaParams) -> Needs<'_> {
        Needs { residual: false, propensity: Some(model.clip), levels: Some(model) }
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &MetaParams) -> Self {
        let group = layout.group("tau");
        let effects = EffectHeads::new(layout, "tau", shape, model, group);
        Self { effects, n_arms: shape.treatments.arms.len(), control: shape.treatments.control }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.effects.share(tape, treatments);
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        self.effects.all(tape, treatments, 0)
    }

    fn n_goals(&self) -> usize {
        self.n_arms
    }

    fn fitted(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, _batch: &Batch<'_>) -> Var {
        self.effects.all(tape, rows.treatments, 0)
    }

    fn goal(&self, rows: &Rows<'_>, row: usize, goal: &mut [f32], weight: &mut [f32]) {
        let levels = &rows.levels[row * self.n_arms..][..self.n_arms];
        let own = rows.arm[row] as usize;
        let surprise = (rows.outcome[row] - levels[own]) / rows.propensity.lifted(row, own);
        for (arm, (goal, weight)) in goal.iter_mut().zip(weight).enumerate() {
            let correction = match own {
                _ if arm == self.control => 0.0,
                own if own == arm => surprise,
                own if own == self.control => -surprise,
                _ => 0.0,
            };
            *goal = levels[arm] - levels[self.control] + correction;
            // Scores of rare arms are noisy: an arm counts by its share.
            *weight = if self.effects.counts(arm) { rows.share(arm) } else { 0.0 };
        }
    }
}
