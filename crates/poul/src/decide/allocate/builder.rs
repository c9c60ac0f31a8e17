//! Options put together user by user, or in blocks on several threads.

use super::hull::Hull;
use super::keep::{Keep, undominated};
use super::options::Options;
use crate::{Error, Result};

/// Collects the options of users and keeps only those that can be of use.
///
/// Blocks of users may be built at the same time, a builder each, and [appended](Self::append) in order: the result is that of
/// one builder.
pub struct OptionsBuilder {
    options: Options,
    hull: Hull,
}

impl OptionsBuilder {
    /// A builder without users.
    pub fn new(n_loads: usize, keep: Keep) -> Result<Self> {
        if keep == Keep::Hull && n_loads != 1 {
            return Err(Error::other("a hull is kept of one load only"));
        }
        let options = Options {
            starts: vec![0],
            policy: Vec::new(),
            value: Vec::new(),
            loads: Vec::new(),
            n_loads,
            keep,
        };
        Ok(Self { options, hull: Hull::default() })
    }

    /// Adds a user with the policies that are open to it, the control among them: their values, and for each its loads.
    pub fn user(&mut self, policies: &[u16], values: &[f32], loads: &[f32]) -> Result<()> {
        let user = self.options.n_users();
        if policies.is_empty() {
            return Err(Error::input(format!("user {} has no policy to choose", user + 1)));
        }
        if values.len() != policies.len() || loads.len() != policies.len() * self.options.n_loads {
            return Err(Error::other("a user's policies, values and loads differ in number"));
        }
        if !(are_finite(values) && are_finite(loads)) {
            return Err(Error::input(format!("an effect of user {} is not a finite number", user + 1)));
        }
        let Self { options, hull } = self;
        let n_loads = options.n_loads;
        let mut keep = |k: usize| {
            options.policy.push(policies[k]);
            options.value.push(values[k]);
            // One by one: a copy of a load or two costs more than the loads.
            (k * n_loads..(k + 1) * n_loads).for_each(|place| options.loads.push(loads[place]));
        };
        match &options.keep {
            Keep::All => (0..policies.len()).for_each(keep),
            Keep::Hull => hull.of(values, loads).for_each(keep),
            Keep::Undominated { capped, floored } => {
                let kept = undominated(policies, values, loads, (capped, floored));
                kept.into_iter().for_each(&mut keep);
            }
        }
        let end = options.policy.len();
        options.starts.push(end_of(end)?);
        Ok(())
    }

    /// Adds the users of the next block.
    pub fn append(&mut self, block: Self) -> Result<()> {
        let (own, other) = (&mut self.options, block.options);
        let before = own.policy.len();
        end_of(before + other.policy.len())?;
        extend(&mut own.policy, &other.policy);
        extend(&mut own.value, &other.value);
        extend(&mut own.loads, &other.loads);
        let starts: Vec<u32> = other.starts[1..].iter().map(|start| before as u32 + start).collect();
        extend(&mut own.starts, &starts);
        Ok(())
    }

    /// How many users were added.
    pub(crate) fn n_users(&self) -> usize {
        self.options.n_users()
    }

    /// The options of all users.
    pub fn finish(mut self) -> Options {
        self.options.starts.shrink_to_fit();
        self.options.policy.shrink_to_fit();
        self.options.value.shrink_to_fit();
        self.options.loads.shrink_to_fit();
        self.options
    }
}

/// By bits, without a branch for each.
fn are_finite(numbers: &[f32]) -> bool {
    let greatest = numbers.iter().fold(0, |most: u32, number| most.max(number.abs().to_bits()));
    f32::from_bits(greatest).is_finite()
}

/// Grows by an eighth at a time, since what is collected may be most of the memory there is.
fn extend<T: Copy>(own: &mut Vec<T>, more: &[T]) {
    if own.capacity() - own.len() < more.len() {
        own.reserve_exact(more.len().max(own.len() / 8));
    }
    own.extend_from_slice(more);
}

fn end_of(n_options: usize) -> Result<u32> {
    u32::try_from(n_options).map_err(|_| {
        Error::input("users have more than four billion options together")
            .hint("allocate part of the users, or among fewer policies")
    })
}
