//! Effects of rows around the averages of policies: τ(x; t1, t0) = A(t1) − A(t0) + s·(g(x) − ḡ)ᵀ(h(t1) − h(t0)).
//!
//! A is the average effect by the rows of all policies together (see [`average`](crate::average)), ḡ the mean of g over the
//! training population, so that deviations have mean zero there and the mean of τ is the average, to rounding; s is how
//! much of the deviations held-out rows bear out (see `calibration`). In the terms of the paper it is one more axis, along
//! which g is 1 and h is A: effects stay a product of g and h, whatever the axes.
//!
//! Where rows have exposures of their own, τ_i(t1, t0) = N_i + (A(t1) − A(t0) − mean_j N_j)·d_i / d̄ with
//! N_i = (l·ḡ + s·(g_i − ḡ))ᵀ(h_i(t1) − h_i(t0)): what sets averages right goes to rows by their own distance d_i between the
//! two policies, over its mean, so that who meets nothing of the change has no effect. l is the slope of what policies do on
//! average. With one exposure for all, d_i = d̄ and this is the form above, whatever l.

use serde::{Deserialize, Serialize};

use super::calibration::Slopes;
use super::uplift_net::UpliftNet;
use crate::Result;
use crate::average::{Posterior, PosteriorManifest, ResidualRows};
use crate::effect::{Tensor, Tensors};
use crate::net::{Layout, RowSource, predict};
use crate::nuisance::SomeRows;
use crate::policy::PolicySet;

/// Rows that ḡ is taken over at most, evenly spaced.
const MOST_ROWS: usize = 1 << 18;

/// The anchor of one outcome.
#[derive(Clone, Debug)]
pub(super) struct Anchor {
    pub(super) average: Posterior,
    /// s.
    pub(super) slope: f64,
    /// l; 0 where contexts weigh the same for every row.
    pub(super) level: f64,
    /// ḡ of each member.
    pub(super) centre: Vec<Vec<f64>>,
}

/// What the model file keeps of it besides the matrices.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AnchorManifest {
    slope: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    level: f64,
    centre: Vec<Vec<f64>>,
    average: PosteriorManifest,
}

/// The averages of some outcomes; none where one of them cannot be told.
pub(super) fn averages(
    rows: &ResidualRows<'_>,
    outcomes: &[usize],
    policies: &PolicySet,
    control: Option<usize>,
) -> Option<Vec<Posterior>> {
    outcomes.iter().map(|outcome| Posterior::fit(rows, *outcome, policies, control)).collect()
}

/// Anchors of members in their final axes.
pub(super) fn anchors(
    averages: Vec<Posterior>,
    slopes: &[Slopes],
    network: &UpliftNet,
    layout: &Layout,
    members: &[Vec<f32>],
    (x, weight): (&dyn RowSource, Option<&[f32]>),
    has_own_exposure: bool,
) -> Result<Vec<Anchor>> {
    let (d, n_outcomes) = (network.width(), network.n_outcomes());
    let n_rows = x.n_rows();
    let n_sample = n_rows.min(MOST_ROWS);
    let rows: Vec<u32> = (0..n_sample).map(|i| (i * n_rows / n_sample) as u32).collect();
    let mut centres = vec![Vec::with_capacity(members.len()); n_outcomes];
    for (number, weights) in members.iter().enumerate() {
        let gains = predict(layout, weights, network, &SomeRows { x, rows: &rows }, d * n_outcomes, number)?;
        let (mut sums, mut mass) = (vec![0.0; d * n_outcomes], 0.0);
        for (gains, row) in gains.chunks_exact(d * n_outcomes).zip(&rows) {
            let weight = weight.map_or(1.0, |weight| f64::from(weight[*row as usize]));
            mass += weight;
            sums.iter_mut().zip(gains).for_each(|(sum, g)| *sum += weight * f64::from(*g));
        }
        sums.iter_mut().for_each(|sum| *sum /= f64::max(mass, f64::MIN_POSITIVE));
        centres.iter_mut().zip(sums.chunks_exact(d)).for_each(|(own, mean)| own.push(mean.to_vec()));
    }
    let slope = |outcome: usize| slopes.get(outcome).map_or(1.0, |own: &Slopes| own.rows);
    let level = |outcome: usize| match has_own_exposure {
        true => slopes.get(outcome).map_or(1.0, |own: &Slopes| own.average),
        false => 0.0,
    };
    let anchor = |(outcome, (average, centre))| Anchor {
        average,
        slope: slope(outcome),
        level: level(outcome),
        centre,
    };
    Ok(averages.into_iter().zip(centres).enumerate().map(anchor).collect())
}

impl Anchor {
    pub(super) fn manifest(&self) -> AnchorManifest {
        let average = self.average.manifest().clone();
        AnchorManifest { slope: self.slope, level: self.level, centre: self.centre.clone(), average }
    }

    /// One entry of l·ḡ + s·(g − ḡ), for a member; `mass` is what the entry was multiplied with, as that of a mean is.
    pub(super) fn along(&self, member: usize, g: f64, mass: f64, k: usize) -> f64 {
        self.slope * g + (self.level - self.slope) * self.centre[member][k] * mass
    }

    pub(super) fn tensors(&self, outcome: usize) -> [Tensor<'_>; 2] {
        self.average.tensors(&prefix(outcome))
    }

    /// From the parts of a model file; none where they do not fit together.
    pub(super) fn from_parts(
        manifest: AnchorManifest,
        outcome: usize,
        (n_members, width): (usize, usize),
        tensors: &mut Tensors,
    ) -> Result<Option<Self>> {
        let AnchorManifest { slope, level, centre, average } = manifest;
        let is_sound = slope.is_finite()
            && level.is_finite()
            && centre.len() == n_members
            && centre.iter().all(|own| own.len() == width && own.iter().all(|value| value.is_finite()));
        let average = Posterior::from_parts(average, tensors, &prefix(outcome))?;
        Ok(is_sound.then_some(Self { average, slope, level, centre }))
    }
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn prefix(outcome: usize) -> String {
    format!("poul.average.{outcome}")
}
