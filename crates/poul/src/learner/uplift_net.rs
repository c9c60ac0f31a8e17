//! The orthogonalised loss: residual outcome against g(x)ᵀ(h(T) − e_h(x)) (Eq. 5 of the paper).

use super::params::{Centring, Params};
use super::space::{Mixtures, TreatmentSpace};
use super::treatment_net::TreatmentNet;
use crate::Result;
use crate::net::{Activation, Batch, Dense, Init, Layout, LayoutBuilder, Mlp, Network, Tape, Var, Weight};
use crate::nuisance::Propensity;

/// g and h for every outcome.
#[derive(Clone, Debug)]
pub(super) struct UpliftNet {
    pub(super) treatment: TreatmentNet,
    pub(super) g: Vec<Gain>,
}

/// g of one outcome. Features enter through gates, one each, that are pulled to zero: of many features few matter.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    gate: Option<Weight>,
    first: Dense,
    rest: Mlp,
    dropout: f32,
    penalty: f32,
}

impl Gain {
    fn new(layout: &mut LayoutBuilder, n_features: usize, outcome: usize, params: &Params) -> Self {
        let (group, gates) = (layout.group("g"), layout.group("gate"));
        let name = format!("g.{outcome}");
        let gate = (params.training.gate_penalty > 0.0)
            .then(|| layout.matrix(&format!("{name}.gate"), n_features, 1, Init::Constant(1.0), gates));
        let first =
            layout.dense(&format!("{name}.first"), n_features, params.model.hidden[0], Init::Uniform, group);
        let mut widths = params.model.hidden.clone();
        widths.push(params.model.effect_dim);
        let rest = Mlp::new(layout, &name, &widths, Activation::Relu, Init::Uniform, group)
            .dropout(params.model.dropout);
        Self { gate, first, rest, dropout: params.model.dropout, penalty: params.training.gate_penalty }
    }

    /// The layer whose outputs are the axes of g.
    pub(super) fn last(&self) -> Option<Dense> {
        self.rest.last()
    }

    /// The gated first layer, shared by all rows.
    fn share(&self, tape: &mut Tape<'_>) {
        let Some(gate) = self.gate else { return };
        let (gate, weight) = (tape.weight(gate), tape.weight(self.first.weight));
        let gated = tape.mul(weight, gate);
        tape.share(gated);
        let size = tape.abs(gate);
        let size = tape.sum(size);
        let penalty = tape.scale(size, self.penalty);
        tape.add_loss(penalty);
    }

    fn forward(&self, tape: &mut Tape<'_>, x: Var, shared: usize) -> Var {
        let first = match (self.gate, self.first.bias) {
            (Some(_), Some(bias)) => {
                let weight = tape.shared(shared);
                let product = tape.matmul(x, weight);
                let bias = tape.weight(bias);
                let sum = tape.add(product, bias);
                tape.activate(sum, Activation::Relu)
            }
            _ => tape.dense(x, self.first, Activation::Relu),
        };
        let first = tape.dropout(first, self.dropout);
        self.rest.forward(tape, first)
    }
}

impl UpliftNet {
    pub(super) fn new(
        n_features: usize,
        n_outcomes: usize,
        space: &TreatmentSpace,
        params: &Params,
    ) -> Result<(Self, Layout, Groups)> {
        let mut layout = Layout::builder();
        let treatment = TreatmentNet::new(&mut layout, "h", space, params);
        let g = (0..n_outcomes).map(|outcome| Gain::new(&mut layout, n_features, outcome, params)).collect();
        let groups = Groups {
            g: layout.group("g"),
            rho: layout.group("rho"),
            phi: layout.group("phi"),
            delta: layout.group("delta"),
        };
        Ok((Self { treatment, g }, layout.finish()?, groups))
    }

    /// g(x) of every outcome, side by side.
    pub(super) fn effects(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let parts: Vec<Var> = self.g.iter().enumerate().map(|(k, g)| g.forward(tape, x, k)).collect();
        tape.concat(&parts)
    }
}

pub(super) struct Groups {
    pub(super) g: crate::net::Group,
    pub(super) rho: crate::net::Group,
    pub(super) phi: crate::net::Group,
    pub(super) delta: crate::net::Group,
}

/// The loss on rows.
pub(super) struct Training<'a> {
    pub(super) network: &'a UpliftNet,
    pub(super) mixtures: &'a Mixtures,
    pub(super) propensity: &'a Propensity,
    pub(super) n_policies: usize,
    pub(super) policy: &'a [u32],
    /// Residual outcomes, row-major.
    pub(super) residual: &'a [f32],
    pub(super) weight: Option<&'a [f32]>,
    pub(super) centring: Centring,
}

impl Network for Training<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.network.g.iter().for_each(|g| g.share(tape));
        let h = self.network.treatment.forward(tape, self.mixtures);
        match (self.centring, self.propensity) {
            (Centring::None, _) | (_, Propensity::Rows(_)) => tape.share(h),
            (Centring::Exact, Propensity::Shares(shares)) => {
                let shares = tape.constant(1, self.n_policies, shares);
                let mean = tape.matmul(shares, h);
                let centred = tape.sub(h, mean);
                tape.share(centred);
            }
            (Centring::Exact, Propensity::Strata { table, .. }) => {
                let table = tape.constant(table.len() / self.n_policies, self.n_policies, table);
                let means = tape.matmul(table, h);
                tape.share(h);
                tape.share(means);
            }
        }
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let first = if self.network.g.iter().any(|g| g.gate.is_some()) { self.network.g.len() } else { 0 };
        let h = tape.shared(first);
        let mut centred = tape.gather(h, batch.pick(self.policy));
        match (self.centring, self.propensity) {
            (Centring::None, _) | (_, Propensity::Shares(_)) => {}
            (Centring::Exact, Propensity::Strata { of_row, .. }) => {
                let means = tape.shared(first + 1);
                let mean = tape.gather(means, batch.pick(of_row));
                centred = tape.sub(centred, mean);
            }
            (Centring::Exact, Propensity::Rows(table)) => {
                let propensity = tape.table_rows(table, self.n_policies, batch.rows);
                let mean = tape.matmul(propensity, h);
                centred = tape.sub(centred, mean);
            }
        }
        let x = tape.features();
        let predicted: Vec<Var> = self
            .network
            .g
            .iter()
            .enumerate()
            .map(|(k, g)| {
                let g = g.forward(tape, x, k);
                tape.row_dot(g, centred)
            })
            .collect();
        let predicted = tape.concat(&predicted);
        let target = tape.table_rows(self.residual, self.network.g.len(), batch.rows);
        match self.weight {
            None => tape.squared_loss(predicted, target, None, batch.scale()),
            Some(weight) => {
                let weights = tape.column(batch.pick(weight));
                tape.squared_loss(predicted, target, Some(weights), batch.weighted_scale(weight))
            }
        }
    }
}

/// g(x) of rows, for prediction.
impl Network for UpliftNet {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.g.iter().for_each(|g| g.share(tape));
    }

    fn rows(&self, tape: &mut Tape<'_>, _batch: &Batch<'_>) -> Var {
        self.effects(tape)
    }
}
