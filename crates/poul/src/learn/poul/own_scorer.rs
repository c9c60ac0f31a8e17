//! Effects of rows with exposures of their own: g once, h for every row and policy (Eqs. 2 and 4 of the paper, with w_i(s)
//! in place of w(s)). Around averages as `anchor` says.

use rayon::prelude::*;

use super::anchor::Anchor;
use super::blocks::{Blocks, Piece};
use super::fitted::Poul;
use super::own_mixtures::{OwnMixtures, distance_by_context};
use super::params::{Loss, MemberRows};
use super::reference::{OwnNet, Part, Reference};
use crate::effect::{Scorer, Scores};
use crate::net::{Block, Prepared, RowSource, Workspace};
use crate::nuisance::OutcomeModels;
use crate::policy::PolicySet;
use crate::{Error, Result};

/// Scores some policies against one, for rows with exposures.
pub(super) struct OwnScorer<'m> {
    /// g of each member.
    members: Vec<Prepared<'m>>,
    /// h by treatment net and member.
    nets: Vec<Vec<OwnNet<'m>>>,
    mixtures: OwnMixtures,
    /// By target and context, how far it is from the policy compared with.
    distances: Vec<Vec<f64>>,
    /// By outcome.
    links: Vec<OwnLink<'m>>,
    width: usize,
    n_features: usize,
    n_contexts: usize,
    /// b(x) of the logistic outcomes.
    baseline: Option<&'m OutcomeModels>,
    in_pairs: bool,
    notes: Vec<String>,
}

/// How g and h of one outcome become effects.
struct OwnLink<'m> {
    /// The treatment net.
    net: usize,
    /// The outcome's unit.
    unit: f64,
    anchor: Option<&'m Anchor>,
    /// By member and target, what a unit of a row's own distance adds, in standard units; none without averages.
    offsets: Vec<Vec<f64>>,
    /// By target, the standard error of its average for a unit of distance, in the outcome's units.
    errors: Vec<f64>,
    /// h(0) of each member, where effects are differences of probabilities.
    at_rest: Vec<Vec<f32>>,
}

impl Poul {
    /// Gets ready to score the chosen policies, the last of which is compared with. `policies` are under mean exposures.
    pub(super) fn own_scorer<'m>(
        &'m self,
        reference: &'m Reference,
        policies: &PolicySet,
        chosen: &[usize],
    ) -> Result<OwnScorer<'m>> {
        let (&against, targets) =
            chosen.split_last().ok_or_else(|| Error::other("no policy to compare with"))?;
        let mixtures = OwnMixtures::new(self.space(), policies, chosen)?;
        let network = self.network();
        let of_member =
            |net, weights: &'m Vec<f32>| OwnNet::new(net, self.layout(), weights.as_slice(), &mixtures);
        let of_net = |net| self.weights().iter().map(|weights| of_member(net, weights)).collect();
        let nets: Vec<Vec<OwnNet<'m>>> = network.treatments.iter().map(of_net).collect::<Result<_>>()?;
        let distances: Vec<Vec<f64>> =
            targets.iter().map(|target| distance_by_context(policies, *target, against)).collect();
        let mean_distance = |target: usize| -> f64 {
            distances[target].iter().zip(&reference.mean).map(|(distance, mean)| distance * mean).sum()
        };
        // Per unit of a row's distance; policies that nobody tells apart have none.
        let per_distance = |target: usize, value: f64| {
            let mean = mean_distance(target);
            if mean > 0.0 { value / mean } else { 0.0 }
        };
        let mut links = Vec::new();
        for (outcome, unit) in self.scales().iter().enumerate() {
            let net = network.treatment_of(outcome);
            let anchor = self.anchors().get(outcome);
            let mut link = OwnLink {
                net,
                unit: *unit,
                anchor,
                offsets: Vec::new(),
                errors: Vec::new(),
                at_rest: Vec::new(),
            };
            if self.model_params().loss == Loss::Logistic {
                link.at_rest = nets[net].iter().map(OwnNet::at_rest).collect::<Result<_>>()?;
            } else if let Some(anchor) = anchor {
                let averages = anchor.average.averages(policies, targets, against, false)?.estimates;
                let offsets = |(member, own): (usize, &OwnNet<'m>)| -> Result<Vec<f64>> {
                    let along = |g: f64, mass: f64, k: usize| anchor.along(member, g, mass, k);
                    let means =
                        reference.mean_effects(own, &mixtures, chosen.len(), (member, outcome), &along)?;
                    let own = averages.iter().zip(means).enumerate();
                    Ok(own.map(|(target, (own, mean))| per_distance(target, own.effect - mean)).collect())
                };
                link.offsets = nets[net].par_iter().enumerate().map(offsets).collect::<Result<_>>()?;
                let error = |(target, own): (usize, &crate::effect::AverageEstimate)| {
                    per_distance(target, own.se * unit)
                };
                link.errors = averages.iter().enumerate().map(error).collect();
            }
            links.push(link);
        }
        let members = self.weights().iter().enumerate();
        let members = members.map(|(member, weights)| Prepared::new(self.layout(), weights, network, member));
        let mut notes = mixtures.mixtures.notes.clone();
        notes.extend(reference.unmet().map(|context| {
            format!("no training row met the context `{context}`: what policies do there counts as nothing")
        }));
        Ok(OwnScorer {
            members: members.collect::<Result<_>>()?,
            nets,
            distances,
            links,
            width: network.width(),
            n_features: crate::effect::EffectModel::n_features(self),
            n_contexts: reference.n_contexts(),
            baseline: self.baseline(),
            in_pairs: self.training_params().member_rows == MemberRows::Half,
            notes,
            mixtures,
        })
    }
}

