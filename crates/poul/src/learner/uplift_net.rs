//! The orthogonalised loss: residual outcome against g(x)ᵀ(h(T) − e_h(x)) (Eq. 5 of the paper).

use super::params::{Centring, Params};
use super::treatment_net::{Mixtures, TreatmentNet};
use crate::Result;
use crate::net::{Activation, Batch, Init, Layout, LayoutBuilder, Mlp, Network, Tape, Var};
use crate::nuisance::Propensity;

/// g and h for every outcome.
#[derive(Clone, Debug)]
pub(super) struct UpliftNet {
    pub(super) treatment: TreatmentNet,
    pub(super) g: Vec<Mlp>,
}

impl UpliftNet {
    pub(super) fn new(
        n_features: usize,
        n_outcomes: usize,
        mixtures: &Mixtures,
        params: &Params,
    ) -> Result<(Self, Layout, Groups)> {
        let mut layout = Layout::builder();
        let treatment = TreatmentNet::new(&mut layout, "h", mixtures, params);
        let g = (0..n_outcomes).map(|outcome| Self::g(&mut layout, n_features, outcome, params)).collect();
        let groups = Groups {
            g: layout.group("g"),
            rho: layout.group("rho"),
            phi: layout.group("phi"),
            delta: layout.group("delta"),
        };
        Ok((Self { treatment, g }, layout.finish()?, groups))
    }

    fn g(layout: &mut LayoutBuilder, n_features: usize, outcome: usize, params: &Params) -> Mlp {
        let group = layout.group("g");
        let mut widths = vec![n_features];
        widths.extend(&params.hidden);
        widths.push(params.effect_dim);
        let name = format!("g.{outcome}");
        Mlp::new(layout, &name, &widths, Activation::Relu, Init::Uniform, group).dropout(params.dropout)
    }

    /// g(x) of every outcome, side by side.
    pub(super) fn effects(&self, tape: &mut Tape<'_>) -> Var {
        let x = tape.features();
        let parts: Vec<Var> = self.g.iter().map(|g| g.forward(tape, x)).collect();
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
        let h = tape.shared(0);
        let mut centred = tape.gather(h, batch.pick(self.policy));
        match (self.centring, self.propensity) {
            (Centring::None, _) | (_, Propensity::Shares(_)) => {}
            (Centring::Exact, Propensity::Strata { of_row, .. }) => {
                let means = tape.shared(1);
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
            .map(|g| {
                let g = g.forward(tape, x);
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
