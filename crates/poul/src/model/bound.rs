//! How far the effects of two policies can differ by a trained model (Proposition 3 of the paper): with d_Π alone, and by
//! the embeddings themselves.
//!
//! |τ(x; t, 0) − τ(x; t′, 0)| = |τ(x; t, t′)| ≤ mean over members of ‖g(x)‖·‖h(t) − h(t′)‖, and ‖h(t) − h(t′)‖ ≤
//! L_ρ·B_φ·d_Π(t, t′), with g divided and h multiplied by the scales of [`GainDeciles`]. Where effects of rows lie around
//! averages of policies, g is what sets rows apart, and the difference of the two averages comes on top. It bounds what the model says, not how wrong the model is.

use serde::Serialize;

use crate::Result;
use crate::effect::{GainDeciles, PolicyEmbedding, RowBound};
use crate::policy::PolicySet;

/// The bound on one outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutcomeBound {
    /// Name of the outcome.
    pub outcome: String,
    /// By how much the averages of the two policies differ, which is part of every bound; 0 for learners without averages.
    pub average: f64,
    /// Whether bounds are of rows with exposures of their own, each with its part of the averages: deciles are then those of
    /// the bound itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_row: bool,
    /// What each member contributes.
    pub members: Vec<MemberBound>,
    /// The bound by decile of ‖g(x)‖ over training rows, the lowest first; none in models without them.
    pub deciles: Vec<DecileBound>,
}

/// The constants of one member.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemberBound {
    /// L_ρ; none where ρ's hidden layer is normalised.
    pub lipschitz: Option<f64>,
    /// B_φ.
    pub embedding_bound: f64,
    /// ‖h(t) − h(t′)‖ in the outcome's units: about the root mean square of the difference over training rows.
    pub moved: f64,
}

/// The bound for the rows of one decile, in the outcome's units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecileBound {
    /// The decile, from 1 to 10.
    pub decile: usize,
    /// Mean ‖g(x)‖ over rows and members.
    pub gain: f64,
    /// The bound by d_Π alone: mean over members of ‖g(x)‖·L_ρ·B_φ·d_Π, with the largest ‖g(x)‖ of the decile. None
    /// where L_ρ is unknown.
    pub by_distance: Option<f64>,
    /// The bound by the embeddings: mean over members of ‖g(x)‖·‖h(t) − h(t′)‖, with the largest ‖g(x)‖ of the decile.
    pub by_embedding: f64,
    /// The same with the mean ‖g(x)‖ of the decile: what it is for its rows on average.
    pub typical: f64,
}

impl OutcomeBound {
    /// The bound between two policies of `policies`.
    pub(super) fn between(
        net: &dyn PolicyEmbedding,
        policies: &PolicySet,
        [policy, other]: [usize; 2],
        (outcome, name): (usize, &str),
    ) -> Result<Self> {
        let h = net.embeddings(policies, &[policy, other], outcome)?;
        let constants = net.constants(policies, &[policy, other], outcome)?;
        let (gains, slope) = (net.gains(outcome), net.link_slope());
        let members: Vec<MemberBound> = moved(&h, &h, gains, [0, 1], 2)
            .into_iter()
            .zip(constants)
            .map(|(moved, own)| MemberBound {
                lipschitz: own.lipschitz,
                embedding_bound: own.embedding_bound,
                moved,
            })
            .collect();
        let distance = policies.distance(policy, other);
        let by_distance: Option<Vec<f64>> =
            members.iter().map(|own| Some(slope * own.lipschitz? * own.embedding_bound * distance)).collect();
        let by_embedding: Vec<f64> = members.iter().map(|own| slope * own.moved).collect();
        let ones = vec![1.0; members.len()];
        if let Some(rows) = net.row_bounds(policies, [policy, other], outcome)? {
            let deciles = row_deciles(rows);
            return Ok(Self { outcome: name.to_owned(), average: 0.0, by_row: true, members, deciles });
        }
        let n_deciles = gains.first().map_or(0, |own| own.mean.len());
        let decile = |decile: usize| DecileBound {
            decile: decile + 1,
            gain: mean_product(gains, &ones, |own| own.mean[decile]),
            by_distance: by_distance.as_ref().map(|own| mean_product(gains, own, |own| own.most[decile])),
            by_embedding: mean_product(gains, &by_embedding, |own| own.most[decile]),
            typical: mean_product(gains, &by_embedding, |own| own.mean[decile]),
        };
        let average = 0.0;
        let deciles = (0..n_deciles).map(decile).collect();
        Ok(Self { outcome: name.to_owned(), average, by_row: false, members, deciles })
    }
}

