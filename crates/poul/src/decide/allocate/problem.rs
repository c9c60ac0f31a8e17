//! What an allocation must keep to.

use super::options::Options;
use crate::{Error, Result};

/// What is decided: each user gets one of its options so that the sum of values is the greatest that the limits allow.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// All are to hold.
    pub limits: Vec<Limit>,
    /// The group of each user, for limits on groups.
    pub group: Option<Vec<u32>>,
}

/// A sum over users that may not exceed an amount.
#[derive(Clone, Debug)]
pub struct Limit {
    /// How messages call it, with the setting behind it: `‹budget=cost=100›`.
    pub name: String,
    /// What is added up.
    pub adds: Adds,
    /// The group of users it is about; all users where there is none.
    pub group: Option<u32>,
    /// The greatest sum allowed. A sum that should be at least something is given with the opposite sign.
    pub at_most: f64,
}

/// What a limit adds up over users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// A load of the option that the user gets.
    Load(usize),
    /// 1 for each user who gets a policy: a cap.
    Users(u16),
    /// −1 for each user who gets a policy: a floor.
    MinusUsers(u16),
}

impl Problem {
    /// Checks limits and groups against the options.
    pub(super) fn check(&self, options: &Options) -> Result<()> {
        if self.group.as_ref().is_some_and(|group| group.len() != options.n_users()) {
            return Err(Error::other("there is not one group for each user"));
        }
        for limit in &self.limits {
            if limit.at_most.is_nan() || limit.at_most == f64::NEG_INFINITY {
                return Err(Error::usage(format!("{}: the amount is not a number", limit.name)));
            }
            if limit.group.is_some() && self.group.is_none() {
                return Err(Error::other(format!("{} is about a group, but users have none", limit.name)));
            }
            if matches!(limit.adds, Adds::Load(load) if load >= options.n_loads()) {
                return Err(Error::other(format!("{} is about a load that options do not have", limit.name)));
            }
        }
        Ok(())
    }

    /// Whether a limit is about a user.
    pub(super) fn concerns(&self, limit: &Limit, user: usize) -> bool {
        limit.group.is_none_or(|group| self.group.as_ref().is_some_and(|of| of[user] == group))
    }
}

impl Adds {
    /// The policy whose users are counted.
    pub(super) fn policy(self) -> Option<u16> {
        match self {
            Self::Load(_) => None,
            Self::Users(policy) | Self::MinusUsers(policy) => Some(policy),
        }
    }
}
