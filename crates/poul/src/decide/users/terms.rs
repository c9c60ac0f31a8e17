//! The request in numbers: what an option is worth to a user, what it adds to each limit, and who may have it.

use std::collections::BTreeMap;

use super::candidates::Candidates;
use super::limits::AskedLimit;
use super::request::AllocationRequest;
use super::scored::Block;
use crate::decide::allocate::{Adds, Limit};
use crate::stats::{normal_quantile, student_quantile};
use crate::{Error, Result};

/// What decides, in terms of the outcomes and options of the candidates.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The outcome whose total is to be large.
    pub(super) maximize: usize,
    loads: Vec<Load>,
    /// The limits, those of all users first.
    pub(super) limits: Vec<PlacedLimit>,
    /// By option, the number of the expression that says who may have it.
    eligible: Vec<Option<usize>>,
    /// The expressions.
    pub(super) expressions: Vec<String>,
    /// How many standard errors of caution; none where effects count as predicted.
    caution: Option<f64>,
}

/// What limits add up over users, beside users themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Load {
    Outcome(usize),
    /// cost − rate·value.
    Rate {
        cost: usize,
        value: usize,
        rate: f64,
    },
}

/// A limit, and of which group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlacedLimit {
    pub(super) asked: AskedLimit,
    /// The group's label; none for all users.
    pub(super) group: Option<String>,
    pub(super) adds: Adds,
}

impl Terms {
    /// Finds outcomes and policies, and whether effects have errors where caution is asked for.
    pub(super) fn new(
        candidates: &Candidates<'_>,
        request: &AllocationRequest,
        limits: &[AskedLimit],
        of_groups: &BTreeMap<String, Vec<AskedLimit>>,
    ) -> Result<Self> {
        let maximize = candidates.outcome(&request.maximize, "‹maximize›")?;
        let mut terms = Self {
            maximize,
            loads: Vec::new(),
            limits: Vec::new(),
            eligible: vec![None; candidates.names.len()],
            expressions: Vec::new(),
            caution: request.risk.map(|risk| caution(candidates, risk)).transpose()?,
        };
        for limit in limits {
            terms.place(candidates, limit, None)?;
        }
        for (group, limits) in of_groups {
            for limit in limits {
                terms.place(candidates, limit, Some(group.clone()))?;
            }
        }
        for (policy, expression) in &request.eligible {
            let option = candidates.option(policy, "‹eligible›")?;
            if option == 0 {
                return Err(Error::usage(format!("everybody may keep the control, `{policy}`"))
                    .at("‹eligible›")
                    .hint("name another policy, or leave rows out: ‹population=EXPR›"));
            }
            terms.eligible[option] = Some(terms.expressions.len());
            terms.expressions.push(expression.clone());
        }
        Ok(terms)
    }

    fn place(
        &mut self,
        candidates: &Candidates<'_>,
        asked: &AskedLimit,
        group: Option<String>,
    ) -> Result<()> {
        let option = |policy: &str, setting: &str| -> Result<u16> {
            let option = candidates.option(policy, setting)?;
            u16::try_from(option)
                .map_err(|_| Error::usage("an allocation can choose among 65,536 policies at most"))
        };
        let adds = match asked {
            AskedLimit::Budget { outcome, .. } => {
                let outcome = candidates.outcome(outcome, "‹budget›")?;
                Adds::Load(self.load(Load::Outcome(outcome)))
            }
            AskedLimit::Rate { cost, value, rate } => {
                let cost = candidates.outcome(cost, "‹rate›")?;
                let value = candidates.outcome(value, "‹rate›")?;
                Adds::Load(self.load(Load::Rate { cost, value, rate: *rate }))
            }
            AskedLimit::Cap { policy, .. } => Adds::Users(option(policy, "‹cap›")?),
            AskedLimit::Floor { policy, .. } => Adds::MinusUsers(option(policy, "‹floor›")?),
        };
        self.limits.push(PlacedLimit { asked: asked.clone(), group, adds });
        Ok(())
    }

    fn load(&mut self, load: Load) -> usize {
        let known = self.loads.iter().position(|own| *own == load);
        known.unwrap_or_else(|| {
            self.loads.push(load);
            self.loads.len() - 1
        })
    }

    /// How many loads an option has.
    pub(super) fn n_loads(&self) -> usize {
        self.loads.len()
    }

    /// Whether errors of effects are needed.
    pub(super) fn is_cautious(&self) -> bool {
        self.caution.is_some()
    }

