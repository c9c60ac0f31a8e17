//! What is kept of users until all were seen: the options that can be of use, and groups.

use rayon::prelude::*;

use super::candidates::Candidates;
use super::scored::Block;
use super::terms::Terms;
use crate::data::Labels;
use crate::decide::allocate::{Keep, Options, OptionsBuilder};
use crate::{Error, Result};

/// Users whose options one task puts together.
const PART_USERS: usize = 4096;

/// The options of the users so far.
pub(super) struct Gathered {
    keep: Keep,
    builder: OptionsBuilder,
    /// The group of each user; empty without groups.
    group: Vec<u32>,
    /// How many users may have each option.
    n_eligible: Vec<u64>,
}

impl Gathered {
    pub(super) fn new(terms: &Terms, keep: Keep, n_options: usize) -> Result<Self> {
        let builder = OptionsBuilder::new(terms.n_loads(), keep.clone())?;
        Ok(Self { keep, builder, group: Vec::new(), n_eligible: vec![0; n_options] })
    }

    /// Adds the users of the next block.
    pub(super) fn add(&mut self, block: &Block, terms: &Terms) -> Result<()> {
        let (n_options, n_loads, keep) = (self.n_eligible.len(), terms.n_loads(), &self.keep);
        let part = |first: usize| {
            let mut builder = OptionsBuilder::new(n_loads, keep.clone())?;
            let mut n_eligible = vec![0; n_options];
            let (mut policies, mut values, mut loads) = (Vec::new(), Vec::new(), Vec::new());
            for user in first..block.n_users().min(first + PART_USERS) {
                policies.clear();
                values.clear();
                loads.clear();
                for option in (0..n_options).filter(|option| terms.may_have(block, user, *option)) {
                    n_eligible[option] += 1;
                    policies.push(option as u16);
                    values.push(terms.value(block, user, option) as f32);
                    loads.extend((0..n_loads).map(|load| terms.load_of(block, user, option, load) as f32));
                }
                builder.user(&policies, &values, &loads)?;
            }
            Ok((builder, n_eligible))
        };
        let starts: Vec<usize> = (0..block.n_users()).step_by(PART_USERS).collect();
        let parts: Vec<(OptionsBuilder, Vec<u64>)> =
            starts.into_par_iter().map(part).collect::<Result<_>>()?;
        for (builder, n_eligible) in parts {
            self.builder.append(builder)?;
            self.n_eligible.iter_mut().zip(n_eligible).for_each(|(all, own)| *all += own);
        }
        self.group.extend_from_slice(&block.group);
        Ok(())
    }

    /// How many users there are so far.
    pub(super) fn n_users(&self) -> usize {
        self.builder.n_users()
    }

    /// The users of each group, by code.
    pub(super) fn group_sizes(&self, labels: &Labels) -> Vec<u64> {
        let mut sizes = vec![0; labels.len()];
        self.group.iter().for_each(|group| sizes[*group as usize] += 1);
        sizes
    }

    /// The options and groups of all users; an error where nobody may have a candidate.
    pub(super) fn finish(self, candidates: &Candidates<'_>) -> Result<(Options, Option<Vec<u32>>)> {
        if let Some(option) = self.n_eligible.iter().position(|n| *n == 0) {
            let name = &candidates.names[option];
            return Err(Error::input(format!("nobody is eligible for `{name}`"))
                .at("‹eligible›")
                .hint("correct its expression, or leave the policy out: name the others with ‹policy›"));
        }
        let group = (!self.group.is_empty()).then_some(self.group);
        Ok((self.builder.finish(), group))
    }
}
