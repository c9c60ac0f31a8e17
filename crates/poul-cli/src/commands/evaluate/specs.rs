//! `--effects`, `--truth` and `--cost-curve` as typed.

use poul::evaluate::CostPair;
use poul::evaluate::run::EffectColumn;
use poul::{Error, Result};

use crate::settings::split;

/// Reads `COL`, `POLICY=COL` and `OUTCOME:POLICY=COL`.
pub(super) fn effect_columns(entries: &[String], flag: &str) -> Result<Vec<EffectColumn>> {
    let parse = |entry: &String| {
        if !entry.contains('=') {
            return Ok(EffectColumn { column: entry.clone(), policy: None, outcome: None });
        }
        let (target, column) = split(entry, flag, "COL, POLICY=COL or OUTCOME:POLICY=COL")?;
        let (outcome, policy) = match target.split_once(':') {
            Some((outcome, policy)) => (Some(outcome.to_owned()), policy),
            None => (None, target),
        };
        Ok(EffectColumn { column: column.to_owned(), policy: Some(policy.to_owned()), outcome })
    };
    entries.iter().map(parse).collect()
}

/// Reads `VALUE,COST`.
pub(super) fn cost_pair(text: &str) -> Result<CostPair> {
    let (value, cost) = text.split_once(',').ok_or_else(|| {
        Error::usage(format!("--cost-curve: `{text}` is not of the form VALUE,COST"))
            .hint("write --cost-curve gmv,cost")
    })?;
    Ok(CostPair { value: value.trim().to_owned(), cost: cost.trim().to_owned() })
}