    /// Whether a user may have an option.
    #[inline]
    pub(super) fn may_have(&self, block: &Block, user: usize, option: usize) -> bool {
        self.eligible[option].is_none_or(|expression| block.masks[expression][user])
    }

    /// What an option is worth to a user, as far as it is counted.
    #[inline]
    pub(super) fn value(&self, block: &Block, user: usize, option: usize) -> f64 {
        self.at_least(block, self.maximize, user, option)
    }

    /// A load of an option, as far as it is counted.
    #[inline]
    pub(super) fn load_of(&self, block: &Block, user: usize, option: usize, load: usize) -> f64 {
        match self.loads[load] {
            Load::Outcome(outcome) => self.at_most(block, outcome, user, option),
            Load::Rate { cost, value, rate } if rate >= 0.0 => {
                self.at_most(block, cost, user, option) - rate * self.at_least(block, value, user, option)
            }
            Load::Rate { cost, value, rate } => {
                self.at_most(block, cost, user, option) - rate * self.at_most(block, value, user, option)
            }
        }
    }

    /// What an option adds to a limit on a user of its group.
    #[inline]
    pub(super) fn adds(&self, limit: &PlacedLimit, block: &Block, user: usize, option: usize) -> f64 {
        match limit.adds {
            Adds::Load(load) => self.load_of(block, user, option, load),
            Adds::Users(own) => f64::from(u8::from(usize::from(own) == option)),
            Adds::MinusUsers(own) => -f64::from(u8::from(usize::from(own) == option)),
        }
    }

    /// What an option spends and brings of a rate, as far as it is counted.
    pub(super) fn rate_parts(
        &self,
        limit: &PlacedLimit,
        block: &Block,
        user: usize,
        option: usize,
    ) -> Option<[f64; 2]> {
        let Adds::Load(load) = limit.adds else { return None };
        let Load::Rate { cost, value, rate } = self.loads[load] else { return None };
        let brought = match rate >= 0.0 {
            true => self.at_least(block, value, user, option),
            false => self.at_most(block, value, user, option),
        };
        Some([self.at_most(block, cost, user, option), brought])
    }

    #[inline]
    fn at_least(&self, block: &Block, outcome: usize, user: usize, option: usize) -> f64 {
        let effect = block.effect(outcome, user, option);
        self.caution.map_or(effect, |z| effect - z * block.spread(outcome, user, option))
    }

    #[inline]
    fn at_most(&self, block: &Block, outcome: usize, user: usize, option: usize) -> f64 {
        let effect = block.effect(outcome, user, option);
        self.caution.map_or(effect, |z| effect + z * block.spread(outcome, user, option))
    }

    /// The limits as the solver takes them: `n_users` of all, and the code and users of a group.
    pub(super) fn solver_limits(&self, n_users: u64, of_group: impl Fn(&str) -> (u32, u64)) -> Vec<Limit> {
        let placed = self.limits.iter().map(|limit| {
            let (group, n_users) = match limit.group.as_deref().map(&of_group) {
                None => (None, n_users),
                Some((code, n_users)) => (Some(code), n_users),
            };
            let at_most = match &limit.asked {
                AskedLimit::Budget { amount, .. } => *amount,
                AskedLimit::Rate { .. } => 0.0,
                AskedLimit::Cap { share, .. } => share * n_users as f64,
                AskedLimit::Floor { share, .. } => -share * n_users as f64,
            };
            Limit { name: limit.setting(), adds: limit.adds, group, at_most }
        });
        placed.collect()
    }

    /// Leaves out the limits of groups without users.
    pub(super) fn keep_groups(&mut self, has_users: impl Fn(&str) -> bool) {
        self.limits.retain(|limit| limit.group.as_deref().is_none_or(&has_users));
    }
}

impl PlacedLimit {
    /// How messages call it: `--budget cost=100`, where a front end spells it.
    fn setting(&self) -> String {
        match &self.group {
            None => self.asked.setting(),
            Some(group) => format!("{} in `{group}`", self.asked.setting()),
        }
    }

    /// How results call it: `budget cost`, `cap T2 in Rome`.
    pub(super) fn name(&self) -> String {
        match &self.group {
            None => self.asked.name(),
            Some(group) => format!("{} in {group}", self.asked.name()),
        }
    }
}

