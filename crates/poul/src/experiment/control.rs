//! The policy that others are compared with: by its name, or as a combination of factorial columns in any order.

use crate::effect::Question;
use crate::policy::PolicySet;
use crate::{Error, Result};

/// The name of the control among the policies, as they write it; of a factorial experiment perhaps a combination that no row
/// has. Without one that is named, a policy called `control` is it.
pub(super) fn find(named: Option<&str>, policies: &PolicySet, factorial: bool) -> Result<Option<String>> {
    let Some(name) = named else {
        return Ok(policies.index("control").map(|_| "control".to_owned()));
    };
    if factorial && policies.index(name).is_none() {
        let (policies, control) = combination(name, policies)?;
        return Ok(Some(policies.name(control).to_owned()));
    }
    policies.require(name).map_err(|error| error.within("‹control›"))?;
    Ok(Some(name.to_owned()))
}

/// The control, and the policies with it among them.
pub(super) fn among(
    control: Option<&str>,
    policies: &PolicySet,
    factorial: bool,
) -> Result<(PolicySet, usize)> {
    let Some(name) = control else {
        return Err(Error::usage("no policy is called `control`")
            .hint("name the policy that others are compared with: ‹control=NAME›"));
    };
    if factorial && policies.index(name).is_none() {
        return combination(name, policies);
    }
    Ok((policies.clone(), policies.require(name).map_err(|error| error.within("‹control›"))?))
}

fn combination(name: &str, policies: &PolicySet) -> Result<(PolicySet, usize)> {
    let question = Question { policies: Vec::new(), against: Some(name.to_owned()) };
    let asked = question.ask(policies, true).map_err(|error| error.within("‹control›"))?;
    Ok((asked.policies, asked.against))
}
