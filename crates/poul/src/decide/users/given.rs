//! Who gets what, added up in the order of the table.

use std::collections::BTreeMap;

use super::candidates::Candidates;
use super::limits::AskedLimit;
use super::result::{Allocation, Constraint, PolicyShare};
use super::scored::Block;
use super::table::Given;
use super::terms::Terms;
use crate::data::Labels;

/// Sums over users.
pub(super) struct Tally<'a> {
    candidates: &'a Candidates<'a>,
    terms: &'a Terms,
    n_users: u64,
    /// By option: users, and the total of each outcome.
    users: Vec<f64>,
    totals: Vec<Vec<f64>>,
    /// By limit, and how many users it is about.
    used: Vec<f64>,
    concerned: Vec<u64>,
    counted: f64,
    /// What was spent and brought by each rate, apart.
    ratios: Vec<[f64; 2]>,
    limits_of: GroupLimits,
    /// By user: the option it gets most of, and the one it would get without limits; where they are kept.
    kept: Option<[Vec<u16>; 2]>,
}

impl<'a> Tally<'a> {
    /// Starts with no users. `keep` asks for what every user gets.
    pub(super) fn new(candidates: &'a Candidates<'a>, terms: &'a Terms, keep: bool) -> Self {
        let (n_options, n_limits) = (candidates.names.len(), terms.limits.len());
        Self {
            candidates,
            terms,
            n_users: 0,
            users: vec![0.0; n_options],
            totals: vec![vec![0.0; candidates.outcomes.len()]; n_options],
            used: vec![0.0; n_limits],
            concerned: vec![0; n_limits],
            counted: 0.0,
            ratios: vec![[0.0; 2]; n_limits],
            limits_of: GroupLimits::new(terms),
            kept: keep.then(Default::default),
        }
    }

    /// Adds the users of a block, each with what it gets, in order.
    pub(super) fn add(&mut self, block: &Block, given: &[Given], labels: &Labels) {
        for own in given {
            let Given { user, option, share } = *own;
            self.users[option] += share;
            for (outcome, total) in self.totals[option].iter_mut().enumerate() {
                *total += share * block.effect(outcome, user, option);
            }
            self.counted += share * self.terms.value(block, user, option);
            for limit in self.limits_of.each(block.group.get(user).copied(), labels) {
                let placed = &self.terms.limits[*limit];
                self.used[*limit] += share * self.terms.adds(placed, block, user, option);
                if let Some([spent, brought]) = self.terms.rate_parts(placed, block, user, option) {
                    self.ratios[*limit][0] += share * spent;
                    self.ratios[*limit][1] += share * brought;
                }
            }
        }
        for user in 0..block.n_users() {
            for limit in self.limits_of.each(block.group.get(user).copied(), labels) {
                self.concerned[*limit] += 1;
            }
        }
        self.n_users += block.n_users() as u64;
        if let Some([chosen, best]) = &mut self.kept {
            let mut most = vec![(0_u16, f64::NEG_INFINITY); block.n_users()];
            for own in given {
                if own.share > most[own.user].1 {
                    most[own.user] = (own.option as u16, own.share);
                }
            }
            chosen.extend(most.iter().map(|(option, _)| option));
            let n_options = self.users.len();
            best.extend((0..block.n_users()).map(|user| {
                let options = (0..n_options).filter(|option| self.terms.may_have(block, user, *option));
                let value = |option: &usize| self.terms.value(block, user, *option);
                // The first of equals: whoever gains nothing keeps the control.
                options
                    .fold((0, 0.0), |best, option| {
                        let value = value(&option);
                        if value > best.1 { (option as u16, value) } else { best }
                    })
                    .0
            }));
        }
    }

    /// What every user gets most of, and would get without limits.
    pub(super) fn take_kept(&mut self) -> Option<[Vec<u16>; 2]> {
        self.kept.take()
    }

