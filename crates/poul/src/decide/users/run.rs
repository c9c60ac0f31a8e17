//! An allocation by limits: score users, solve, write what they get, value it.

use std::collections::BTreeMap;

use super::candidates::Candidates;
use super::curve::{AtBudget, CurvePlan, at_budgets};
use super::gathered::Gathered;
use super::given::Tally;
use super::groups::read_group_limits;
use super::inputs::AllocationInputs;
use super::limits::AskedLimit;
use super::prices::{Price, Prices};
use super::request::{AllocationRequest, ValidAllocationRequest};
use super::result::{Allocation, listed, plain};
use super::table::{AllocationTable, Batches, Given, Target};
use super::terms::{PlacedLimit, Terms};
use super::worth::Valuation;
use crate::data::Labels;
use crate::decide::allocate::{Keep, Options, Problem, Solution, choose_policies, solve};
use crate::{Error, Progress, Result};

/// What an allocation gives.
pub struct Allocated {
    /// What is told of it.
    pub allocation: Allocation,
    /// What decides single users in the same way.
    pub prices: Prices,
    /// The table, where it was asked for in memory.
    pub table: Option<Batches>,
}

/// Gives every user one policy so that the total of an outcome is as large as limits allow, and says what that is worth where
/// users have outcomes. `curve` asks for what other budgets would bring.
///
/// Users are read twice and never held; the table appears when all is done.
pub fn allocate(
    inputs: &AllocationInputs<'_>,
    request: &ValidAllocationRequest,
    curve: bool,
    target: Target<'_>,
    progress: &dyn Progress,
) -> Result<Allocated> {
    let ValidAllocationRequest { request, limits, seed } = request;
    let is_trained = inputs.check_training(request.force)?;
    let candidates = Candidates::choose(inputs.model, inputs.policies, request, progress)?;
    let of_groups = group_limits(inputs, request, &candidates)?;
    let mut terms = Terms::new(&candidates, request, limits, &of_groups)?;
    let columns = inputs.columns(request, &terms)?;
    let mut table = AllocationTable::create(target, inputs.users, &columns.ids, candidates.outcomes)?;
    let n_rows = inputs.users.n_rows();

    let valuation = Valuation::find(inputs, request, is_trained, progress);
    let keep = match request.at_most_policies {
        Some(_) => Keep::All,
        None => Keep::for_limits(&terms.solver_limits(0, |_| (0, 0)), terms.n_loads()),
    };
    let mut gathered = Gathered::new(&terms, keep, candidates.names.len())?;
    let users = inputs.scored(&candidates, &columns, request, &terms)?;
    let labels = users.each(("Scoring", n_rows), progress, |block, _| gathered.add(&block, &terms));
    let labels = labels.map_err(|error| inputs.locate(error))?;
    if request.group.is_some() {
        check_groups(&labels, &of_groups, progress).map_err(|error| inputs.locate(error))?;
        terms.keep_groups(|group| labels.code(group).is_some());
    }
    let n_users = gathered.n_users();
    let sizes = gathered.group_sizes(&labels);
    let of_group = |name: &str| labels.code(name).map_or((0, 0), |code| (code, sizes[code as usize]));
    let (options, group) = gathered.finish(&candidates)?;
    let problem = Problem { limits: terms.solver_limits(n_users as u64, of_group), group };
    let (options, used, note) = few_policies(options, &problem, request, &candidates, progress)?;
    let solution = solve(&options, &problem, progress)?;
    let budgets = match curve {
        true => {
            let plan = CurvePlan { points: request.points, with_policies: valuation.is_some() };
            at_budgets(&options, &problem, &terms, &solution, plan, progress)?
        }
        false => Vec::new(),
    };
    let prices: Vec<f64> = solution.limits.iter().map(|limit| limit.price).collect();
    let decided = Decided::new(&options, &solution);
    drop(options);

    let mut tally = Tally::new(&candidates, &terms, valuation.is_some());
    let mut n_before = 0;
    let users = inputs.scored(&candidates, &columns, request, &terms)?;
    let written = users.each(("Writing", n_rows), progress, |block, labels| {
        let given = decided.of(n_before, block.n_users());
        n_before += block.n_users();
        tally.add(&block, &given, labels);
        table.write(&block, &given, &candidates.names)
    });
    written.map_err(|error| inputs.locate(error))?;
    let mut allocation = tally.allocation((&request.maximize, request.risk), &prices, true);
    (allocation.bound, allocation.duality_gap) = (Some(solution.bound), Some(solution.gap));
    allocation.notes.extend(note);
    allocation.curve = budgets.iter().map(AtBudget::point).collect();
    if let (Some(valuation), Some(kept)) = (valuation, tally.take_kept()) {
        let spent = tally.spent();
        valuation.add(&mut allocation, &candidates, kept, (&budgets, spent), *seed, progress)?;
    }
    let names: Vec<String> = used.iter().map(|option| candidates.names[*option].clone()).collect();
    let prices = told_prices(inputs, request, &names, &terms, &prices, of_groups.keys());
    let table = table.finish()?;
    Ok(Allocated { allocation, prices, table })
}

