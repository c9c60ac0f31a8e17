//! An allocation by limits: score users, solve, write what they get, value it.

use std::collections::BTreeMap;

use super::candidates::Candidates;
use super::curve::{CurvePlan, at_budgets};
use super::gathered::Gathered;
use super::given::Tally;
use super::groups::read_group_limits;
use super::inputs::AllocationInputs;
use super::limits::AskedLimit;
use super::prices::{Price, Prices};
use super::request::{AllocationRequest, ValidAllocationRequest};
use super::result::Allocation;
use super::table::{AllocationTable, Batches, Given, Target};
use super::terms::Terms;
use super::worth::Valuation;
use crate::data::Labels;
use crate::decide::allocate::{Keep, Options, Problem, Solution, solve};
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
    let solution = solved(&options, &problem, request, progress)?;
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
    allocation.curve = budgets.iter().map(|own| own.point()).collect();
    if let (Some(valuation), Some(kept)) = (valuation, tally.take_kept()) {
        let spent = tally.spent();
        valuation.add(&mut allocation, &candidates, kept, (&budgets, spent), *seed, progress)?;
    }
    let prices = told_prices(inputs, request, &candidates, &terms, &prices, of_groups.keys());
    let table = table.finish()?;
    Ok(Allocated { allocation, prices, table })
}

fn solved(
    options: &Options,
    problem: &Problem,
    request: &AllocationRequest,
    progress: &dyn Progress,
) -> Result<Solution> {
    match request.at_most_policies {
        None => solve(options, problem, progress),
        Some(_) => Err(Error::other("at most so many policies is not solved yet")),
    }
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
    candidates: &Candidates<'_>,
    terms: &Terms,
    prices: &[f64],
    groups: impl Iterator<Item = &'g String>,
) -> Prices {
    let priced = terms.limits.iter().zip(prices).map(|(limit, price)| Price {
        limit: limit.asked.clone(),
        of_group: limit.group.clone(),
        price: *price,
    });
    Prices {
        format: 0,
        poul: String::new(),
        maximize: request.maximize.clone(),
        control: candidates.names[0].clone(),
        policies: candidates.names[1..].to_vec(),
        risk: request.risk,
        eligible: request.eligible.clone(),
        group: request.group.clone(),
        groups: groups.cloned().collect(),
        prices: priced.collect(),
        trained_on: inputs.trained_on(),
    }
    .of()
}
