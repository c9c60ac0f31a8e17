//! What is asked of an evaluation: the flags of `poul evaluate` and the keywords of Python, by the same names.

use serde::{Deserialize, Serialize};

use super::effect_columns::EffectColumn;
use crate::data::{Budget, Roles};
use crate::evaluate::trust::{TrustParams, ValidTrustParams};
use crate::evaluate::{Bootstrap, CostPair, Params, ValidParams};
use crate::{Error, Result, Seed};

/// What to find out about predicted effects; [`check`](Self::check) makes it usable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationRequest {
    /// Which column is what. For a model, begin with [`fitted_roles`](super::fitted_roles()). Features are not looked at: a
    /// model has its own, and columns of effects need none.
    pub roles: Roles,
    /// Columns of predicted effects, where no model predicts them. Default: none.
    pub effects: Vec<EffectColumn>,
    /// Columns of true effects, where they are known. Default: none.
    pub truth: Vec<EffectColumn>,
    /// The policies to score. Default: every policy that the rows have, of a model those that it can score.
    pub policy: Vec<String>,
    /// The policy compared with. Default: the control.
    pub against: Option<String>,
    /// Whether a model may score policies on atoms that no training row carried, which count as zero. Default: false.
    pub allow_unseen: bool,
    /// Two outcomes to set against each other as the targeted share grows. Default: none.
    pub cost_curve: Option<CostPair>,
    /// Columns to average effects by: numbers in quarters, categories. Default: none.
    pub by: Vec<String>,
    /// Bootstrap draws for the intervals of metrics; 0 for none. Default: 200.
    pub draws: usize,
    /// Level of all intervals. Default: 0.9; between 0 and 1.
    pub level: f64,
    /// Bins of the calibration table, and groups by predicted effect. Default: 10; 2 to 1000.
    pub bins: usize,
    /// Whether a model's assumptions are checked, its policies mapped and its atoms' effects listed. Default: true.
    pub checks: bool,
    /// Fits of the model's learner on permuted treatment, beside one as it is. Default: 0.
    pub placebo: usize,
    /// Training rows from which an atom counts as well seen. Default: 100; at least 1.
    pub min_rows: u64,
    /// The root of all random streams. Default: 3407.
    pub seed: u64,
    /// Memory for encoded rows, and for the effects to measure. Default: half of the machine's.
    #[serde(skip)]
    pub budget: Budget,
    /// The command, for the record. Default: empty.
    pub command: String,
}

impl Default for EvaluationRequest {
    fn default() -> Self {
        let (Params { bootstrap, bins, .. }, validation) = (Params::default(), TrustParams::default());
        Self {
            roles: Roles::default(),
            effects: Vec::new(),
            truth: Vec::new(),
            policy: Vec::new(),
            against: None,
            allow_unseen: false,
            cost_curve: None,
            by: Vec::new(),
            draws: bootstrap.draws,
            level: bootstrap.level,
            bins,
            checks: true,
            placebo: validation.placebo,
            min_rows: 100,
            seed: 3407,
            budget: Budget::default(),
            command: String::new(),
        }
    }
}

/// An [`EvaluationRequest`] whose settings are in range and do not contradict each other.
#[derive(Clone, Debug)]
pub struct ValidEvaluationRequest {
    pub(super) request: EvaluationRequest,
    pub(super) params: ValidParams,
    /// None where no checks are asked for.
    pub(super) validation: Option<ValidTrustParams>,
}

impl ValidEvaluationRequest {
    /// Which column is what.
    pub fn roles(&self) -> &Roles {
        &self.request.roles
    }
}

impl EvaluationRequest {
    /// Checks what can be known before data are read.
    pub fn check(self) -> Result<ValidEvaluationRequest> {
        if self.placebo > 0 && !self.effects.is_empty() {
            return Err(Error::usage("a placebo needs a model, whose learner is fitted again")
                .hint("give a model before the data, or leave ‹placebo› out"));
        }
        if self.placebo > 0 && !self.checks {
            return Err(Error::usage("a placebo is one of the checks, which are left out")
                .hint("leave ‹placebo› out, or ask for the checks"));
        }
        if self.min_rows == 0 {
            return Err(Error::usage("`min_rows` is 0").hint("it must be at least 1"));
        }
        if self.roles.outcome.is_empty() {
            return Err(Error::usage("no outcome is named").hint("name one: ‹outcome=COL›"));
        }
        if let Some(CostPair { value, cost }) = &self.cost_curve
            && let Some(name) = [value, cost].into_iter().find(|name| !self.roles.outcome.contains(name))
        {
            return Err(Error::usage(format!("‹cost_curve›: `{name}` is not an outcome"))
                .hint(format!("name it as one too: ‹outcome={name}›")));
        }
        let (level, seed) = (self.level, Seed::new(self.seed));
        let params = Params {
            bootstrap: Bootstrap { draws: self.draws, level, seed },
            bins: self.bins,
            cost: self.cost_curve.clone(),
            ..Params::default()
        };
        let params = params.check()?;
        let validation = TrustParams { placebo: self.placebo, level, seed, ..TrustParams::default() };
        let validation = self.checks.then(|| validation.check()).transpose()?;
        Ok(ValidEvaluationRequest { request: self, params, validation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_outcome() -> EvaluationRequest {
        let roles = Roles { outcome: vec!["gmv".to_owned()], ..Roles::default() };
        EvaluationRequest { roles, ..EvaluationRequest::default() }
    }

    #[test]
    fn contradictions_are_told_before_data_are_read() {
        assert!(of_outcome().check().is_ok());
        let tau = EffectColumn { column: "tau".to_owned(), policy: None, outcome: None };
        let cost = CostPair { value: "gmv".to_owned(), cost: "cost".to_owned() };
        let wrong = [
            (EvaluationRequest::default(), "no outcome"),
            (EvaluationRequest { placebo: 1, effects: vec![tau], ..of_outcome() }, "needs a model"),
            (EvaluationRequest { placebo: 1, checks: false, ..of_outcome() }, "one of the checks"),
            (EvaluationRequest { min_rows: 0, ..of_outcome() }, "`min_rows` is 0"),
            (EvaluationRequest { cost_curve: Some(cost), ..of_outcome() }, "`cost` is not an outcome"),
            (EvaluationRequest { level: 90.0, ..of_outcome() }, "level"),
            (EvaluationRequest { bins: 1, ..of_outcome() }, "bins"),
        ];
        for (request, says) in wrong {
            let error = request.check().unwrap_err();
            assert_eq!(error.kind(), crate::Kind::Usage, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_request_is_read_by_the_names_of_the_flags() {
        let text = r#"{"roles": {"outcome": "gmv"}, "by": ["city"], "cost_curve": ["gmv", "cost"], "draws": 0,
            "effects": [{"column": "tau", "policy": "T1"}], "checks": false, "against": null}"#;
        let request: EvaluationRequest = serde_json::from_str(text).unwrap();
        assert_eq!((request.by.as_slice(), request.draws), (["city".to_owned()].as_slice(), 0));
        assert_eq!(request.effects[0].policy.as_deref(), Some("T1"));
        assert_eq!(request.cost_curve.map(|pair| pair.cost), Some("cost".to_owned()));
        let unknown = serde_json::from_str::<EvaluationRequest>(r#"{"drawz": 3}"#).unwrap_err();
        assert!(unknown.to_string().contains("drawz"), "{unknown}");
    }
}
