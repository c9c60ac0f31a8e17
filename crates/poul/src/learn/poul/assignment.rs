//! What the assignment of policies tells about e_h: π(t | x), or E[α_T | x] where π would be too much to estimate.

use super::centring::Assigned;
use super::expected_mixture::ExpectedMixtures;
use super::params::{Centring, Params};
use super::space::Mixtures;
use crate::effect::{Phase, ValidTrainingData};
use crate::nuisance::{Folds, OutcomeModels, PropensityFit, PropensityModels, PropensityOrigin};
use crate::{Result, Run};

/// The fitted assignment, and the centring it is for.
pub(super) struct AssignmentFit {
    known: Known,
    /// The centring, settled.
    pub(super) centring: Centring,
}

enum Known {
    /// π(t | x).
    Policies(Box<PropensityFit>),
    /// π(t | x), and the expected mixture that follows.
    Both(Box<PropensityFit>, ExpectedMixtures),
    /// E[α_T | x] alone.
    Mixtures(ExpectedMixtures),
}

impl AssignmentFit {
    /// The centring, settled, and whether it needs π(t | x): E[α_T | x] alone is enough where π would be learned for it.
    pub(super) fn centring(
        data: &ValidTrainingData<'_>,
        has_own_exposure: bool,
        params: &Params,
    ) -> (Centring, bool) {
        let is_learned = data.propensity_origin() == PropensityOrigin::Learned;
        let centring = params.model.centring;
        let centring = centring.settle(data.policies.len(), data.design, is_learned, has_own_exposure);
        (centring, !(is_learned && centring == Centring::Mixture))
    }

    /// Takes π, or fits what the centring needs in its place.
    pub(super) fn new(
        data: &ValidTrainingData<'_>,
        mixtures: &Mixtures,
        (propensity, centring): (Option<PropensityFit>, Centring),
        weight: Option<&[f32]>,
        folds: &Folds,
        run: Run<'_>,
    ) -> Result<Self> {
        let Some(fit) = propensity.map(Box::new) else {
            let run = run.child("expected mixture");
            let mixtures = ExpectedMixtures::fit(data, mixtures, weight, folds, run)?;
            return Ok(Self { known: Known::Mixtures(mixtures), centring });
        };
        if centring != Centring::Mixture {
            return Ok(Self { known: Known::Policies(fit), centring });
        }
        let mixtures = ExpectedMixtures::of_propensity(&fit.propensity, mixtures, data.n_rows());
        Ok(Self { known: Known::Both(fit, mixtures), centring })
    }

    /// What the loss takes.
    pub(super) fn assigned(&self) -> Assigned<'_> {
        match &self.known {
            Known::Policies(fit) => Assigned::Policies(&fit.propensity),
            Known::Both(_, mixtures) | Known::Mixtures(mixtures) => {
                Assigned::Mixtures { mass: &mixtures.mass, of_row: &mixtures.of_row }
            }
        }
    }

    /// π(t | x), where it was fitted.
    pub(super) fn propensity(&self) -> Option<&PropensityFit> {
        match &self.known {
            Known::Policies(fit) | Known::Both(fit, _) => Some(fit),
            Known::Mixtures(_) => None,
        }
    }

    /// How the networks were trained, fold by fold.
    pub(super) fn history(&self) -> Vec<Phase> {
        let models = self.propensity().into_iter().filter_map(|fit| fit.models.as_ref());
        let propensity = models.flat_map(PropensityModels::histories).enumerate();
        let propensity = propensity.map(|(fold, (epochs, best))| Phase {
            name: format!("propensity, fold {}", fold + 1),
            epochs: epochs.to_vec(),
            best: Some(best),
        });
        let models = match &self.known {
            Known::Mixtures(mixtures) => mixtures.models.as_ref(),
            Known::Policies(_) | Known::Both(..) => None,
        };
        let mixtures = models.into_iter().flat_map(OutcomeModels::folds).enumerate();
        let mixtures = mixtures.map(|(fold, model)| Phase {
            name: format!("expected mixture, fold {}", fold + 1),
            epochs: model.history().to_vec(),
            best: Some(model.best_epoch()),
        });
        propensity.chain(mixtures).collect()
    }

    /// What the user should know: that `auto` did not come to `exact`.
    pub(super) fn note(&self, n_policies: usize, asked: Centring) -> Option<String> {
        let name = match self.centring {
            Centring::Sampled => "sampled",
            Centring::Mixture => "mixture",
            _ => return None,
        };
        (asked == Centring::Auto).then(|| {
            format!(
                "{n_policies} policies are many: the policy embedding is centred by `{name}`, not `exact`, to keep \
                 training fast (`model.centring`)"
            )
        })
    }
}
