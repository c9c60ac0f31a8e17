//! Effects of rows: g once, then one product with h of all policies (Eq. 4 of the paper).
//!
//! For an additive outcome τ = Σ_members g(x)ᵀ(h(t1) − h(t0)) / members is one product: the members' g side by side with
//! their contrasts stacked. Only a spread over members, or a logistic outcome, takes a product for each member.

use super::blocks::{Blocks, Piece};
use crate::Result;
use crate::effect::{Scorer, Scores};
use crate::net::{Block, Columns, Prepared, RowSource, Workspace, sigmoid};
use crate::nuisance::OutcomeModels;

/// Scores some policies against one.
pub(super) struct PoulScorer<'m> {
    /// g of each member.
    pub(super) members: Vec<Prepared<'m>>,
    /// Width of g and h.
    pub(super) width: usize,
    pub(super) n_targets: usize,
    pub(super) n_features: usize,
    /// By outcome.
    pub(super) links: Vec<Link>,
    /// b(x) of the logistic outcomes.
    pub(super) baseline: Option<&'m OutcomeModels>,
    /// Whether members 2k and 2k + 1 were fitted on complementary halves of the rows.
    pub(super) in_pairs: bool,
    /// What the user should know about these policies.
    pub(super) notes: Vec<String>,
}

/// How g of one outcome becomes effects.
pub(super) enum Link {
    /// Effects are products.
    Identity {
        /// Contrasts h(t) − h(against) of all members stacked, in the outcome's units, divided by the members.
        mean: Columns,
        /// Contrasts of each member in the outcome's units.
        members: Vec<Columns>,
        /// By member, what is added to the products of each target; none where nothing is.
        offsets: Vec<Vec<f32>>,
        /// The standard error of each target's average; none where it is not known.
        errors: Vec<f32>,
    },
    /// Effects are differences of probabilities.
    Logistic {
        /// h(t) − h̄ of each member; the last column is the policy compared with.
        members: Vec<Columns>,
    },
}

