//! The networks of an effect: g for each outcome, h for all of them or for each (Eq. 4 of the paper).

use super::gain::Gain;
use super::params::{Centring, Params};
use super::space::TreatmentSpace;
use super::treatment_net::TreatmentNet;
use crate::Result;
use crate::net::{Batch, Group, Init, Layout, LayoutBuilder, Network, Tape, Var, Weight};

/// g and h for every outcome.
#[derive(Clone, Debug)]
pub(super) struct UpliftNet {
    /// One for all outcomes, or one for each.
    pub(super) treatments: Vec<TreatmentNet>,
    pub(super) g: Vec<Gain>,
    /// By outcome that is told, what it takes of each g; none while they are learned, and where each outcome has its own alone.
    pub(super) loadings: Vec<Vec<f64>>,
    /// The running means of h, one for each treatment net, where Algorithm 1 is followed to the letter.
    pub(super) running: Vec<RunningMean>,
}

/// h̄ and the rows it is the mean of: state that steps carry along, in a group that does not learn.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningMean {
    pub(super) mean: Weight,
    pub(super) count: Weight,
}

/// The groups that have rules of their own.
pub(super) struct Groups {
    pub(super) g: Group,
    pub(super) gate: Group,
    pub(super) rho: Group,
    pub(super) phi: Group,
    pub(super) delta: Group,
    /// Never moved by a gradient.
    pub(super) running: Group,
}

impl UpliftNet {
    pub(super) fn new(
        n_features: usize,
        n_outcomes: usize,
        space: &TreatmentSpace,
        params: &Params,
    ) -> Result<(Self, Layout, Groups)> {
        let mut layout = Layout::builder();
        let names: Vec<String> = match params.model.shared_treatment_net {
            true => vec!["h".to_owned()],
            false => (0..n_outcomes).map(|outcome| format!("h.{outcome}")).collect(),
        };
        let treatments =
            names.iter().map(|name| TreatmentNet::new(&mut layout, name, space, params)).collect();
        let g = (0..n_outcomes).map(|outcome| Gain::new(&mut layout, n_features, outcome, params)).collect();
        let running = match params.model.centring {
            Centring::RunningMean => {
                names.iter().map(|name| RunningMean::new(&mut layout, name, params)).collect()
            }
            _ => Vec::new(),
        };
        let groups = Groups {
            g: layout.group("g"),
            gate: layout.group("gate"),
            rho: layout.group("rho"),
            phi: layout.group("phi"),
            delta: layout.group("delta"),
            running: layout.group("running"),
        };
        Ok((Self { treatments, g, loadings: Vec::new(), running }, layout.finish()?, groups))
    }

    /// Which treatment net an outcome has.
    pub(super) fn treatment_of(&self, outcome: usize) -> usize {
        outcome.min(self.treatments.len() - 1)
    }

    /// Width of g and h.
    pub(super) fn width(&self) -> usize {
        self.treatments[0].n_out
    }

    /// What g shares among rows.
    pub(super) fn share_gains(&self, tape: &mut Tape<'_>) {
        self.g.iter().for_each(|g| g.share(tape));
    }

    /// How many matrices [`share_gains`](Self::share_gains) hands over.
    pub(super) fn n_shared_gains(&self) -> usize {
        self.g.iter().map(Gain::n_shared).sum()
    }

    /// How many outcomes have effects: all that are learned, or those that take of them.
    pub(super) fn n_outcomes(&self) -> usize {
        if self.loadings.is_empty() { self.g.len() } else { self.loadings.len() }
    }

    /// g(x) of every outcome.
    pub(super) fn gains(&self, tape: &mut Tape<'_>) -> Vec<Var> {
        let x = tape.features();
        let own: Vec<Var> = self.g.iter().enumerate().map(|(idx, g)| g.forward(tape, x, idx)).collect();
        if self.loadings.is_empty() {
            return own;
        }
        let mut taken = Vec::with_capacity(self.loadings.len());
        for loadings in &self.loadings {
            let mut parts = loadings.iter().zip(&own).filter(|(loading, _)| **loading != 0.0);
            let (loading, first) = parts.next().unwrap_or((&0.0, &own[0]));
            let mut sum = tape.scale(*first, *loading as f32);
            for (loading, g) in parts {
                let part = tape.scale(*g, *loading as f32);
                sum = tape.add(sum, part);
            }
            taken.push(sum);
        }
        taken
    }
}

impl RunningMean {
    fn new(layout: &mut LayoutBuilder, name: &str, params: &Params) -> Self {
        let group = layout.group("running");
        let mut state = |part: &str, n_cols: usize| {
            layout.matrix(&format!("{name}.running.{part}"), 1, n_cols, Init::Constant(0.0), group)
        };
        Self { mean: state("mean", params.model.effect_dim), count: state("count", 1) }
    }
}

/// g(x) of rows, every outcome side by side, for prediction.
impl Network for UpliftNet {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.share_gains(tape);
    }

    fn rows(&self, tape: &mut Tape<'_>, _batch: &Batch<'_>) -> Var {
        let gains = self.gains(tape);
        tape.concat(&gains)
    }
}
