//! The orthogonalised loss: outcomes against m̂(x) and g(x)ᵀ(h(T) − e_h(x)) (Eq. 5 of the paper).

use super::centring::{Centre, Centred};
use super::held_out::HeldOutParts;
use super::space::Mixtures;
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::net::{Batch, Layout, Network, Tape, Var, Workspace};

/// What g and h are held against.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// y − m̂(x) in standard units, row-major, one column per outcome.
    Residual(&'a [f32]),
    /// 0/1 outcomes and logit m̂(x), row-major, one column per outcome.
    Binary { outcome: &'a [f32], logit: &'a [f32] },
}

/// The loss on rows.
pub(super) struct Training<'a> {
    pub(super) network: &'a UpliftNet,
    pub(super) mixtures: &'a Mixtures,
    pub(super) centre: Centre<'a>,
    pub(super) policy: &'a [u32],
    pub(super) target: Target<'a>,
    pub(super) weight: Option<&'a [f32]>,
    /// The rows that members do not learn from, and the number of the first member that is trained.
    pub(super) held_out: Option<(&'a HeldOutParts, usize)>,
    /// The root of what each row and outcome counts by its noise, row-major.
    pub(super) precision: Option<&'a [f32]>,
    /// Whether effects are brought to size after training.
    pub(super) is_sized: bool,
    /// What Σ|gate| of an outcome costs, in units of the deviation of its predictions times errors.
    pub(super) gate_penalty: f32,
}

impl Target<'_> {
    /// How far a prediction is from the outcome in one place.
    fn error_of(&self, place: usize, predicted: f32) -> f64 {
        match self {
            Self::Residual(residual) => f64::from(residual[place] - predicted),
            Self::Binary { outcome, logit } => {
                f64::from(outcome[place]) - 1.0 / (1.0 + f64::from(-logit[place] - predicted).exp())
            }
        }
    }

    /// The loss of a prediction g(x)ᵀ(h(t) − e_h(x)) in one place.
    fn loss_of(&self, place: usize, predicted: f64) -> f64 {
        match self {
            Self::Residual(residual) => (predicted - f64::from(residual[place])).powi(2),
            Self::Binary { outcome, logit } => {
                let z = f64::from(logit[place]) + predicted;
                z.max(0.0) + (-z.abs()).exp().ln_1p() - f64::from(outcome[place]) * z
            }
        }
    }
}

/// The parts of a prediction that the loss needs, one column per outcome.
struct Predicted {
    value: Var,
    /// g(x)ᵀδ, where δ is half the difference of two estimates of e_h.
    scatter: Option<Var>,
}