    /// The allocation so far. `prices` has one for each limit; limits without amounts have no slack.
    pub(super) fn allocation(
        &self,
        request: (&str, Option<f64>),
        prices: &[f64],
        has_limits: bool,
    ) -> Allocation {
        let names = &self.candidates.names;
        let outcomes = self.candidates.outcomes;
        let totals = |totals: &[f64]| -> BTreeMap<String, f64> {
            outcomes.iter().cloned().zip(totals.iter().copied()).collect()
        };
        let mut policies: Vec<PolicyShare> = (0..names.len())
            .map(|option| PolicyShare {
                policy: names[option].clone(),
                users: self.users[option],
                share: self.users[option] / self.n_users.max(1) as f64,
                totals: totals(&self.totals[option]),
            })
            .collect();
        policies.sort_by(|a, b| b.users.total_cmp(&a.users));
        let sum = |outcome: usize| self.totals.iter().map(|own| own[outcome]).sum::<f64>();
        let sums: Vec<f64> = (0..outcomes.len()).map(sum).collect();
        let constraints = self.terms.limits.iter().enumerate().map(|(place, limit)| {
            let (used, unit) = match &limit.asked {
                AskedLimit::Budget { outcome, .. } => (Some(self.used[place]), outcome.as_str()),
                AskedLimit::Rate { cost, .. } => {
                    let [spent, brought] = self.ratios[place];
                    ((brought != 0.0).then(|| spent / brought), cost.as_str())
                }
                AskedLimit::Cap { .. } | AskedLimit::Floor { .. } => {
                    (Some(self.used[place].abs() / self.concerned[place].max(1) as f64), "users")
                }
            };
            let is_floor = matches!(limit.asked, AskedLimit::Floor { .. });
            let amount = has_limits.then(|| limit.asked.amount());
            let slack =
                amount.zip(used).map(|(limit, used)| if is_floor { used - limit } else { limit - used });
            Constraint {
                name: limit.name(),
                limit: amount,
                used,
                slack,
                price: prices.get(place).copied().unwrap_or(0.0),
                unit: unit.to_owned(),
                is_floor,
            }
        });
        let constraints = constraints.collect();
        let mut allocation = Allocation {
            users: self.n_users,
            maximize: request.0.to_owned(),
            control: names[0].clone(),
            risk: request.1,
            value: totals(&sums),
            constraints,
            counted: self.counted,
            bound: None,
            duality_gap: None,
            policies,
            curve: Vec::new(),
            evaluation: None,
            notes: Vec::new(),
            summary: String::new(),
        };
        allocation.summary = allocation.sentence(self.spent());
        allocation
    }

    /// The outcome that is spent: that of the first budget or rate.
    pub(super) fn spent(&self) -> Option<&'a str> {
        self.terms.limits.iter().find_map(|limit| limit.asked.spent())
    }
}

/// Which limits a user of a group is under.
pub(super) struct GroupLimits {
    of_all: Vec<usize>,
    by_name: BTreeMap<String, Vec<usize>>,
    by_code: Vec<Vec<usize>>,
}

impl GroupLimits {
    pub(super) fn new(terms: &Terms) -> Self {
        let mut of_all = Vec::new();
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, limit) in terms.limits.iter().enumerate() {
            match &limit.group {
                None => of_all.push(place),
                Some(group) => by_name.entry(group.clone()).or_default().push(place),
            }
        }
        for limits in by_name.values_mut() {
            limits.extend_from_slice(&of_all);
        }
        Self { of_all, by_name, by_code: Vec::new() }
    }

    /// Looks groups up, for [`known`](Self::known).
    pub(super) fn look_up(&mut self, groups: &[u32], labels: &Labels) {
        if let Some(last) = groups.iter().max() {
            self.each(Some(*last), labels);
        }
    }

    /// The limits of users with a group that was looked up before.
    pub(super) fn known(&self, group: Option<u32>) -> &[usize] {
        group.map_or(&self.of_all, |group| &self.by_code[group as usize])
    }

    /// The limits of users with a group.
    pub(super) fn each(&mut self, group: Option<u32>, labels: &Labels) -> &[usize] {
        let Some(group) = group else { return &self.of_all };
        while self.by_code.len() <= group as usize {
            let name = labels.name(self.by_code.len() as u32).unwrap_or_default();
            self.by_code.push(self.by_name.get(name).unwrap_or(&self.of_all).clone());
        }
        &self.by_code[group as usize]
    }
}
