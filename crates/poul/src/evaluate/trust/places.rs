//! Policies beside each other: a map by h with distances, what stands behind each, and how far its effects can be from
//! its neighbour's.

use super::axes::TreatmentAxes;
use crate::Result;
use crate::effect::{Averages, Support};
use crate::evaluate::{PolicyAverage, PolicyPlace};
use crate::model::{Model, median_bound, median_row_bound, moved};
use crate::policy::PolicySet;

/// Where some policies of a set that holds the model's own lie. An atom is well seen from `min_rows` training rows on.
///
/// Averages are against the policy `against`, with intervals of the given level.
pub(crate) fn places(
    model: &Model,
    policies: &PolicySet,
    of: &[usize],
    against: usize,
    (min_rows, level): (u64, f64),
) -> Result<Vec<PolicyPlace>> {
    let manifest = model.manifest();
    let (policies, trained) = (&*model.weighted(policies), model.weighted(&manifest.policies));
    let support = Support::new(&trained, &manifest.policy_rows);
    let nearest: Vec<Option<(usize, f64)>> =
        of.iter().map(|policy| support.nearest_run(policies, *policy, 1).first().copied()).collect();
    let at = TreatmentAxes::map(model, policies, of)?;
    let mut places: Vec<PolicyPlace> = of
        .iter()
        .zip(model.support(policies, of))
        .zip(nearest.iter().zip(at))
        .map(|((policy, own), (nearest, at))| PolicyPlace {
            policy: own.policy,
            rows: own.rows,
            at,
            nearest: nearest.map(|(other, _)| policies.name(other).to_owned()),
            distance: nearest.map(|(_, distance)| distance),
            supported_share: support.supported_share(policies, *policy, min_rows),
            unseen_share: own.unseen_share,
            bound: Vec::new(),
            averages: Vec::new(),
        })
        .collect();
    let averages = model.effects().averages(policies, of, against, false)?;
    for (outcome, own) in averages.iter().flatten().enumerate() {
        for ((place, policy), own) in places.iter_mut().zip(of).zip(&own.estimates) {
            if *policy != against {
                place.averages.push(PolicyAverage {
                    outcome: model.effects().outcomes()[outcome].clone(),
                    effect: own.effect,
                    se: own.se,
                    interval: own.interval(level),
                });
            }
        }
    }
    let Some(net) = model.effects().policy_embedding() else { return Ok(places) };
    let others: Vec<usize> = of
        .iter()
        .zip(&nearest)
        .map(|(policy, nearest)| nearest.map_or(*policy, |(other, _)| other))
        .collect();
    let of_others = model.effects().averages(policies, &others, against, false)?;
    for outcome in 0..model.effects().outcomes().len() {
        // By how much averages differ is part of the bound.
        let apart = |number: usize| {
            let of = |averages: &Option<Vec<Averages>>| {
                averages.as_ref().map_or(0.0, |own| own[outcome].estimates[number].effect)
            };
            (of(&averages) - of(&of_others)).abs()
        };
        let h = net.embeddings(policies, of, outcome)?;
        let h_nearest = net.embeddings(policies, &others, outcome)?;
        for (number, place) in places.iter_mut().enumerate() {
            let pair = [of[number], others[number]];
            if let Some(bound) = median_row_bound(net, policies, pair, outcome)? {
                place.bound.push(bound);
                continue;
            }
            let by_member = moved(&h, &h_nearest, net.gains(outcome), [number, number], of.len());
            place.bound.extend(median_bound(net, outcome, &by_member).map(|bound| bound + apart(number)));
        }
    }
    Ok(places)
}