/// Standard errors between an effect and its quantile.
fn caution(candidates: &Candidates<'_>, risk: f64) -> Result<f64> {
    if !candidates.scorer.has_spread() {
        return Err(Error::usage("the model does not know how sure its effects are").at("‹risk›").hint(
            "fit it with several members (‹members=6›), or decide by predicted effects: leave ‹risk› out",
        ));
    }
    let degrees = candidates.scorer.spread_freedom();
    let p = 1.0 - risk;
    Ok(degrees.map_or_else(|| normal_quantile(p), |degrees| student_quantile(p, degrees)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Scorer, Scores};
    use crate::net::RowSource;
    use crate::policy::PolicySet;

    /// Knows nothing but that it has a spread.
    struct Sure(bool);

    impl Scorer for Sure {
        fn score(&self, _: &dyn RowSource, _: bool) -> Result<Scores> {
            Ok(Scores::default())
        }

        fn has_spread(&self) -> bool {
            self.0
        }
    }

    fn terms(outcomes: &[String], request: AllocationRequest, spread: bool) -> Result<Terms> {
        let mut policies = PolicySet::builder();
        policies.add("control", "s", "none", 1.0).add("T1", "s", "a", 1.0).add("T2", "s", "b", 1.0);
        let candidates = Candidates {
            names: ["control", "T1", "T2"].map(String::from).to_vec(),
            outcomes,
            scorer: Box::new(Sure(spread)),
            policies: policies.build()?,
        };
        let request = request.check()?;
        Terms::new(&candidates, &request.request, &request.limits, &BTreeMap::new())
    }

    fn of(name: &str, amount: f64) -> BTreeMap<String, f64> {
        BTreeMap::from([(name.to_owned(), amount)])
    }

    /// Two users: gmv of T1 is 4 and 2, cost 1 and 3; T2 twice of it. Spread 1 in all.
    fn block() -> Block {
        let mean = vec![vec![4.0, 8.0, 2.0, 4.0], vec![1.0, 2.0, 3.0, 6.0]];
        let spread = vec![vec![1.0; 4]; 2];
        Block::of_scores(Scores { mean, spread }, 2, vec![vec![true, false]], Vec::new())
    }

    #[test]
    fn caution_counts_less_gain_and_more_cost() {
        let outcomes = ["gmv", "cost"].map(String::from);
        let request = AllocationRequest {
            maximize: "gmv".to_owned(),
            budget: of("cost", 10.0),
            rate: of("cost/gmv", 0.5),
            eligible: BTreeMap::from([("T2".to_owned(), "age > 3".to_owned())]),
            ..AllocationRequest::default()
        };
        let (plain, block) = (terms(&outcomes, request.clone(), true).unwrap(), block());
        assert_eq!((plain.n_loads(), plain.is_cautious()), (2, false));
        assert_eq!(plain.value(&block, 0, 2), 8.0);
        assert_eq!((plain.load_of(&block, 1, 1, 0), plain.load_of(&block, 1, 1, 1)), (3.0, 2.0));
        assert_eq!((plain.value(&block, 1, 0), plain.load_of(&block, 1, 0, 1)), (0.0, 0.0));
        assert!(
            plain.may_have(&block, 0, 2) && !plain.may_have(&block, 1, 2) && plain.may_have(&block, 1, 1)
        );
        let cautious =
            terms(&outcomes, AllocationRequest { risk: Some(0.1), ..request.clone() }, true).unwrap();
        let z = normal_quantile(0.9);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(cautious.value(&block, 0, 1), 4.0 - z));
        assert!(near(cautious.load_of(&block, 0, 1, 0), 1.0 + z));
        assert!(near(cautious.load_of(&block, 0, 1, 1), 1.0 + z - 0.5 * (4.0 - z)));
        assert_eq!(cautious.value(&block, 0, 0), 0.0);
        let error = terms(&outcomes, AllocationRequest { risk: Some(0.1), ..request }, false).unwrap_err();
        assert!(error.to_string().contains("does not know how sure"), "{error}");
    }

    #[test]
    fn shares_are_of_the_users_concerned() {
        let outcomes = ["gmv".to_owned()];
        let request = AllocationRequest {
            maximize: "gmv".to_owned(),
            cap: of("T1", 0.25),
            floor: of("T2", 0.1),
            ..AllocationRequest::default()
        };
        let terms = terms(&outcomes, request, false).unwrap();
        let limits = terms.solver_limits(80, |_| (0, 0));
        assert_eq!(limits.iter().map(|limit| limit.at_most).collect::<Vec<_>>(), [20.0, -8.0]);
        assert_eq!((limits[0].adds, limits[1].adds), (Adds::Users(1), Adds::MinusUsers(2)));
        assert_eq!((terms.limits[0].name(), limits[0].name.as_str()), ("cap T1".into(), "‹cap=T1=0.25›"));
        assert_eq!(terms.adds(&terms.limits[1], &block(), 0, 2), -1.0);
    }
}