impl Scorer for PoulScorer<'_> {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let blocks = Blocks {
            x,
            n_features: self.n_features,
            n_outcomes: self.links.len(),
            n_targets: self.n_targets,
            baseline: self.baseline,
            spread,
        };
        blocks.fill(|buffers: &mut Buffers, baseline, piece| {
            buffers.block.read(x, piece.first_row, piece.n_rows);
            self.fill(buffers, baseline, piece)
        })
    }

    fn has_spread(&self) -> bool {
        self.members.len() > 1
    }

    fn spread_freedom(&self) -> Option<usize> {
        self.in_pairs.then_some(self.members.len() / 2)
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The buffers of one thread.
#[derive(Default)]
struct Buffers {
    block: Block,
    workspace: Workspace,
    /// g of one member, all outcomes side by side.
    gains: Vec<f32>,
    /// By outcome, g of all members side by side.
    stacked: Vec<Vec<f32>>,
    /// By outcome and member, g.
    single: Vec<Vec<f32>>,
    products: Vec<f32>,
    /// Effects of the member before, with whom this one makes a pair.
    partner: Vec<f32>,
    scratch: Vec<f32>,
    shifts: Vec<f32>,
}

impl PoulScorer<'_> {
    fn fill(&self, buffers: &mut Buffers, baseline: Option<&[f32]>, piece: Piece<'_>) -> Result<()> {
        let (n_outcomes, n_members) = (self.links.len(), self.members.len());
        let needs_single =
            !piece.spreads.is_empty() || self.links.iter().any(|link| matches!(link, Link::Logistic { .. }));
        self.read_gains(buffers, needs_single)?;
        let Buffers { stacked, single, products, partner, scratch, shifts, .. } = buffers;
        let mut spreads = piece.spreads.into_iter();
        for (outcome, (link, mean)) in self.links.iter().zip(piece.means).enumerate() {
            let mut spread = spreads.next();
            let single = if needs_single { &single[outcome * n_members..][..n_members] } else { &[] };
            match link {
                Link::Identity { mean: columns, members, offsets, .. } => {
                    columns.multiply(&stacked[outcome], scratch, mean);
                    if !offsets.is_empty() {
                        let mean_of = |target: usize| {
                            offsets.iter().map(|own| f64::from(own[target])).sum::<f64>() / n_members as f64
                        };
                        let offset: Vec<f32> =
                            (0..self.n_targets).map(|target| mean_of(target) as f32).collect();
                        add_offsets(mean, &offset);
                    }
                    let Some(spread) = &mut spread else { continue };
                    for (number, (columns, gains)) in members.iter().zip(single).enumerate() {
                        products.resize(mean.len(), 0.0);
                        columns.multiply(gains, scratch, products);
                        if let Some(offset) = offsets.get(number) {
                            add_offsets(products, offset);
                        }
                        if self.in_pairs {
                            add_half(number, products, partner, spread);
                            continue;
                        }
                        for ((spread, effect), mean) in spread.iter_mut().zip(&*products).zip(&*mean) {
                            *spread += (effect - mean) * (effect - mean);
                        }
                    }
                }
                Link::Logistic { members } => {
                    let logit_of = |row: usize| match baseline {
                        Some(baseline) => baseline[(piece.first_row + row) * n_outcomes + outcome],
                        None => 0.0,
                    };
                    for (number, (columns, gains)) in members.iter().zip(single).enumerate() {
                        products.resize(piece.n_rows * (self.n_targets + 1), 0.0);
                        columns.multiply(gains, scratch, products);
                        for (row, products) in products.chunks_mut(self.n_targets + 1).enumerate() {
                            shifts.clear();
                            shifts.resize(self.n_targets + 1, logit_of(row));
                            sigmoid(shifts, products);
                        }
                        let deviations = spread.as_deref_mut().filter(|_| !self.in_pairs);
                        self.add_member(number, products, mean, deviations);
                        if let (true, Some(spread)) = (self.in_pairs, spread.as_deref_mut()) {
                            let row_effects = |row: &[f32]| {
                                let against = row[self.n_targets];
                                row[..self.n_targets]
                                    .iter()
                                    .map(move |own| own - against)
                                    .collect::<Vec<f32>>()
                            };
                            let effects: Vec<f32> =
                                products.chunks_exact(self.n_targets + 1).flat_map(row_effects).collect();
                            add_half(number, &effects, partner, spread);
                        }
                    }
                }
            }
            if let Some(spread) = spread {
                // Pairs: the mean of (a − b)²/4. Otherwise the standard deviation over members.
                let share = match self.in_pairs {
                    true => 0.5 / n_members as f32,
                    false => 1.0 / (n_members as f32 - 1.0).max(1.0),
                };
                spread.iter_mut().for_each(|square| *square = (*square * share).max(0.0));
                // Members agree on the average, whose own error comes on top.
                if let Link::Identity { errors, .. } = link
                    && !errors.is_empty()
                {
                    for squares in spread.chunks_exact_mut(errors.len()) {
                        squares.iter_mut().zip(errors).for_each(|(square, error)| *square += error * error);
                    }
                }
                spread.iter_mut().for_each(|square| *square = square.sqrt());
            }
        }
        Ok(())
    }

    /// g of every member: side by side for each outcome, and one by one where that is needed.
    fn read_gains(&self, buffers: &mut Buffers, needs_single: bool) -> Result<()> {
        let Buffers { block, workspace, gains, stacked, single, .. } = buffers;
        let (n_outcomes, n_members, width) = (self.links.len(), self.members.len(), self.width);
        let n_rows = block.n_rows();
        stacked.resize_with(n_outcomes, Vec::new);
        single.resize_with(n_outcomes * n_members, Vec::new);
        for (number, member) in self.members.iter().enumerate() {
            member.outputs(block, workspace, width * n_outcomes, gains)?;
            for (outcome, stacked) in stacked.iter_mut().enumerate() {
                stacked.resize(n_rows * n_members * width, 0.0);
                let own = gains.chunks_exact(width * n_outcomes).map(|g| &g[outcome * width..][..width]);
                for (stacked, g) in stacked.chunks_exact_mut(n_members * width).zip(own.clone()) {
                    stacked[number * width..][..width].copy_from_slice(g);
                }
                if needs_single {
                    let single = &mut single[outcome * n_members + number];
                    single.clear();
                    own.for_each(|g| single.extend_from_slice(g));
                }
            }
        }
        Ok(())
    }

    /// Adds one member's differences of probabilities to the running mean and sum of squared deviations (Welford).
    fn add_member(
        &self,
        number: usize,
        probabilities: &[f32],
        mean: &mut [f32],
        mut spread: Option<&mut [f32]>,
    ) {
        let share = 1.0 / (number + 1) as f32;
        let rows = probabilities.chunks_exact(self.n_targets + 1).zip(mean.chunks_exact_mut(self.n_targets));
        for (row, (probabilities, mean)) in rows.enumerate() {
            let against = probabilities[self.n_targets];
            for (target, (probability, mean)) in probabilities.iter().zip(mean).enumerate() {
                let change = probability - against - *mean;
                *mean += change * share;
                if let Some(spread) = spread.as_deref_mut() {
                    spread[row * self.n_targets + target] += change * (probability - against - *mean);
                }
            }
        }
    }
}

/// Adds what each target has to every row.
fn add_offsets(effects: &mut [f32], offsets: &[f32]) {
    for row in effects.chunks_exact_mut(offsets.len().max(1)) {
        row.iter_mut().zip(offsets).for_each(|(effect, offset)| *effect += offset);
    }
}

/// Keeps the effects of the first half of a pair, and adds the squared differences of the second from them.
fn add_half(number: usize, effects: &[f32], partner: &mut Vec<f32>, spread: &mut [f32]) {
    if number.is_multiple_of(2) {
        partner.clear();
        partner.extend_from_slice(effects);
        return;
    }
    for ((spread, effect), other) in spread.iter_mut().zip(effects).zip(&*partner) {
        *spread += (effect - other) * (effect - other);
    }
}
