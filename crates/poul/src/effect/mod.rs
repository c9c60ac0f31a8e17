//! What learners return: something that scores any policy against any other on encoded rows, τ(x; t1, t0).
//!
//! This is the seam between learners and everything else. A learner takes [`ValidTrainingData`] and [`Settings`] and
//! gives [`Trained`]; the model file, the `effect` and `evaluate` commands and every later user see only
//! [`EffectModel`] and [`Scorer`].
//!
//! | file | subject |
//! |---|---|
//! | `training_data` | what a learner is given, checked |
//! | `settings` | what a user may set, by table of `poul.toml` |
//! | `wrong_setting` | what is wrong with a setting, in words |
//! | `averages` | average effects of policies, with their errors |
//! | `trained` | what a learner gives back: effects, history, notes |
//! | `exposed` | encoded rows with how much each meets every context |
//! | `embedding` | policies as points, and how far effects can differ between them |
//! | `support` | which atoms were seen, how far a policy is from those that were run |
//! | `beside` | names of policies where there is little room |
//! | `question` | which policies are asked for, by name or by combination |
//! | `own_contrast` | what a row's own policy does beyond what was assigned on average |
//! | `training_rows` | some rows of the training data |
//! | `policy_shift` | numbers added to the effects of policies |
//! | `table`, `layout` | effects of a whole table, streamed from file to file; its columns |
//! | `constant` | the simplest learner: differences of arm means |

#[doc(hidden)]
pub mod constant;

mod averages;
mod beside;
mod combination;
mod embedding;
mod exposed;
mod layout;
mod own_contrast;
mod policy_shift;
mod question;
mod settings;
mod support;
mod table;
mod trained;
mod training_data;
mod training_rows;
mod wrong_setting;

#[doc(inline)]
pub use crate::net::Epoch;
pub use question::Question;
pub use settings::Settings;
pub use support::{AtomSupport, PolicySupport};
pub use trained::Phase;

pub(crate) use policy_shift::PolicyShift;
pub(crate) use settings::NoSettings;
pub(crate) use training_rows::TrainingRows;
pub(crate) use wrong_setting::unknown_setting;

// For front ends, tests and benchmarks: no part of the interface for users.
#[doc(hidden)]
pub use crate::net::{Tensor, Tensors};
#[doc(hidden)]
pub use crate::nuisance::{BaselineRows, OutcomeColumn};
#[doc(hidden)]
pub use averages::{AverageEstimate, Averages};
#[doc(hidden)]
pub use beside::name_beside;
#[doc(hidden)]
pub use combination::combination;
#[doc(hidden)]
pub use embedding::{GainDeciles, PolicyEmbedding, RowBound, StabilityConstants};
#[doc(hidden)]
pub use exposed::ExposedRows;
#[doc(hidden)]
pub use own_contrast::{AssignedTable, PolicyColumn};
#[doc(hidden)]
pub use question::Asked;
#[doc(hidden)]
pub use support::Support;
#[doc(hidden)]
pub use table::EffectTable;
#[doc(hidden)]
pub use trained::Trained;
#[doc(hidden)]
pub use training_data::{GivenPropensity, TrainingData, ValidTrainingData};
#[doc(hidden)]
pub use wrong_setting::wrong_value;

use crate::Result;
use crate::net::RowSource;
use crate::policy::{Attributes, PolicySet};

/// Effects as a function of features and policies.
#[doc(hidden)]
pub trait EffectModel: Send + Sync {
    /// The outcomes, in the order of every [`Scores`].
    fn outcomes(&self) -> &[String];

    /// How many numbers an encoded row has.
    fn n_features(&self) -> usize;

    /// Whether an atom that no training row carried can be scored by what is known of its context and action.
    ///
    /// By default it cannot: only atoms that were seen can be.
    fn embeds(&self, context: &str, action: &str, attributes: &Attributes) -> bool {
        let _ = (context, action, attributes);
        false
    }

    /// Whether training can start from this model: see [`TrainingData::start`].
    ///
    /// By default it cannot.
    fn starts_training(&self) -> bool {
        false
    }

    /// Policies as points of a treatment net, for learners that have one.
    ///
    /// By default there is none.
    fn policy_embedding(&self) -> Option<&dyn PolicyEmbedding> {
        None
    }

    /// The average effects of `targets` against `against` over the training population by outcome, with their errors; with
    /// their covariances where `joint` asks for them. None for learners that do not know the errors of their averages.
    ///
    /// The mean of what a scorer gives over the training rows is just this average.
    fn averages(
        &self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
        joint: bool,
    ) -> Result<Option<Vec<Averages>>> {
        let _ = (policies, targets, against, joint);
        Ok(None)
    }

    /// By outcome the standard deviation of one row around its expected outcome, as it counts in [`averages`]: what is left of
    /// the noise of an experiment after the outcome model. None for learners that do not know it.
    ///
    /// [`averages`]: Self::averages
    fn row_deviations(&self) -> Option<Vec<f64>> {
        None
    }

    /// Gets ready to score `targets` against `against`, all indices into `policies`.
    ///
    /// `policies` holds the policies of the training data under their names, and perhaps others over the same
    /// contexts. Whether atoms may be unseen was decided before: what is unknown of them counts as zero.
    fn prepare<'m>(
        &'m self,
        policies: &PolicySet,
        targets: &[usize],
        against: usize,
    ) -> Result<Box<dyn Scorer + 'm>>;

    /// What the model file keeps besides [`tensors`](Self::tensors).
    fn manifest(&self) -> Result<serde_json::Value>;

    /// The numbers that the model file keeps.
    fn tensors(&self) -> Vec<Tensor<'_>>;
}

/// Effects of some policies against one, as a function of features.
#[doc(hidden)]
pub trait Scorer: Send + Sync {
    /// The effects for every row. `spread` asks for the standard deviation over members too, or for the standard error
    /// where members were fitted on halves of the rows.
    ///
    /// A row's effects depend on that row alone, to the last bit.
    fn score(&self, x: &dyn RowSource, spread: bool) -> Result<Scores>;

    /// Whether there is a spread: at least two members, or a standard error.
    fn has_spread(&self) -> bool;

    /// Degrees of freedom of the spread, where it is a standard error that few members tell; none where it is taken as
    /// known.
    fn spread_freedom(&self) -> Option<usize> {
        None
    }

    /// What the user should know about these policies, such as which other policy stands in for one.
    fn notes(&self) -> &[String] {
        &[]
    }
}

/// Effects in the units of each outcome.
#[derive(Clone, Debug, Default, PartialEq)]
#[doc(hidden)]
pub struct Scores {
    /// For each outcome, rows × targets, row after row: the mean over members.
    pub mean: Vec<Vec<f32>>,
    /// In the same shape the standard deviation over members, or a standard error; empty where it was not asked for.
    pub spread: Vec<Vec<f32>>,
}
