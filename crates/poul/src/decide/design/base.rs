//! Where a search starts: the policy that is changed, and the best that was run.

use super::params::ValidDesignParams;
use super::users::Users;
use super::valuation::{Valuation, Valued};
use crate::effect::Support;
use crate::policy::PolicySet;
use crate::{Error, Result};

/// The policy that is changed and the one that improvements are over.
pub(super) struct Start {
    pub(super) base: usize,
    pub(super) valued: Valued,
    /// The best policy that was run, within the budgets.
    pub(super) incumbent: String,
}

/// Finds them among the model's policies, of which `weighted` are the same under the weights of averages.
pub(super) fn start(
    valuation: &Valuation<'_>,
    params: &ValidDesignParams,
    (weighted, support): (&PolicySet, &Support<'_>),
    users: Option<&Users<'_>>,
) -> Result<Start> {
    let policies = &valuation.model.manifest().policies;
    let named =
        params.given.from.as_deref().map(|name| policies.require(name).map_err(|error| error.at("from")));
    let named = named.transpose()?;
    let mut known: Vec<usize> =
        (0..policies.len()).filter(|policy| support.policy_rows(policies.name(*policy)) > 0).collect();
    known.extend(named.filter(|policy| !known.contains(policy)));
    let valued = valuation.of(policies, &known, None, users)?;
    let is_run = |policy: usize| support.policy_rows(policies.name(policy)) > 0;
    let min_rows = params.given.min_rows;
    let is_seen = |policy: usize| support.supported_share(weighted, policy, min_rows) == 1.0;
    let best = |wanted: &dyn Fn(usize) -> bool| {
        let good = known
            .iter()
            .zip(&valued)
            .filter(|(policy, own)| own.is_affordable && is_run(**policy) && wanted(**policy));
        good.fold(None, |best: Option<(usize, &Valued)>, (policy, own)| match best {
            Some(best) if best.1.score >= own.score => Some(best),
            _ => Some((*policy, own)),
        })
    };
    let (base, own) = match named {
        Some(base) => {
            let place = known.iter().position(|policy| *policy == base).unwrap_or_default();
            if let Some(error) = over_budget(valuation, policies.name(base), &valued[place]) {
                return Err(error.hint("raise the ‹budget›, or start ‹from› a policy that keeps it"));
            }
            (base, &valued[place])
        }
        None => match (best(&is_seen), best(&|_| true)) {
            (Some(found), _) => found,
            (None, Some(_)) => {
                let what = format!(
                    "no policy that was run has all its actions on {min_rows} training rows in their contexts"
                );
                return Err(Error::usage(what)
                    .hint("ask for fewer rows, ‹min_rows=20›, or say where to start: ‹from=NAME›"));
            }
            (None, None) => {
                let cheapest = known.iter().zip(&valued).find_map(|(policy, own)| {
                    over_budget(valuation, policies.name(*policy), own).map(|_| ())
                });
                let what = match cheapest {
                    Some(()) => "every policy that was run breaks the budget",
                    None => "no policy was run",
                };
                return Err(Error::usage(what)
                    .hint("raise the ‹budget›: it is what a policy may add to a user's outcome"));
            }
        },
    };
    let incumbent = best(&|_| true).map_or(base, |(policy, _)| policy);
    Ok(Start { base, valued: own.clone(), incumbent: policies.name(incumbent).to_owned() })
}

fn over_budget(valuation: &Valuation<'_>, name: &str, own: &Valued) -> Option<Error> {
    let (outcome, limit) = valuation.broken(&own.effects)?;
    let (adds, outcome) = (own.effects[outcome].effect, &valuation.model.effects().outcomes()[outcome]);
    Some(Error::usage(format!(
        "`{name}` itself adds {adds:.4} {outcome} for a user, more than the budget of {limit}"
    )))
}
