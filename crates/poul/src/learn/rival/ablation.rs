//! The method less one of its ideas, to see what the idea is worth: one setting is fixed, all others are the method's.

use serde_json::Value;

use crate::effect::{Settings, Trained, ValidTrainingData};
use crate::learn::Learner;
use crate::learn::poul;
use crate::{Error, Result, Run};

/// h is not centred.
pub(crate) const UNCENTRED: Learner = learner::<Uncentred>("poul without centring of h");
/// h is centred by a running mean over past batches.
pub(crate) const RUNNING_MEAN: Learner =
    learner::<RunningMean>("poul with Algorithm 1's running mean for e_h");
/// Nuisances are fitted on the rows they are used on.
pub(crate) const ONE_FOLD: Learner = learner::<OneFold>("poul without cross-fitting");
/// Atoms have no vectors of their own.
pub(crate) const ADDITIVE: Learner = learner::<Additive>("poul without vectors of the atoms' own");
/// ρ is linear.
pub(crate) const LINEAR: Learner = learner::<Linear>("poul with a linear rho");

/// A setting of the method that is fixed.
trait Ablation {
    /// The learner's name.
    const NAME: &'static str;
    /// Whether the setting is one of `[model]`, not of `[training]`.
    const IN_MODEL: bool;
    /// The setting.
    const SETTING: &'static str;

    /// What it is fixed at.
    fn value() -> Value;
}

macro_rules! ablation {
    ($kind:ident, $name:literal, $in_model:literal, $setting:literal, $value:expr) => {
        struct $kind;

        impl Ablation for $kind {
            const NAME: &'static str = $name;
            const IN_MODEL: bool = $in_model;
            const SETTING: &'static str = $setting;

            fn value() -> Value {
                Value::from($value)
            }
        }
    };
}

ablation!(Uncentred, "poul-uncentred", true, "centring", "none");
ablation!(RunningMean, "poul-running-mean", true, "centring", "running-mean");
ablation!(OneFold, "poul-k1", false, "folds", 1);
ablation!(Additive, "poul-additive", true, "embedding", "additive");
ablation!(Linear, "poul-linear", true, "rho_hidden", 0);

const fn learner<A: Ablation>(summary: &'static str) -> Learner {
    Learner { name: A::NAME, summary, settle: settle::<A>, train: train::<A>, load: poul::load }
}

fn settle<A: Ablation>(settings: &Settings) -> Result<Settings> {
    poul::settle(&fixed::<A>(settings)?)
}

/// Trains the method by the same streams, so that nothing else differs.
fn train<A: Ablation>(data: &ValidTrainingData<'_>, settings: &Settings, run: Run<'_>) -> Result<Trained> {
    poul::train(data, &fixed::<A>(settings)?, run)
}

/// The settings with the one that is fixed; giving it another value is a contradiction.
fn fixed<A: Ablation>(settings: &Settings) -> Result<Settings> {
    let mut settings = settings.clone();
    let (table, name) =
        if A::IN_MODEL { (&mut settings.model, "model") } else { (&mut settings.training, "training") };
    let given = table.insert(A::SETTING.to_owned(), A::value());
    match given.filter(|given| *given != A::value()) {
        Some(given) => {
            let what = format!("`{}` fixes `{name}.{}` at {}, not {given}", A::NAME, A::SETTING, A::value());
            Err(Error::usage(what).hint("leave the setting out, or take the learner `poul`"))
        }
        None => Ok(settings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_is_fixed_and_the_others_pass_through() {
        let mut settings = Settings::default();
        settings.model.insert("members".into(), 3.into());
        let settled = (ADDITIVE.settle)(&settings).unwrap();
        assert_eq!(settled.model["embedding"], "additive");
        assert_eq!(settled.model["members"], 3);
        assert_eq!((ADDITIVE.settle)(&settled).unwrap(), settled);
        let plain = poul::settle(&settings).unwrap();
        let changed = |table: fn(&Settings) -> &serde_json::Map<String, Value>| {
            table(&settled).iter().filter(|(name, value)| table(&plain)[*name] != **value).count()
        };
        assert_eq!((changed(|s| &s.model), changed(|s| &s.training)), (1, 0));
        settings.model.insert("embedding".into(), "lookup".into());
        let error = (ADDITIVE.settle)(&settings).unwrap_err().to_string();
        assert_eq!(error, "`poul-additive` fixes `model.embedding` at \"additive\", not \"lookup\"");
        assert_eq!((ONE_FOLD.settle)(&Settings::default()).unwrap().training["folds"], 1);
    }
}