impl<'m> OwnScorer<'m> {
    /// What a unit of a row's own distance adds to the first target, in the outcome's units, the mean over members.
    pub(super) fn offset(&self, outcome: usize) -> f64 {
        let link = &self.links[outcome];
        let sum: f64 = link.offsets.iter().filter_map(|own| own.first()).sum();
        sum * link.unit / link.offsets.len().max(1) as f64
    }

    pub(super) fn net(&self, outcome: usize, member: usize) -> &OwnNet<'m> {
        &self.nets[self.links[outcome].net][member]
    }

    pub(super) fn mixtures(&self) -> &OwnMixtures {
        &self.mixtures
    }
}

impl Scorer for OwnScorer<'_> {
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores> {
        let has_exposure =
            |row: usize| x.exposure(row).is_some_and(|exposure| exposure.len() == self.n_contexts);
        if !(0..x.n_rows()).all(has_exposure) {
            let error = Error::usage("the model goes by how much each row meets every context");
            return Err(error.hint("give the exposure columns that it was fitted with"));
        }
        let blocks = Blocks {
            x,
            n_features: self.n_features,
            n_outcomes: self.links.len(),
            n_targets: self.distances.len(),
            baseline: self.baseline,
            spread,
        };
        blocks.fill(|(block, workspace, gains): &mut (Block, Workspace, Vec<f32>), baseline, piece| {
            block.read(x, piece.first_row, piece.n_rows);
            self.fill(x, block, workspace, gains, baseline, piece)
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

impl OwnScorer<'_> {
    fn fill(
        &self,
        x: &dyn RowSource,
        block: &Block,
        workspace: &mut Workspace,
        gains: &mut Vec<f32>,
        baseline: Option<&[f32]>,
        piece: Piece<'_>,
    ) -> Result<()> {
        let (n_targets, n_outcomes) = (self.distances.len(), self.links.len());
        let Piece { first_row, n_rows, mut means, mut spreads } = piece;
        let exposure = |row: usize| x.exposure(first_row + row).unwrap_or(&[]);
        let distance = |row: usize, target: usize| -> f64 {
            let own = exposure(row).iter().zip(&self.distances[target]);
            own.map(|(exposure, distance)| f64::from(*exposure) * distance).sum()
        };
        let distances: Vec<f64> =
            (0..n_rows * n_targets).map(|i| distance(i / n_targets, i % n_targets)).collect();
        // By outcome and member, rows × targets.
        let mut effects = vec![vec![vec![0.0_f32; n_rows * n_targets]; self.members.len()]; n_outcomes];
        for (member, prepared) in self.members.iter().enumerate() {
            prepared.outputs(block, workspace, self.width * n_outcomes, gains)?;
            for (net, of_member) in self.nets.iter().enumerate() {
                let served: Vec<usize> = (0..n_outcomes).filter(|own| self.links[*own].net == net).collect();
                of_member[member].each_row(
                    Part::Whole,
                    &self.mixtures,
                    n_rows,
                    n_targets + 1,
                    &exposure,
                    &mut |row, h| {
                        for outcome in &served {
                            let g = &gains[(row * n_outcomes + outcome) * self.width..][..self.width];
                            let level = baseline.map(|own| own[(first_row + row) * n_outcomes + outcome]);
                            let distances = &distances[row * n_targets..][..n_targets];
                            let effects = &mut effects[*outcome][member][row * n_targets..][..n_targets];
                            self.links[*outcome].effects(member, g, h, level, distances, effects);
                        }
                    },
                )?;
            }
        }
        for (outcome, effects) in effects.iter().enumerate() {
            let n_members = effects.len() as f64;
            let value = |member: &Vec<f32>, i: usize| f64::from(member[i]);
            for (i, mean) in means[outcome].iter_mut().enumerate() {
                *mean = (effects.iter().map(|own| value(own, i)).sum::<f64>() / n_members) as f32;
            }
            let Some(spread) = spreads.get_mut(outcome) else { continue };
            let errors = &self.links[outcome].errors;
            for (i, spread) in spread.iter_mut().enumerate() {
                // Pairs: the mean of (a − b)²/4. Otherwise the standard deviation over members.
                let square: f64 = match self.in_pairs {
                    true => {
                        effects
                            .chunks_exact(2)
                            .map(|pair| (value(&pair[0], i) - value(&pair[1], i)).powi(2))
                            .sum::<f64>()
                            * 0.5
                            / n_members
                    }
                    false => {
                        let mean = f64::from(means[outcome][i]);
                        let squares = effects.iter().map(|own| (value(own, i) - mean).powi(2));
                        squares.sum::<f64>() / (n_members - 1.0).max(1.0)
                    }
                };
                // Members agree on the average, whose own error comes on top.
                let error = errors.get(i % n_targets).map_or(0.0, |error| error * distances[i]);
                *spread = (square + error * error).sqrt() as f32;
            }
        }
        Ok(())
    }
}

impl OwnLink<'_> {
    /// Effects of a row by one member, from h of the targets and of the policy compared with.
    fn effects(
        &self,
        member: usize,
        g: &[f32],
        h: &[f32],
        level: Option<f32>,
        distances: &[f64],
        effects: &mut [f32],
    ) {
        let d = g.len();
        let against = &h[effects.len() * d..][..d];
        if let Some(at_rest) = self.at_rest.get(member) {
            let chance = |h: &[f32]| {
                let own = g.iter().zip(h).zip(at_rest);
                let moved: f64 =
                    own.map(|((g, h), rest)| f64::from(*g) * (f64::from(*h) - f64::from(*rest))).sum();
                1.0 / (1.0 + (-f64::from(level.unwrap_or(0.0)) - moved).exp())
            };
            let of_against = chance(against);
            for (effect, h) in effects.iter_mut().zip(h.chunks_exact(d)) {
                *effect = (chance(h) - of_against) as f32;
            }
            return;
        }
        let along = |k: usize| match self.anchor {
            Some(anchor) => anchor.along(member, f64::from(g[k]), 1.0, k),
            None => f64::from(g[k]),
        };
        let g: Vec<f64> = (0..d).map(along).collect();
        for (target, (effect, h)) in effects.iter_mut().zip(h.chunks_exact(d)).enumerate() {
            let product = |k: usize| g[k] * (f64::from(h[k]) - f64::from(against[k]));
            let own: f64 = (0..d).map(product).sum();
            let offset = self.offsets.get(member).map_or(0.0, |own| own[target] * distances[target]);
            *effect = ((own + offset) * self.unit) as f32;
        }
    }
}
