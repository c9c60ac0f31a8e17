//! R-learner: the residual outcome on residual treatments (Nie and Wager 2021): minimises the mean of
//! (Y − m(x) − Σ_t (1[T = t] − π_t(x))·τ_t(x))², which for two arms is the published loss.

use super::effect_heads::{EffectHeads, MetaParams};
use super::first_stage::Needs;
use super::surface::{Rows, Shape, Surface};
use super::treatments::{Chosen, Tier};
use crate::Result;
use crate::net::{Batch, LayoutBuilder, Tape, Var};

/// τ of every arm.
pub(super) struct RLearner(EffectHeads);

impl Surface for RLearner {
    const NAME: &'static str = "r-learner";
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
        Needs { residual: true, propensity: Some(model.clip), levels: None }
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &MetaParams) -> Self {
        let group = layout.group("tau");
        Self(EffectHeads::new(layout, "tau", shape, model, group))
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        self.0.share(tape, treatments);
    }

    fn all(&self, tape: &mut Tape<'_>, treatments: &Chosen) -> Var {
        self.0.all(tape, treatments, 0)
    }

    fn fitted(&self, tape: &mut Tape<'_>, rows: &Rows<'_>, batch: &Batch<'_>) -> Var {
        let n_arms = rows.treatments.arm.len();
        let effects = self.0.all(tape, rows.treatments, 0);
        let mut surprise = Vec::with_capacity(batch.rows.len() * n_arms);
        for row in batch.rows {
            let own = rows.arm[*row as usize] as usize;
            let of_arm = |arm: usize| f32::from(arm == own) - rows.propensity.plain(*row as usize, arm);
            surprise.extend((0..n_arms).map(of_arm));
        }
        let surprise = tape.constant(batch.rows.len(), n_arms, &surprise);
        tape.row_dot(effects, surprise)
    }
}
