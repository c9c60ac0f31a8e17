//! The options of every user: policies with their values and loads, in rows of different lengths.

use std::ops::Range;

use rayon::prelude::*;

use super::builder::OptionsBuilder;
use super::keep::Keep;
use crate::{Error, Result};

/// Users that one task builds. Part of nothing: blocks are appended in order.
const BLOCK: usize = 4096;

/// What users can be given. Made by an [`OptionsBuilder`], user by user.
///
/// A *load* is what a limit adds up over users and where less is better: a cost, or cost − r·gmv. Values and loads are
/// single precision, since they are predictions; whatever is summed is summed in double precision.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where each user's options begin, and the end.
    pub(super) starts: Vec<u32>,
    pub(super) policy: Vec<u16>,
    pub(super) value: Vec<f32>,
    /// Option after option.
    pub(super) loads: Vec<f32>,
    pub(super) n_loads: usize,
    pub(super) keep: Keep,
}

impl Options {
    /// The options of users by rows of a dense table: `values` has a number for each user and policy, user after user, `loads`
    /// has `n_loads` for each of these. `eligible` says which policies a user may have; all where there is none.
    pub fn dense(
        n_policies: usize,
        n_loads: usize,
        values: &[f32],
        loads: &[f32],
        eligible: Option<&[bool]>,
        keep: &Keep,
    ) -> Result<Self> {
        let n_users = values.len() / n_policies.max(1);
        let is_even = values.len() == n_users * n_policies && loads.len() == values.len() * n_loads;
        if !is_even || eligible.is_some_and(|eligible| eligible.len() != values.len()) {
            return Err(Error::input("values, loads and eligibility do not have the same shape"));
        }
        let policies = (0..n_policies).map(policy_index).collect::<Result<Vec<u16>>>()?;
        let blocks = (0..n_users.div_ceil(BLOCK)).into_par_iter().map(|block| {
            let mut builder = OptionsBuilder::new(n_loads, keep.clone())?;
            let (mut own_policies, mut own_values, mut own_loads) = (Vec::new(), Vec::new(), Vec::new());
            for user in block * BLOCK..n_users.min((block + 1) * BLOCK) {
                let cells = user * n_policies..(user + 1) * n_policies;
                let (user_values, user_loads) =
                    (&values[cells.clone()], &loads[cells.start * n_loads..cells.end * n_loads]);
                let Some(eligible) = eligible.map(|eligible| &eligible[cells.clone()]) else {
                    builder.user(&policies, user_values, user_loads)?;
                    continue;
                };
                own_policies.clear();
                own_values.clear();
                own_loads.clear();
                for k in (0..n_policies).filter(|k| eligible[*k]) {
                    own_policies.push(policies[k]);
                    own_values.push(user_values[k]);
                    own_loads.extend_from_slice(&user_loads[k * n_loads..(k + 1) * n_loads]);
                }
                builder.user(&own_policies, &own_values, &own_loads)?;
            }
            Ok(builder)
        });
        Self::concat(n_loads, keep, blocks.collect::<Result<Vec<_>>>()?)
    }

    /// The same users with the policies that `allowed` says, and of these what `keep` keeps.
    pub fn restricted(&self, allowed: &[bool], keep: &Keep) -> Result<Self> {
        let blocks = (0..self.n_users().div_ceil(BLOCK)).into_par_iter().map(|block| {
            let mut builder = OptionsBuilder::new(self.n_loads, keep.clone())?;
            let (mut policies, mut values, mut loads) = (Vec::new(), Vec::new(), Vec::new());
            for user in block * BLOCK..self.n_users().min((block + 1) * BLOCK) {
                policies.clear();
                values.clear();
                loads.clear();
                for option in self.of(user) {
                    if allowed.get(usize::from(self.policy[option])).copied().unwrap_or(false) {
                        policies.push(self.policy[option]);
                        values.push(self.value[option]);
                        loads.extend_from_slice(self.loads(option));
                    }
                }
                builder.user(&policies, &values, &loads)?;
            }
            Ok(builder)
        });
        Self::concat(self.n_loads, keep, blocks.collect::<Result<Vec<_>>>()?)
    }

    fn concat(n_loads: usize, keep: &Keep, blocks: Vec<OptionsBuilder>) -> Result<Self> {
        let mut whole = OptionsBuilder::new(n_loads, keep.clone())?;
        for block in blocks {
            whole.append(block)?;
        }
        Ok(whole.finish())
    }

    /// How many users there are.
    pub(crate) fn n_users(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many options all users have together.
    pub(crate) fn n_options(&self) -> usize {
        self.policy.len()
    }

    /// How many loads an option has.
    pub(crate) fn n_loads(&self) -> usize {
        self.n_loads
    }

    /// The options of a user.
    pub fn of(&self, user: usize) -> Range<usize> {
        self.starts[user] as usize..self.starts[user + 1] as usize
    }

    /// The user of an option.
    pub fn user(&self, option: usize) -> usize {
        self.starts.partition_point(|start| *start as usize <= option) - 1
    }

    /// The policy of an option.
    pub fn policy(&self, option: usize) -> u16 {
        self.policy[option]
    }

    /// The value of an option.
    pub fn value(&self, option: usize) -> f64 {
        f64::from(self.value[option])
    }

    /// One load of an option.
    pub fn load(&self, option: usize, load: usize) -> f64 {
        f64::from(self.loads[option * self.n_loads + load])
    }

    /// The loads of an option.
    pub(crate) fn loads(&self, option: usize) -> &[f32] {
        &self.loads[option * self.n_loads..][..self.n_loads]
    }

    /// One more than the greatest policy that an option has.
    pub fn n_policies(&self) -> usize {
        self.policy.iter().max().map_or(0, |policy| usize::from(*policy) + 1)
    }
}

fn policy_index(policy: usize) -> Result<u16> {
    u16::try_from(policy).map_err(|_| Error::usage("an allocation can choose among 65,536 policies at most"))
}
