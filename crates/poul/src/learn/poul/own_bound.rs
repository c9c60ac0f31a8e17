//! Proposition 3 where rows have exposures of their own: for every row that the model keeps, how far the effects of two
//! policies can differ.
//!
//! |τ_i(t, t′)| ≤ ‖g_i‖·‖h_i(t) − h_i(t′)‖ + |c|·d_i ≤ ‖g_i‖·L_ρ·B_φ·d_i + |c|·d_i, where d_i is the row's own distance
//! Σ_s w_i(s) Σ_a |Π_t − Π_t′|(a|s) and c what a unit of it adds to bring effects to their average (see `anchor`).

use super::fitted::Poul;
use super::own_mixtures::distance_by_context;
use super::reference::Part;
use crate::Result;
use crate::effect::{PolicyEmbedding, RowBound};
use crate::policy::PolicySet;

impl Poul {
    /// The bounds of the rows kept; none where contexts weigh the same for every row, or for models without scales.
    pub(super) fn own_row_bounds(
        &self,
        policies: &PolicySet,
        [policy, other]: [usize; 2],
        outcome: usize,
    ) -> Result<Option<Vec<RowBound>>> {
        let Some(reference) = self.reference() else { return Ok(None) };
        let gains = self.gains(outcome);
        if gains.len() != self.weights().len() {
            return Ok(None);
        }
        let policies = &*self.weighted(policies)?;
        let scorer = self.own_scorer(reference, policies, &[policy, other])?;
        let constants = self.constants(policies, &[policy, other], outcome)?;
        let (n_rows, n_members, slope) = (reference.n_rows(), gains.len(), self.link_slope());
        let by_context = distance_by_context(policies, policy, other);
        let distance = |row: usize| -> f64 {
            let own = reference.exposure(row).iter().zip(&by_context);
            own.map(|(exposure, distance)| f64::from(*exposure) * distance).sum()
        };
        let offset = scorer.offset(outcome);
        let mut bounds: Vec<RowBound> = (0..n_rows)
            .map(|row| {
                let average = (offset * distance(row)).abs();
                RowBound { gain: 0.0, by_distance: Some(average), by_embedding: average }
            })
            .collect();
        for member in 0..n_members {
            let (net, own) = (scorer.net(outcome, member), &gains[member]);
            let d = own.scales.len();
            net.each_row(
                Part::Whole,
                scorer.mixtures(),
                n_rows,
                2,
                &|row| reference.exposure(row),
                &mut |row, h| {
                    let g = reference.gain(member, row, outcome, d);
                    let unit = self.scales()[outcome];
                    let size = (0..d).map(|k| {
                        let g = self
                            .anchors()
                            .get(outcome)
                            .map_or(f64::from(g[k]), |anchor| anchor.along(member, f64::from(g[k]), 1.0, k));
                        // Scales are in the outcome's units.
                        (g * unit / own.scales[k]).powi(2)
                    });
                    let size = size.sum::<f64>().sqrt();
                    let moved = own.moved(&h[..d], &h[d..2 * d]);
                    let share = 1.0 / n_members as f64;
                    let bound = &mut bounds[row];
                    bound.gain += share * size;
                    bound.by_embedding += share * slope * size * moved;
                    let by_distance = constants[member].lipschitz.map(|lipschitz| {
                        share * slope * size * lipschitz * constants[member].embedding_bound * distance(row)
                    });
                    bound.by_distance = bound.by_distance.zip(by_distance).map(|(sum, own)| sum + own);
                },
            )?;
        }
        Ok(Some(bounds))
    }
}