/// The policies that may be in use, where only few may be: the options with these alone, and what is to be told.
fn few_policies(
    options: Options,
    problem: &Problem,
    request: &AllocationRequest,
    candidates: &Candidates<'_>,
    progress: &dyn Progress,
) -> Result<(Options, Vec<usize>, Option<String>)> {
    let all = (0..candidates.names.len()).collect();
    let Some(at_most) = request.at_most_policies else { return Ok((options, all, None)) };
    let found = choose_policies(&options, problem, &[0], at_most, progress)?;
    let mut allowed = vec![false; candidates.names.len()];
    allowed[0] = true;
    found.policies.iter().for_each(|policy| allowed[usize::from(*policy)] = true);
    let keep = Keep::for_limits(&problem.limits, options.n_loads());
    let used: Vec<usize> = (0..allowed.len()).filter(|option| allowed[*option]).collect();
    let names: Vec<String> = used[1..].iter().map(|option| candidates.names[*option].clone()).collect();
    let how = match found.is_exact {
        true => "every set of policies was looked at",
        false => "found by search: a set that was not looked at may be better",
    };
    let note = format!(
        "policies in use beside the control, at most {at_most}: {}; with all of them no more than {} of {} would be possible ({how})",
        listed(&names),
        plain(found.bound),
        request.maximize
    );
    Ok((options.restricted(&allowed, &keep)?, used, Some(note)))
}

/// What the solver decided, by option numbers of the candidates.
struct Decided {
    option: Vec<u16>,
    /// Users who get a second option, in their order: user, option, share.
    divided: Vec<(usize, u16, f64)>,
}

impl Decided {
    fn new(options: &Options, solution: &Solution) -> Self {
        let option = solution.choice.iter().map(|option| options.policy(*option as usize)).collect();
        let mut divided: Vec<(usize, u16, f64)> = solution
            .fractional
            .iter()
            .map(|own| (own.user, options.policy(own.option as usize), own.share))
            .collect();
        divided.sort_by_key(|own| own.0);
        Self { option, divided }
    }

    /// What the users from `first` on get.
    fn of(&self, first: usize, n_users: usize) -> Vec<Given> {
        let mut given = Vec::with_capacity(n_users + 1);
        let mut divided = self.divided.partition_point(|own| own.0 < first);
        for user in 0..n_users {
            let option = usize::from(self.option[first + user]);
            match self.divided.get(divided).filter(|own| own.0 == first + user) {
                None => given.push(Given { user, option, share: 1.0 }),
                Some((_, second, share)) => {
                    given.push(Given { user, option, share: 1.0 - share });
                    given.push(Given { user, option: usize::from(*second), share: *share });
                    divided += 1;
                }
            }
        }
        given
    }
}

fn group_limits(
    inputs: &AllocationInputs<'_>,
    request: &AllocationRequest,
    candidates: &Candidates<'_>,
) -> Result<BTreeMap<String, Vec<AskedLimit>>> {
    match (&request.group, inputs.group_budgets) {
        (Some(group), Some(table)) => read_group_limits(table, group, candidates.outcomes),
        (None, None) => Ok(BTreeMap::new()),
        (Some(_), None) => Err(Error::usage("groups have no limits of their own")
            .hint("give them in a table: ‹group_budgets=FILE›")),
        (None, Some(_)) => {
            Err(Error::usage("limits of groups need a column of groups").hint("name it: ‹group=COL›"))
        }
    }
}

/// Every group of users must be in the table; one of the table without users is told.
fn check_groups(
    labels: &Labels,
    limits: &BTreeMap<String, Vec<AskedLimit>>,
    progress: &dyn Progress,
) -> Result<()> {
    if let Some(name) = labels.names().iter().find(|name| !limits.contains_key(&***name)) {
        return Err(Error::input(format!("the group `{name}` has no row among the limits of groups"))
            .at("‹group_budgets›")
            .hint("add one; empty cells are no limit"));
    }
    for name in limits.keys().filter(|name| labels.code(name).is_none()) {
        progress.warn(&format!("no user is in the group `{name}`"));
    }
    Ok(())
}

fn told_prices<'g>(
    inputs: &AllocationInputs<'_>,
    request: &AllocationRequest,
    names: &[String],
    terms: &Terms,
    prices: &[f64],
    groups: impl Iterator<Item = &'g String>,
) -> Prices {
    // A policy that is not in use needs no price.
    let is_used = |limit: &&PlacedLimit| {
        limit.asked.policy().is_none_or(|policy| names.iter().any(|own| own == policy))
    };
    let priced = terms.limits.iter().zip(prices).filter(|(limit, _)| is_used(limit)).map(|(limit, price)| {
        Price { limit: limit.asked.clone(), of_group: limit.group.clone(), price: *price }
    });
    Prices {
        format: 0,
        poul: String::new(),
        maximize: request.maximize.clone(),
        control: names[0].clone(),
        policies: names[1..].to_vec(),
        risk: request.risk,
        eligible: request.eligible.clone().into_iter().filter(|(policy, _)| names.contains(policy)).collect(),
        group: request.group.clone(),
        groups: groups.cloned().collect(),
        prices: priced.collect(),
        trained_on: inputs.trained_on(),
    }
    .of()
}
