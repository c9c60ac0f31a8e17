//! Words that reports and tables share.

use poul::evaluate::AssignedPolicies;

/// Which rows, in a word or two.
pub fn policies_name(policies: AssignedPolicies) -> &'static str {
    match policies {
        AssignedPolicies::All => "all",
        AssignedPolicies::Seen => "seen in training",
        AssignedPolicies::New => "new",
    }
}
