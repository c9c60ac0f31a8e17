//! Which actions a proposal may take, as they are given by context.

use std::collections::BTreeMap;

use crate::policy::PolicySet;
use crate::{Error, Kind, Result};

/// Which actions may be taken where.
pub(super) struct Allowed {
    by_context: Vec<Option<Vec<u32>>>,
}

impl Allowed {
    pub(super) fn new(policies: &PolicySet, given: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        let mut by_context = vec![None; policies.contexts().len()];
        let action = |name: &String| {
            policies.actions().iter().position(|own| own == name).map(|place| place as u32).ok_or_else(|| {
                let known = policies.actions().iter().map(String::as_str);
                Error::unknown(Kind::Usage, "action", name, "actions of the policies", known).at("allow")
            })
        };
        // What stands for all contexts comes first, so that those that are named have their own.
        let order = given
            .iter()
            .filter(|(name, _)| *name == "*")
            .chain(given.iter().filter(|(name, _)| *name != "*"));
        for (name, actions) in order {
            let actions = actions.iter().map(action).collect::<Result<Vec<u32>>>()?;
            if name == "*" {
                by_context.fill(Some(actions));
                continue;
            }
            let place = policies.contexts().iter().position(|own| own == name).ok_or_else(|| {
                let known = policies.contexts().iter().map(String::as_str);
                Error::unknown(Kind::Usage, "context", name, "contexts", known).at("allow")
            })?;
            by_context[place] = Some(actions);
        }
        Ok(Self { by_context })
    }

    /// Whether an action may be taken in a context.
    pub(super) fn is(&self, context: usize, action: u32) -> bool {
        self.by_context[context].as_ref().is_none_or(|own| own.contains(&action))
    }
}
