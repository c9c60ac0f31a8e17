//! DeDL: a network θ(x) plugged into a link of the factors, E[Y|x, t] = G(θ(x), t), with debiased averages (Ye, Zhang,
//! Zhang, Zhang and Zhang 2025).
//!
//! The published link is the generalised sigmoid G = θ_{m+1}(x) / (1 + exp(−(θ_0(x) + Σ_j θ_j(x)·t_j))) for t ∈ {0, 1}^m;
//! the linear one is G = θ_0(x) + Σ_j θ_j(x)·t_j. Factors are those of `factors`. Under the sigmoid all levels of a row
//! lie on one side of a floor, which is 0 as published; here it is the least outcome, so that effects do not depend on
//! where an outcome is measured from. That is 0 for spend, counts and 0/1 outcomes. Networks fit outcomes by squared error;
//! then averages are debiased by the influence function (`debias`), and effects of rows are shifted by as much.
//!
//! | file | subject |
//! |---|---|
//! | `factors` | policies as factors |
//! | `debias` | average effects by the influence function, out of fold |
//! | `information` | Λ(x), and what a residual is worth under it |

mod debias;
mod factors;
mod information;

use serde::{Deserialize, Serialize};

use self::factors::Factor;
use super::first_stage::Needs;
use super::fit::standard;
use super::fitted::Fitted;
use super::params::{Rule, are_widths, check_rules};
use super::surface::{FittedOutcome, Shape, Surface};
use super::treatments::{Chosen, Tier, Treatments};
use crate::Result;
use crate::effect::{PolicyShift, ValidTrainingData};
use crate::net::{Activation, Init, LayoutBuilder, Mlp, Tape, Var};
use crate::nuisance::PropensityOrigin;

/// θ_{m+1} is this plus what the network gives: half of it, the level where the index is 0, is the mean outcome above
/// the floor.
const START: f32 = 2.0;

/// How factors become an outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DedlLink {
    /// θ_{m+1} / (1 + exp(−(θ_0 + Σ_j θ_j·t_j))).
    #[default]
    Sigmoid,
    /// θ_0 + Σ_j θ_j·t_j.
    Linear,
}

/// `[model]` of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct DedlParams {
    /// How factors become an outcome. Default `sigmoid`; `linear`.
    pub(super) link: DedlLink,
    /// Widths of the hidden layers of θ. Default 128, 64; at least one.
    pub(super) hidden: Vec<usize>,
    /// Dropout after each hidden layer. Default 0.1; in [0, 1).
    pub(super) dropout: f32,
    /// Networks trained side by side and averaged. Default 2; 1 to 256.
    pub(super) members: usize,
    /// Whether averages are debiased, which costs a fit for each of `training.folds`. Default true.
    pub(super) debias: bool,
    /// What is added to the diagonal of Λ(x), in units of its mean. Default 0.001; above 0.
    pub(super) ridge: f64,
    /// Least propensity in Λ(x), or a tenth of the policy's share, if that is less. Default 0.01; in (0, 0.5).
    pub(super) clip: f32,
    /// What the data settle; not a setting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) factors: Vec<Factor>,
}

impl Default for DedlParams {
    fn default() -> Self {
        Self {
            link: DedlLink::default(),
            hidden: vec![128, 64],
            dropout: 0.1,
            members: 2,
            debias: true,
            ridge: 1e-3,
            clip: 0.01,
            factors: Vec::new(),
        }
    }
}

/// θ, and which entries of a policy's vector are factors.
pub(super) struct Dedl {
    theta: Mlp,
    link: DedlLink,
    factors: Vec<Factor>,
}

impl Surface for Dedl {
    const NAME: &'static str = "dedl";
    const HAS_FIRST_STAGE: bool = true;
    type Model = DedlParams;

