//! What a learner with a treatment net tells of policies: h, and the constants of Proposition 3 of the paper,
//! |τ(x; t, t′)| ≤ ‖g(x)‖·L_ρ·B_φ·d_Π(t, t′).
//!
//! Since gᵀΔh = (g/s)ᵀ(s·Δh) for any scales s of the axes, both factors are measured with s_k = √E[g_k(x)²]. Then
//! ‖s·Δh‖² is near the mean square of gᵀΔh over rows (it is that where axes of g are uncorrelated, as in the canonical
//! form), and an axis along which effects do not differ cannot make the bound loose, however far h moves along it.
//!
//! The effect of an ensemble is the mean over its members, so the bound holds member by member and their mean bounds the
//! ensemble: a product of the largest L_ρ and the largest B_φ would hold too, and be looser.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::policy::PolicySet;

/// Policies as points: h(t) of every member.
pub trait PolicyEmbedding: Send + Sync {
    /// h of some policies for one outcome, by member: policies × d, row after row.
    fn embeddings(&self, policies: &PolicySet, chosen: &[usize], outcome: usize) -> Result<Vec<Vec<f32>>>;

    /// L_ρ, in the scales of [`gains`](Self::gains), and B_φ of every member, valid for mixtures of the atoms seen in training and of those of `chosen`.
    fn constants(
        &self,
        policies: &PolicySet,
        chosen: &[usize],
        outcome: usize,
    ) -> Result<Vec<StabilityConstants>>;

    /// ‖g(x)/s‖ over training rows by member, and s in the outcome's units; nothing in models older than it.
    fn gains(&self, outcome: usize) -> &[GainDeciles];

    /// Where rows have exposures of their own, how far the effects of two policies can differ for each row that the model
    /// keeps, averages included, in the outcome's units.
    ///
    /// By default there are none: h is that of the policy alone.
    fn row_bounds(
        &self,
        policies: &PolicySet,
        pair: [usize; 2],
        outcome: usize,
    ) -> Result<Option<Vec<RowBound>>> {
        let _ = (policies, pair, outcome);
        Ok(None)
    }

    /// The most by which the outcome changes with gᵀh: 1, or 1/4 where effects are differences of probabilities.
    fn link_slope(&self) -> f64;

    /// Of the variance of effects, the share that each axis of the first member carries; nothing in older models.
    fn axes(&self, outcome: usize) -> &[f64];
}

/// How far the effects of two policies can differ for one row, the mean over members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowBound {
    /// ‖g(x)/s‖.
    pub gain: f64,
    /// By the row's own distance between the two policies; none where L_ρ is unknown.
    pub by_distance: Option<f64>,
    /// By how far h of this row moves.
    pub by_embedding: f64,
}

/// The constants of one member.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StabilityConstants {
    /// L_ρ: how much faster than z the embedding h can move; none where ρ's hidden layer is normalised.
    pub lipschitz: Option<f64>,
    /// B_φ: how much z can move for each unit of d_Π.
    pub embedding_bound: f64,
}

/// ‖g(x)/s‖ of one member, by decile of the rows.
///
/// Rows are ordered by its mean over members, so that a decile holds the same rows in every member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GainDeciles {
    /// s: the root mean square of g along each axis, in the outcome's units.
    pub scales: Vec<f64>,
    /// The mean over the rows of each decile, the lowest first.
    pub mean: Vec<f64>,
    /// The largest in each decile.
    pub most: Vec<f64>,
}

impl GainDeciles {
    /// ‖s·(h − h′)‖.
    pub fn moved(&self, h: &[f32], other: &[f32]) -> f64 {
        let along = h.iter().zip(other).zip(&self.scales);
        along.map(|((a, b), scale)| (scale * (f64::from(*a) - f64::from(*b))).powi(2)).sum::<f64>().sqrt()
    }
}
