//! An allocation by prices that were found before: each user alone, row by row, as a server would.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::candidates::Candidates;
use super::given::{GroupLimits, Tally};
use super::inputs::AllocationInputs;
use super::limits::AskedLimit;
use super::prices::Prices;
use super::request::AllocationRequest;
use super::run::Allocated;
use super::scored::Block;
use super::table::{AllocationTable, Given, Target};
use super::terms::Terms;
use super::worth::Valuation;
use crate::data::Labels;
use crate::{Error, Progress, Result, Seed};

/// Gives every user the policy with the greatest value less what it adds to each limit times the limit's price.
///
/// Of `request` only ids, population, what is said of atoms never seen, and what concerns the value by outcomes hold: all else is
/// in `prices`. Users are read once.
pub fn allocate_by_prices(
    inputs: &AllocationInputs<'_>,
    prices: &Prices,
    request: &AllocationRequest,
    target: Target<'_>,
    progress: &dyn Progress,
) -> Result<Allocated> {
    check_alone(request)?;
    let request = AllocationRequest {
        maximize: prices.maximize.clone(),
        eligible: prices.eligible.clone(),
        group: prices.group.clone(),
        risk: prices.risk,
        policy: prices.policies.clone(),
        control: Some(prices.control.clone()),
        ..request.clone()
    };
    let is_trained = inputs.check_training(request.force)?;
    inputs.note_unlike(&prices.trained_on, progress);
    let candidates = Candidates::choose(inputs.model, inputs.policies, &request, progress)?;
    let mut of_all = Vec::new();
    let mut of_groups: BTreeMap<String, Vec<AskedLimit>> = BTreeMap::new();
    // In the order in which terms place them.
    let mut by_limit: Vec<f64> = Vec::new();
    for own in prices.prices.iter().filter(|own| own.of_group.is_none()) {
        of_all.push(own.limit.clone());
        by_limit.push(own.price);
    }
    let mut grouped: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for own in &prices.prices {
        if let Some(group) = &own.of_group {
            of_groups.entry(group.clone()).or_default().push(own.limit.clone());
            grouped.entry(group).or_default().push(own.price);
        }
    }
    by_limit.extend(grouped.into_values().flatten());
    let terms = Terms::new(&candidates, &request, &of_all, &of_groups)?;
    let columns = inputs.columns(&request, &terms)?;
    let mut table = AllocationTable::create(target, inputs.users, &columns.ids, candidates.outcomes)?;
    let valuation = Valuation::find(inputs, &request, is_trained, progress);
    let mut tally = Tally::new(&candidates, &terms, valuation.is_some());
    let mut limits = GroupLimits::new(&terms);
    let users = inputs.scored(&candidates, &columns, &request, &terms)?;
    let written = users.each(("Deciding", inputs.users.n_rows()), progress, |block, labels| {
        check_groups(labels, prices)?;
        let given = decide(&block, &terms, &by_limit, &mut limits, labels, candidates.names.len());
        tally.add(&block, &given, labels);
        table.write(&block, &given, &candidates.names)
    });
    written.map_err(|error| inputs.locate(error))?;
    let mut allocation = tally.allocation((&request.maximize, request.risk), &by_limit, false);
    if let (Some(valuation), Some(kept)) = (valuation, tally.take_kept()) {
        let seed = Seed::new(request.seed).child("allocate");
        let spent = tally.spent();
        valuation.add(&mut allocation, &candidates, kept, (&[], spent), seed, progress)?;
    }
    let table = table.finish()?;
    Ok(Allocated { allocation, prices: prices.clone(), table })
}

/// The best option of each user at the prices; the first of equals, so that whoever gains nothing keeps the control.
fn decide(
    block: &Block,
    terms: &Terms,
    prices: &[f64],
    limits: &mut GroupLimits,
    labels: &Labels,
    n_options: usize,
) -> Vec<Given> {
    // Before threads share the table.
    limits.look_up(&block.group, labels);
    let limits = &*limits;
    let net = |user: usize, option: usize| {
        let own = limits.known(block.group.get(user).copied());
        let paid = own
            .iter()
            .filter(|limit| prices[**limit] != 0.0)
            .map(|limit| prices[*limit] * terms.adds(&terms.limits[*limit], block, user, option));
        terms.value(block, user, option) - paid.sum::<f64>()
    };
    let best = |user: usize| {
        let mut best = (0, net(user, 0));
        for option in (1..n_options).filter(|option| terms.may_have(block, user, *option)) {
            let own = net(user, option);
            if own > best.1 {
                best = (option, own);
            }
        }
        Given { user, option: best.0, share: 1.0 }
    };
    (0..block.n_users()).into_par_iter().with_min_len(256).map(best).collect()
}

fn check_groups(labels: &Labels, prices: &Prices) -> Result<()> {
    let is_unknown = |name: &&std::sync::Arc<str>| !prices.groups.iter().any(|group| **group == ***name);
    match labels.names().iter().find(is_unknown) {
        Some(name) => Err(Error::input(format!("the prices know no group `{name}`"))
            .hint("find prices for it, or leave its rows out: ‹population=EXPR›")),
        None => Ok(()),
    }
}

/// Prices decide alone.
fn check_alone(request: &AllocationRequest) -> Result<()> {
    let given = [
        ("maximize", !request.maximize.is_empty()),
        ("budget", !request.budget.is_empty()),
        ("rate", !request.rate.is_empty()),
        ("cap", !request.cap.is_empty()),
        ("floor", !request.floor.is_empty()),
        ("eligible", !request.eligible.is_empty()),
        ("group", request.group.is_some()),
        ("at_most_policies", request.at_most_policies.is_some()),
        ("risk", request.risk.is_some()),
        ("policy", !request.policy.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(Error::usage(format!(
            "prices decide alone: ‹{name}› has no place beside them"
        ))
        .hint("leave it out, or name what is to be maximised and find new prices: ‹maximize=OUTCOME›")),
        None => Ok(()),
    }
}