    fn check(model: &DedlParams) -> Result<()> {
        check_rules(&[
            Rule("model.hidden", are_widths(&model.hidden), "one or more widths of 1 to 65,536"),
            Rule("model.dropout", (0.0..1.0).contains(&model.dropout), "in [0, 1)"),
            Rule("model.ridge", model.ridge > 0.0 && model.ridge.is_finite(), "above 0"),
            Rule("model.clip", model.clip > 0.0 && model.clip < 0.5, "in (0, 0.5)"),
        ])
    }

    fn tier(_model: &DedlParams) -> Tier {
        Tier::Spec
    }

    fn members(model: &DedlParams) -> usize {
        model.members
    }

    fn needs(model: &DedlParams) -> Needs<'_> {
        Needs { propensity: model.debias.then_some(model.clip), ..Needs::default() }
    }

    fn adapt(model: &mut DedlParams, data: &ValidTrainingData<'_>) -> Result<()> {
        let treatments = Treatments::new(data, Tier::Spec);
        model.factors = factors::factors(&treatments, data.policies)?;
        if model.debias {
            let same_for_all = data.propensity_origin() == PropensityOrigin::Shares;
            let is_constant = model.link == DedlLink::Linear && same_for_all;
            information::check_size(treatments.arms.len(), model.n_theta(), is_constant)?;
        }
        Ok(())
    }

    fn fits(model: &DedlParams, treatments: &Treatments) -> bool {
        !model.factors.is_empty() && model.factors.iter().all(|factor| factor.is_sound(treatments.width()))
    }

    fn units(model: &DedlParams, values: &[f64], weight: Option<&[f64]>) -> (Vec<f32>, f64) {
        if model.link == DedlLink::Linear {
            return standard(values, weight);
        }
        let weight_of = |row: usize| weight.map_or(1.0, |weight| weight[row]);
        let mass: f64 = (0..values.len()).map(weight_of).sum();
        let mean = values.iter().enumerate().map(|(row, value)| weight_of(row) * value).sum::<f64>() / mass;
        let counted = values.iter().enumerate().filter(|(row, _)| weight_of(*row) > 0.0);
        let floor = counted.map(|(_, value)| *value).fold(mean, f64::min);
        // Outcomes vary, so their mean lies above the least.
        let unit = mean - floor;
        (values.iter().map(|value| ((value - floor) / unit) as f32).collect(), unit)
    }

    fn build(layout: &mut LayoutBuilder, shape: &Shape<'_>, model: &DedlParams) -> Self {
        let group = layout.group("theta");
        let mut widths = vec![shape.n_features];
        widths.extend(&model.hidden);
        widths.push(model.n_theta());
        let theta = Mlp::new(layout, "theta", &widths, Activation::Relu, Init::Uniform, group);
        Self { theta: theta.dropout(model.dropout), link: model.link, factors: model.factors.clone() }
    }

    fn shared(&self, tape: &mut Tape<'_>, treatments: &Chosen) {
        let values: Vec<f32> = factors::of_chosen(&self.factors, treatments).concat();
        let factors = tape.constant(treatments.arm.len(), self.factors.len(), &values);
        tape.share(factors);
    }

    fn factual(&self, tape: &mut Tape<'_>, _treatments: &Chosen, own: &[u32]) -> Var {
        let theta = self.theta(tape);
        let factors = tape.shared(0);
        let own = tape.gather(factors, own.iter().copied());
        let slopes = tape.slice_cols(theta, 1, self.factors.len());
        let index = tape.row_dot(slopes, own);
        self.level(tape, theta, index)
    }

    fn all(&self, tape: &mut Tape<'_>, _treatments: &Chosen) -> Var {
        let theta = self.theta(tape);
        let factors = tape.shared(0);
        let slopes = tape.slice_cols(theta, 1, self.factors.len());
        let index = tape.matmul_nt(slopes, factors);
        self.level(tape, theta, index)
    }

    fn shift(fit: &Fitted<Self>, outcome: &FittedOutcome<'_>) -> Result<Option<PolicyShift>> {
        if !fit.manifest.model.debias {
            return Ok(None);
        }
        debias::shift(fit, outcome).map(Some)
    }
}

