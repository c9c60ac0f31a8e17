//! What an allocation must keep to: budgets, rates, caps and floors, over all users or within a group.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One limit as it is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AskedLimit {
    /// The total of an outcome is at most an amount.
    Budget {
        /// The outcome.
        outcome: String,
        /// The amount.
        amount: f64,
    },
    /// The total of one outcome is at most so much of the total of another.
    Rate {
        /// The outcome that is limited.
        cost: String,
        /// The outcome it is measured by.
        value: String,
        /// The largest ratio.
        rate: f64,
    },
    /// At most a share of users get a policy.
    Cap {
        /// The policy.
        policy: String,
        /// The share.
        share: f64,
    },
    /// At least a share of users get a policy.
    Floor {
        /// The policy.
        policy: String,
        /// The share.
        share: f64,
    },
}

impl AskedLimit {
    /// How results call it, such as `rate cost/gmv`.
    pub fn name(&self) -> String {
        match self {
            Self::Budget { outcome, .. } => format!("budget {outcome}"),
            Self::Rate { cost, value, .. } => format!("rate {cost}/{value}"),
            Self::Cap { policy, .. } => format!("cap {policy}"),
            Self::Floor { policy, .. } => format!("floor {policy}"),
        }
    }

    /// The limit as a setting of a message.
    pub(super) fn setting(&self) -> String {
        match self {
            Self::Budget { outcome, amount } => format!("‹budget={outcome}={amount}›"),
            Self::Rate { cost, value, rate } => format!("‹rate={cost}/{value}={rate}›"),
            Self::Cap { policy, share } => format!("‹cap={policy}={share}›"),
            Self::Floor { policy, share } => format!("‹floor={policy}={share}›"),
        }
    }

    /// What is limited, as it was given.
    pub(super) fn amount(&self) -> f64 {
        match self {
            Self::Budget { amount, .. } => *amount,
            Self::Rate { rate, .. } => *rate,
            Self::Cap { share, .. } | Self::Floor { share, .. } => *share,
        }
    }

    /// The policy whose users are limited, where they are.
    pub(super) fn policy(&self) -> Option<&str> {
        match self {
            Self::Cap { policy, .. } | Self::Floor { policy, .. } => Some(policy),
            Self::Budget { .. } | Self::Rate { .. } => None,
        }
    }

    /// The outcome that is spent, where one is.
    pub(super) fn spent(&self) -> Option<&str> {
        match self {
            Self::Budget { outcome, .. } => Some(outcome),
            Self::Rate { cost, .. } => Some(cost),
            Self::Cap { .. } | Self::Floor { .. } => None,
        }
    }
}

/// Reads `COST/VALUE`.
pub(super) fn parse_rate(ratio: &str, rate: f64) -> Result<AskedLimit> {
    let parts = ratio.split_once('/').map(|(cost, value)| (cost.trim(), value.trim()));
    match parts {
        Some((cost, value)) if !cost.is_empty() && !value.is_empty() => {
            Ok(AskedLimit::Rate { cost: cost.to_owned(), value: value.to_owned(), rate })
        }
        _ => Err(Error::usage(format!("the rate `{ratio}` is not of the form COST/VALUE"))
            .hint("name two outcomes: ‹rate=cost/gmv=0.2›")),
    }
}