impl Training<'_> {
    /// What every row of a part shares: gated layers, then h or φ and its centres, net after net.
    pub(super) fn share(&self, tape: &mut Tape<'_>) {
        self.network.share_gains(tape);
        for net in &self.network.treatments {
            self.centre.share(tape, net, self.mixtures);
        }
    }

    /// g(x)ᵀ(h(T) − e_h(x)) of rows of the data whose features are on the tape, one column per outcome.
    pub(super) fn predicted(&self, tape: &mut Tape<'_>, rows: &[u32]) -> Var {
        self.parts(tape, rows).value
    }

    /// h(T) − e_h(x) of rows by treatment net, and how many matrices [`share`](Self::share) has handed over.
    pub(super) fn centred(&self, tape: &mut Tape<'_>, rows: &[u32]) -> (Vec<Centred>, usize) {
        let network = self.network;
        let mut shared = network.n_shared_gains();
        let mut centred = Vec::with_capacity(network.treatments.len());
        for (idx, net) in network.treatments.iter().enumerate() {
            let net = (net, network.running.get(idx));
            centred.push(self.centre.rows(tape, net, self.mixtures, shared, self.policy, rows));
            shared += self.centre.n_shared(tape);
        }
        (centred, shared)
    }

    /// The mixtures whose atoms φ is of.
    pub(super) fn own_or_shared(&self) -> &Mixtures {
        self.centre.own.map_or(self.mixtures, |own| &own.mixtures.mixtures)
    }

    /// The loss of a prediction in one place.
    pub(super) fn loss_of(&self, place: usize, predicted: f64) -> f64 {
        self.by_noise(place) * self.target.loss_of(place, predicted)
    }

    /// Half of how fast the loss of a prediction grows with its square, in one place.
    pub(super) fn curvature_of(&self, place: usize, predicted: f64) -> f64 {
        let curvature = match self.target {
            Target::Residual(_) => 1.0,
            Target::Binary { logit, .. } => {
                let chance = 1.0 / (1.0 + (-f64::from(logit[place]) - predicted).exp());
                0.5 * chance * (1.0 - chance)
            }
        };
        self.by_noise(place) * curvature
    }

    /// What a row counts for a member: nothing where the member holds it out.
    #[inline]
    fn row_weight(&self, member: usize, row: u32) -> f32 {
        match self.held_out {
            Some((parts, first)) if parts.holds_out(first + member, row) => 0.0,
            _ => self.weight.map_or(1.0, |weight| weight[row as usize]),
        }
    }

    /// What a row and outcome counts by its noise.
    pub(super) fn by_noise(&self, place: usize) -> f64 {
        self.precision.map_or(1.0, |precision| f64::from(precision[place]).powi(2))
    }

    fn parts(&self, tape: &mut Tape<'_>, rows: &[u32]) -> Predicted {
        let network = self.network;
        let (centred, _) = self.centred(tape, rows);
        let x = tape.features();
        let (mut values, mut scatters) = (Vec::new(), Vec::new());
        for (outcome, g) in network.g.iter().enumerate() {
            let g = g.forward(tape, x, outcome);
            let centred = &centred[network.treatment_of(outcome)];
            values.push(tape.row_dot(g, centred.h));
            if let Some(scatter) = centred.scatter {
                scatters.push(if tape.shape(scatter).0 == 1 {
                    tape.matmul_nt(g, scatter)
                } else {
                    tape.row_dot(g, scatter)
                });
            }
        }
        let value = tape.concat(&values);
        let scatter = if scatters.is_empty() { None } else { Some(tape.concat(&scatters)) };
        Predicted { value, scatter }
    }

    /// The mean loss of predictions.
    fn loss(&self, tape: &mut Tape<'_>, predicted: Predicted, batch: &Batch<'_>) -> Var {
        let Predicted { value, scatter } = predicted;
        let n_outcomes = self.network.g.len();
        let weighted = |tape: &mut Tape<'_>| match (self.weight, self.held_out) {
            (None, None) => (None, batch.scale()),
            _ => {
                let of = |row: &u32| self.row_weight(batch.member, *row);
                let total: f64 = batch.batch_rows.iter().map(|row| f64::from(of(row))).sum();
                let scale = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
                (Some(tape.column(batch.rows.iter().map(of))), scale)
            }
        };
        match self.target {
            Target::Residual(residual) => {
                let precision = self.precision.map(|table| tape.table_rows(table, n_outcomes, batch.rows));
                let by_noise =
                    |tape: &mut Tape<'_>, value| precision.map_or(value, |own| tape.mul(value, own));
                let target = tape.table_rows(residual, n_outcomes, batch.rows);
                let (value, target) = (by_noise(tape, value), by_noise(tape, target));
                let (weights, scale) = weighted(tape);
                let loss = tape.squared_loss(value, target, weights, scale);
                let Some(scatter) = scatter else { return loss };
                // (r − gᵀ(h − ê₁))·(r − gᵀ(h − ê₂)) for independent estimates ê of e_h has the expectation of
                // (r − gᵀ(h − e_h))², and is the square at their mean less that of half their difference. The
                // square alone would charge g for the scatter of the sample.
                let zeros = vec![0.0; batch.rows.len() * n_outcomes];
                let zeros = tape.constant(batch.rows.len(), n_outcomes, &zeros);
                let scatter = by_noise(tape, scatter);
                let excess = tape.squared_loss(scatter, zeros, weights, -scale);
                tape.add(loss, excess)
            }
            Target::Binary { outcome, logit } => {
                let offset = tape.table_rows(logit, n_outcomes, batch.rows);
                let logit = tape.add(value, offset);
                let target = tape.table_rows(outcome, n_outcomes, batch.rows);
                let (weights, scale) = weighted(tape);
                tape.logistic_loss(logit, target, weights, scale)
            }
        }
    }

    /// What gates cost: λ·√E[(prediction · error)²]·Σ|gate| for each outcome, with λ falling as 1/√rows. It is the scale
    /// of what noise alone can gain by a gate, so that weak effects are not charged as if they were strong, and those of
    /// outcomes whose noise grows with what drives them, as that of spending does, are charged for it.
    fn penalties(&self, tape: &mut Tape<'_>, predicted: Var, batch: &Batch<'_>) -> Vec<Var> {
        let n_outcomes = self.network.g.len();
        let n_rows = batch.rows.len().max(1);
        let share = n_rows as f32 / batch.batch_rows.len().max(1) as f32;
        let mut penalties = Vec::new();
        for (outcome, g) in self.network.g.iter().enumerate() {
            let (mut square, mut mass) = (0.0, 0.0);
            let values = tape.value(predicted).iter().skip(outcome).step_by(n_outcomes);
            for (value, row) in values.zip(batch.rows) {
                let place = *row as usize * n_outcomes + outcome;
                let error = self.by_noise(place) * self.target.error_of(place, *value);
                let weight = f64::from(self.row_weight(batch.member, *row));
                square += weight * (f64::from(*value) * error).powi(2);
                mass += weight;
            }
            let size_of_noise = (square / f64::max(mass, f64::MIN_POSITIVE)).sqrt() as f32;
            if let Some(size) = g.gate_size(tape) {
                penalties.push(tape.scale(size, self.gate_penalty * size_of_noise * share));
            }
        }
        penalties
    }
}

