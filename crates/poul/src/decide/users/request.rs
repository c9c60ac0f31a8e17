//! What is asked of an allocation: the flags of `poul allocate` and the keywords of Python, by the same names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::limits::{AskedLimit, parse_rate};
use crate::data::Budget;
use crate::{Error, Result, Seed};

/// Who should get which policy; [`check`](Self::check) makes it usable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AllocationRequest {
    /// The outcome whose total is to be as large as possible. No default, unless prices are given.
    pub maximize: String,
    /// For an outcome, the most that its total may be. Default: none.
    pub budget: BTreeMap<String, f64>,
    /// For `COST/VALUE`, the most that the one total may be of the other: `cost/gmv` at most 0.2. Default: none.
    pub rate: BTreeMap<String, f64>,
    /// For a policy, the largest share of users that may get it. Default: none.
    pub cap: BTreeMap<String, f64>,
    /// For a policy, the smallest share of users that must get it. Default: none.
    pub floor: BTreeMap<String, f64>,
    /// For a policy, the expression that holds for users who may get it. Default: everybody may.
    pub eligible: BTreeMap<String, String>,
    /// The column whose groups have limits of their own, from a table beside this request. Default: none.
    pub group: Option<String>,
    /// How many policies may be in use, the control not counted. Default: as many as there are.
    pub at_most_policies: Option<usize>,
    /// Decide by this quantile of what is to be large and by its mirror of what is limited: 0.1 counts a gain only as far as
    /// nine chances in ten allow. Default: none, predicted effects as they are; above 0, at most 0.5.
    pub risk: Option<f64>,
    /// The policies to choose from, beside the control. Default: all.
    pub policy: Vec<String>,
    /// The policy that costs and brings nothing. Default: the model's control.
    pub control: Option<String>,
    /// Whether policies on atoms that no training row carried may be chosen. Default: false.
    pub allow_unseen: bool,
    /// Only rows for which this expression holds are users. Default: all rows.
    pub population: Option<String>,
    /// Columns that identify a user. Default: those the model was fitted with, or the row's number.
    pub id: Vec<String>,
    /// Level of all intervals. Default: 0.9; between 0 and 1.
    pub level: f64,
    /// Points of the curve of what budgets bring. Default: 20; 2 to 1000.
    pub points: usize,
    /// Whether the table that the model was fitted on may be used. Default: false.
    pub force: bool,
    /// Whether what the allocation is worth is found from outcomes, where users have them. Default: true.
    pub worth: bool,
    /// The root of all random streams. Default: 3407.
    pub seed: u64,
    /// Memory for what is kept of users, and for rows with outcomes. Default: half of the machine's.
    #[serde(skip)]
    pub memory: Budget,
}

impl Default for AllocationRequest {
    fn default() -> Self {
        Self {
            maximize: String::new(),
            budget: BTreeMap::new(),
            rate: BTreeMap::new(),
            cap: BTreeMap::new(),
            floor: BTreeMap::new(),
            eligible: BTreeMap::new(),
            group: None,
            at_most_policies: None,
            risk: None,
            policy: Vec::new(),
            control: None,
            allow_unseen: false,
            population: None,
            id: Vec::new(),
            level: 0.9,
            points: 20,
            force: false,
            worth: true,
            seed: 3407,
            memory: Budget::default(),
        }
    }
}

/// An [`AllocationRequest`] whose settings are in range and do not contradict each other.
#[derive(Clone, Debug)]
pub struct ValidAllocationRequest {
    pub(super) request: AllocationRequest,
    /// Limits over all users.
    pub(super) limits: Vec<AskedLimit>,
    pub(super) seed: Seed,
}

impl AllocationRequest {
    /// Checks what can be known before data are read.
    pub fn check(self) -> Result<ValidAllocationRequest> {
        if self.maximize.is_empty() {
            return Err(Error::usage("what is to be maximised?").hint("name an outcome: ‹maximize=gmv›"));
        }
        let mut limits = Vec::new();
        for (outcome, amount) in &self.budget {
            finite("budget", outcome, *amount)?;
            limits.push(AskedLimit::Budget { outcome: outcome.clone(), amount: *amount });
        }
        for (ratio, rate) in &self.rate {
            finite("rate", ratio, *rate)?;
            limits.push(parse_rate(ratio, *rate)?);
        }
        for (policy, share) in &self.cap {
            share_of("cap", policy, *share)?;
            limits.push(AskedLimit::Cap { policy: policy.clone(), share: *share });
        }
        for (policy, share) in &self.floor {
            share_of("floor", policy, *share)?;
            limits.push(AskedLimit::Floor { policy: policy.clone(), share: *share });
        }
        check_shares(&limits, "")?;
        if self.at_most_policies == Some(0) {
            return Err(Error::usage("‹at_most_policies› is 0: everybody would keep the control")
                .hint("it must be at least 1"));
        }
        if let Some(risk) = self.risk.filter(|risk| !(*risk > 0.0 && *risk <= 0.5)) {
            return Err(Error::usage(format!("‹risk› is {risk}"))
                .hint("it lies above 0 and is at most 0.5, which is no caution: ‹risk=0.1›"));
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(Error::usage(format!("intervals of level {}", self.level))
                .hint("a level lies between 0 and 1, such as 0.9"));
        }
        if !(2..=1000).contains(&self.points) {
            return Err(Error::usage(format!("a curve of {} points", self.points)).hint("take 2 to 1000"));
        }
        let seed = Seed::new(self.seed).child("allocate");
        Ok(ValidAllocationRequest { request: self, limits, seed })
    }
}