impl OutcomeBound {
    /// Adds what the averages of the two policies differ by.
    pub(super) fn add_average(&mut self, apart: f64) {
        self.average += apart;
        if self.by_row {
            return;
        }
        for own in &mut self.deciles {
            own.by_distance.iter_mut().for_each(|bound| *bound += apart);
            own.by_embedding += apart;
            own.typical += apart;
        }
    }
}

/// Deciles of the rows by the bound of each.
fn row_deciles(mut rows: Vec<RowBound>) -> Vec<DecileBound> {
    const N_PARTS: usize = 10;
    rows.sort_by(|a, b| a.by_embedding.total_cmp(&b.by_embedding));
    let n = rows.len();
    if n == 0 {
        return Vec::new();
    }
    let part = |part: usize| {
        let first = (part * n / N_PARTS).min(n - 1);
        let rows = &rows[first..((part + 1) * n / N_PARTS).max(first + 1)];
        let mean = |of: fn(&RowBound) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
        let by_distance: Option<Vec<f64>> = rows.iter().map(|own| own.by_distance).collect();
        DecileBound {
            decile: part + 1,
            gain: mean(|own| own.gain),
            by_distance: by_distance.map(|own| own.into_iter().fold(0.0, f64::max)),
            by_embedding: rows.iter().fold(0.0, |most, own| most.max(own.by_embedding)),
            typical: mean(|own| own.by_embedding),
        }
    };
    (0..N_PARTS).map(part).collect()
}

/// The bound for the median row, where rows have exposures of their own; it holds what averages differ by.
pub(crate) fn median_row_bound(
    net: &dyn PolicyEmbedding,
    policies: &PolicySet,
    pair: [usize; 2],
    outcome: usize,
) -> Result<Option<f64>> {
    let Some(rows) = net.row_bounds(policies, pair, outcome)? else { return Ok(None) };
    let mut bounds: Vec<f64> = rows.iter().map(|own| own.by_embedding).collect();
    bounds.sort_by(f64::total_cmp);
    Ok(bounds.get(bounds.len() / 2).copied())
}

/// The bound by the embeddings for the median row, for policies whose h is `moved` from another's, by member; none
/// without deciles.
pub(crate) fn median_bound(net: &dyn PolicyEmbedding, outcome: usize, moved: &[f64]) -> Option<f64> {
    let gains = net.gains(outcome);
    let middle = gains.first()?.mean.len() / 2;
    let by_embedding: Vec<f64> = moved.iter().map(|moved| net.link_slope() * moved).collect();
    // The median lies between the fifth and the sixth decile.
    let of = |decile: usize| mean_product(gains, &by_embedding, |own| own.mean[decile]);
    Some((of(middle.checked_sub(1)?) + of(middle)) / 2.0)
}

/// How far row `row` of one set of embeddings is from row `other_row` of another, by member; without scales, those of h.
pub(crate) fn moved(
    h: &[Vec<f32>],
    other: &[Vec<f32>],
    gains: &[GainDeciles],
    [row, other_row]: [usize; 2],
    n_rows: usize,
) -> Vec<f64> {
    let of = |(member, (h, other)): (usize, (&Vec<f32>, &Vec<f32>))| {
        let d = h.len() / n_rows.max(1);
        let (a, b) = (&h[row * d..][..d], &other[other_row * d..][..d]);
        match gains.get(member) {
            Some(own) => own.moved(a, b),
            None => GainDeciles { scales: vec![1.0; d], ..GainDeciles::default() }.moved(a, b),
        }
    };
    h.iter().zip(other).enumerate().map(of).collect()
}

fn mean_product(gains: &[GainDeciles], factors: &[f64], of: impl Fn(&GainDeciles) -> f64) -> f64 {
    let sum: f64 = gains.iter().zip(factors).map(|(own, factor)| of(own) * factor).sum();
    sum / gains.len().max(1) as f64
}