impl Dedl {
    fn theta(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        self.theta.forward(tape, x)
    }

    /// G, where `index` lacks θ_0.
    fn level(&self, tape: &mut Tape<'_>, theta: Var, index: Var) -> Var {
        let constant = tape.slice_cols(theta, 0, 1);
        let index = tape.add(index, constant);
        match self.link {
            DedlLink::Linear => index,
            DedlLink::Sigmoid => {
                let share = tape.activate(index, Activation::Sigmoid);
                let top = self.top(tape, theta);
                tape.mul(share, top)
            }
        }
    }

    /// θ_{m+1}.
    fn top(&self, tape: &mut Tape<'_>, theta: Var) -> Var {
        let top = tape.slice_cols(theta, 1 + self.factors.len(), 1);
        tape.affine(top, 1.0, START)
    }
}

impl DedlParams {
    /// The numbers that θ(x) has.
    fn n_theta(&self) -> usize {
        self.factors.len() + 1 + usize::from(self.link == DedlLink::Sigmoid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Layout, Workspace};

    /// A network without features: θ is what its last bias says.
    fn network(link: DedlLink) -> (Dedl, Layout) {
        let factors = (0..2).map(|entry| Factor { entry, centre: 0.0, scale: 1.0 }).collect();
        let model = DedlParams { link, factors, ..DedlParams::default() };
        let mut layout = Layout::builder();
        let group = layout.group("theta");
        let theta =
            Mlp::new(&mut layout, "theta", &[3, 4, model.n_theta()], Activation::Tanh, Init::Uniform, group);
        (Dedl { theta, link, factors: model.factors }, layout.finish().unwrap())
    }

    #[test]
    fn the_gradient_of_the_loss_is_that_of_finite_differences() {
        let x = [0.3, -0.7, 1.1, 0.9, 0.2, -0.4];
        let (own, target) = ([0.0, 1.0, 1.0, 0.5], [0.4, 1.3]);
        for link in [DedlLink::Sigmoid, DedlLink::Linear] {
            let (network, layout) = network(link);
            let mut rng = crate::Seed::new(5).rng();
            let weights: Vec<f32> =
                (0..layout.n_values()).map(|_| rand::RngExt::random_range(&mut rng, -0.8..0.8)).collect();
            let loss = |tape: &mut Tape<'_>| {
                let x = tape.constant(2, 3, &x);
                let theta = network.theta.forward(tape, x);
                let own = tape.constant(2, 2, &own);
                let slopes = tape.slice_cols(theta, 1, 2);
                let index = tape.row_dot(slopes, own);
                let level = network.level(tape, theta, index);
                let target = tape.column(target);
                tape.squared_loss(level, target, None, 1.0)
            };
            let mut workspace = Workspace::default();
            workspace.loss_and_gradient(&layout, &weights, loss).unwrap();
            let gradient = workspace.gradient().to_vec();
            for (place, slope) in gradient.iter().enumerate() {
                let mut at = |step: f32| {
                    let mut moved = weights.clone();
                    moved[place] += step;
                    workspace.loss_and_gradient(&layout, &moved, loss).unwrap()
                };
                let found = (at(1e-2) - at(-1e-2)) / 2e-2;
                assert!(
                    (found - f64::from(*slope)).abs() < 2e-3 * (1.0 + found.abs()),
                    "{place}: {found} {slope}"
                );
            }
        }
    }

    #[test]
    fn outcomes_are_measured_from_the_least_in_units_of_their_mean_which_is_the_first_guess() {
        let model = DedlParams::default();
        let (values, unit) = Dedl::units(&model, &[0.0, 3.0, 6.0], None);
        assert_eq!((values, unit), (vec![0.0, 1.0, 2.0], 3.0));
        // A row that does not count does not set the floor.
        let (values, unit) = Dedl::units(&model, &[-9.0, -3.0, -1.0], Some(&[0.0, 1.0, 3.0]));
        assert_eq!((values, unit), (vec![-4.0, 0.0, 4.0 / 3.0], 1.5));
    }
}