/// Floors that cannot all be met, or not under the caps; `place` says in which group.
pub(super) fn check_shares(limits: &[AskedLimit], place: &str) -> Result<()> {
    let mut total = 0.0;
    for limit in limits {
        let AskedLimit::Floor { policy, share } = limit else { continue };
        total += share;
        let cap = limits.iter().find_map(|other| match other {
            AskedLimit::Cap { policy: capped, share } if capped == policy => Some(*share),
            _ => None,
        });
        if let Some(cap) = cap.filter(|cap| cap < share) {
            let what = format!("`{policy}` must go to a share of at least {share} and at most {cap}{place}");
            return Err(Error::usage(what).hint("raise its ‹cap› or lower its ‹floor›"));
        }
    }
    if total > 1.0 + 1e-9 {
        return Err(Error::usage(format!("the floors sum to {total}{place}, more than all users"))
            .hint("every user gets one policy: lower a ‹floor›"));
    }
    Ok(())
}

fn finite(setting: &str, name: &str, amount: f64) -> Result<()> {
    if amount.is_finite() {
        return Ok(());
    }
    Err(Error::usage(format!("the {setting} of `{name}` is {amount}")).hint("give a finite number"))
}

pub(super) fn share_of(setting: &str, policy: &str, share: f64) -> Result<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(Error::usage(format!("the {setting} of `{policy}` is {share}")).hint("a share lies between 0 and 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_budget() -> AllocationRequest {
        let budget = BTreeMap::from([("cost".to_owned(), 10.0)]);
        AllocationRequest { maximize: "gmv".to_owned(), budget, ..AllocationRequest::default() }
    }

    fn of(policy: &str, share: f64) -> BTreeMap<String, f64> {
        BTreeMap::from([(policy.to_owned(), share)])
    }

    #[test]
    fn contradictions_are_told_before_data_are_read() {
        assert!(of_budget().check().is_ok());
        let floors = BTreeMap::from([("T1".to_owned(), 0.7), ("T2".to_owned(), 0.5)]);
        let wrong = [
            (AllocationRequest::default(), "what is to be maximised"),
            (AllocationRequest { budget: of("cost", f64::NAN), ..of_budget() }, "budget of `cost` is NaN"),
            (AllocationRequest { rate: of("cost", 0.2), ..of_budget() }, "COST/VALUE"),
            (AllocationRequest { rate: of("cost/", 0.2), ..of_budget() }, "COST/VALUE"),
            (AllocationRequest { cap: of("T1", 1.5), ..of_budget() }, "cap of `T1` is 1.5"),
            (AllocationRequest { floor: of("T1", -0.5), ..of_budget() }, "floor of `T1` is -0.5"),
            (AllocationRequest { floor: floors, ..of_budget() }, "floors sum to 1.2"),
            (AllocationRequest { floor: of("T1", 0.5), cap: of("T1", 0.2), ..of_budget() }, "at most 0.2"),
            (AllocationRequest { at_most_policies: Some(0), ..of_budget() }, "is 0"),
            (AllocationRequest { risk: Some(0.9), ..of_budget() }, "`risk` is 0.9"),
            (AllocationRequest { level: 90.0, ..of_budget() }, "level 90"),
            (AllocationRequest { points: 1, ..of_budget() }, "1 points"),
        ];
        for (request, says) in wrong {
            let error = request.check().unwrap_err();
            assert_eq!(error.kind(), crate::Kind::Usage, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_request_is_read_by_the_names_of_the_flags() {
        let text = r#"{"maximize": "gmv", "budget": {"cost": 1e6}, "rate": {"cost/gmv": 0.2}, "cap": {"T1": 0.5},
            "eligible": {"T1": "age > 30"}, "at_most_policies": 3, "risk": 0.1}"#;
        let request: AllocationRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.clone().check().unwrap().limits.len(), 3);
        assert_eq!(request.eligible["T1"], "age > 30");
        assert!(serde_json::from_str::<AllocationRequest>(r#"{"budgets": {}}"#).is_err());
    }
}