impl Network for Training<'_> {
    fn shared(&self, tape: &mut Tape<'_>, _member: usize) {
        self.share(tape);
    }

    fn rows(&self, tape: &mut Tape<'_>, batch: &Batch<'_>) -> Var {
        let predicted = self.parts(tape, batch.rows);
        let penalties = self.penalties(tape, predicted.value, batch);
        let loss = self.loss(tape, predicted, batch);
        penalties.into_iter().fold(loss, |total, penalty| tape.add(total, penalty))
    }

    /// h̄ ← (c·h̄ + Σ h)/(c + |B|): line 16 of Algorithm 1, with rows counted by weight.
    fn carry(&self, layout: &Layout, weights: &mut [f32], rows: &[u32]) -> Result<()> {
        let network = self.network;
        for (net, running) in network.treatments.iter().zip(&network.running) {
            let sums = Workspace::default().value(layout, weights, |tape| {
                let phi = net.atoms(tape, self.mixtures);
                let own = rows.iter().map(|row| self.policy[*row as usize]);
                let h = net.of_policies(tape, self.mixtures, phi, own);
                let weight = |row: &u32| self.weight.map_or(1.0, |weight| weight[*row as usize]);
                let weights = tape.column(rows.iter().map(weight));
                let ones = tape.affine(weights, 0.0, 1.0);
                let both = tape.concat(&[h, ones]);
                tape.matmul_tn(weights, both)
            })?;
            let Some((mass, sums)) = sums.split_last() else { continue };
            let count = weights[layout.segment(running.count).range()][0];
            let total = count + mass;
            if total > 0.0 {
                let means = &mut weights[layout.segment(running.mean).range()];
                means.iter_mut().zip(sums).for_each(|(mean, sum)| *mean = (count * *mean + sum) / total);
                weights[layout.segment(running.count).range()][0] = total;
            }
        }
        Ok(())
    }
}
