//! A model measured on a table with all defaults.

use super::{EvaluationRequest, evaluate_model, fitted_roles};
use crate::data::Source;
use crate::evaluate::Evaluation;
use crate::model::Model;
use crate::{Progress, Result};

impl Model {
    /// Measures this model's effects on the rows of a table that has the columns it was fitted with: metrics, average effects
    /// with intervals, and whether to trust them. What else can be asked for is an [`EvaluationRequest`] of
    /// [`evaluate_model`].
    ///
    /// ```no_run
    /// # use poul::{Model, Silent, Source};
    /// let model = Model::load("model.poul")?;
    /// let evaluation = model.evaluate(&Source::open("test.parquet")?, &Silent)?;
    /// println!("{} rows", evaluation.rows);
    /// # Ok::<(), poul::Error>(())
    /// ```
    pub fn evaluate(&self, source: &Source, progress: &dyn Progress) -> Result<Evaluation> {
        let roles = fitted_roles(self, source, progress);
        let request = EvaluationRequest { roles, ..EvaluationRequest::default() };
        evaluate_model(self, None, source, &request.check()?, progress)
    }
}
