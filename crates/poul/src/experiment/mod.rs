//! An experiment: a table, what its columns are, the policies that ran, the one others are compared with, and how rows got
//! theirs. Everything is resolved once, here, for whatever is done with it: check, fit, compare, tune, evaluate.
//!
//! | file | subject |
//! |---|---|
//! | `policies` | where the policies are defined |
//! | `control` | the policy that others are compared with |

mod control;
mod policies;

pub use policies::Policies;

use crate::check::{self, CheckSums, Params, Profile, SummedProfile};
use crate::data::{Columns, Design, Need, Roles, Source};
use crate::nuisance::StratumTable;
use crate::policy::PolicySet;
use crate::{Error, Progress, Result};

/// A table whose columns, policies, control and design are known.
///
/// ```
/// use poul::{Experiment, Roles, Silent, Source};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("users.csv");
/// # std::fs::write(&path, "policy,age,spend\ncontrol,30,1.0\ncoupon,40,2.5\ncoupon,20,0.5\n").unwrap();
/// # let path = path.to_str().unwrap();
/// let users = Source::open(path)?; // a file, a folder or a glob of Parquet, CSV or Arrow
/// let roles = Roles { outcome: vec!["spend".into()], ..Roles::default() };
/// let experiment = Experiment::open(&users, &roles, None, &Silent)?;
/// assert_eq!(experiment.policies().names(), ["control", "coupon"]);
/// assert_eq!(experiment.control(), Some("control"));
/// # Ok::<(), poul::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Experiment {
    source: Source,
    roles: Roles,
    columns: Columns,
    policies: PolicySet,
    control: Option<String>,
    strata_table: Option<Source>,
}

impl Experiment {
    /// Finds the columns that `roles` name in a table, the policies, and the control: as `roles` name it, or the policy
    /// called `control`, if there is one.
    ///
    /// `policies` are a [`PolicySet`], or `None` for those that the rows speak of; see [`Policies`] for more. Rows are read
    /// only where they tell the policies.
    pub fn open<'p>(
        source: &Source,
        roles: &Roles,
        policies: impl Into<Policies<'p>>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let columns = roles.check(source.schema(), Need::FIT).map_err(|error| source.locate(error))?;
        Self::resolve(source, roles, columns, policies.into(), progress)
    }

    /// As [`open`](Self::open), by columns that were found before.
    pub(crate) fn resolve(
        source: &Source,
        roles: &Roles,
        columns: Columns,
        policies: Policies<'_>,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let policies = policies.find(source, &columns, progress)?;
        let control = control::find(roles.control.as_deref(), &policies, columns.factorial)?;
        let columns = columns.with_contexts(&policies, source.schema());
        let mut columns = columns.map_err(|error| source.locate(error))?;
        columns.control.clone_from(&control);
        Ok(Self {
            source: source.clone(),
            roles: roles.clone(),
            columns,
            policies,
            control,
            strata_table: None,
        })
    }

    /// With a table of the assignment probabilities as they were designed: `stratum,policy,probability`. Without it, the
    /// shares within each stratum are taken.
    #[must_use]
    pub fn strata_table(mut self, table: Option<Source>) -> Self {
        self.strata_table = table;
        self
    }

    /// What there is to know of the data before anything is learned from them.
    pub fn profile(&self, params: &Params, progress: &dyn Progress) -> Result<Profile> {
        // A combination that no row has cannot be compared with.
        self.control_index()?;
        let profile = check::profile(&self.source, &self.columns, &self.policies, params, progress);
        profile.map_err(|error| self.source.locate(error))
    }

    /// Sums of no rows, for a check of rows that are never in one place. The table of this experiment has their columns, and need
    /// have no row.
    pub fn check_sums(&self) -> CheckSums {
        CheckSums::new(&self.columns, &self.policies)
    }

    /// Adds the rows of a table to sums.
    pub fn add_to(&self, sums: &mut CheckSums, source: &Source) -> Result<()> {
        sums.add(&self.columns, &self.policies, source)
    }

    /// What the sums of all rows tell. Of `params` the declared shares count alone.
    pub fn summed_profile(&self, sums: &CheckSums, params: &Params) -> Result<SummedProfile> {
        self.control_index()?;
        sums.profile(&self.columns, &self.policies, params)
    }

    /// The columns that are read of a table.
    pub fn columns_read(&self) -> Vec<&str> {
        self.columns.needed()
    }

    /// The table.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The roles of columns, as given.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The policies.
    pub fn policies(&self) -> &PolicySet {
        &self.policies
    }

    /// The policy that others are compared with, if there is one.
    pub fn control(&self) -> Option<&str> {
        self.control.as_deref()
    }

    /// How rows got their policies.
    pub fn design(&self) -> Design {
        self.columns.design
    }

    /// A digest of the table's content: see [`Source::fingerprint`].
    pub fn fingerprint(&self) -> Result<String> {
        self.source.fingerprint()
    }

    /// The roles as found in the table.
    pub(crate) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The table of strata, as given.
    pub(crate) fn strata_source(&self) -> Option<&Source> {
        self.strata_table.as_ref()
    }

    /// The control among the policies.
    pub(crate) fn control_index(&self) -> Result<Option<usize>> {
        let index = self.control.as_deref().map(|name| self.policies.require(name)).transpose();
        index.map_err(|error| error.within("‹control›"))
    }

    /// The control, and policies among which it is: it may be a combination that no row has.
    pub(crate) fn with_control(&self) -> Result<(PolicySet, usize)> {
        control::among(self.control.as_deref(), &self.policies, self.columns.factorial)
    }

    /// The probabilities of `policies` by stratum, where they are given as designed.
    pub(crate) fn designed_strata(&self, policies: &PolicySet) -> Result<Option<StratumTable>> {
        let Some(source) = &self.strata_table else { return Ok(None) };
        let columns = &self.columns;
        if !columns.propensity.is_empty() {
            let error = Error::usage("propensity columns and a table of strata exclude each other");
            return Err(error.hint("give ‹propensity› or ‹strata_table›, not both"));
        }
        if columns.design != Design::Stratified || columns.stratum.is_none() {
            let error = Error::usage("a table of strata is for a stratified design");
            return Err(error.hint("add ‹design=stratified› and ‹stratum=COL›"));
        }
        StratumTable::from_source(source, policies.names()).map(Some)
    }
}
