//! The learner: Y = m(X) + g(X)ᵀ(h(T) − e_h(X)) + ε, fitted on residuals (Eqs. 3 to 5 and Algorithm 1 of the paper).
//!
//! | file | subject |
//! |---|---|
//! | `params` | settings, checked |
//! | `preset` | named sets of defaults |
//! | `space` | the atoms that were seen, and mixtures over them |
//! | `attributes` | what is known of contexts and actions, as numbers |
//! | `treatment_net` | φ and h(t) |
//! | `rho` | ρ, and its Lipschitz constant |
//! | `gain` | g(x) of one outcome |
//! | `uplift_net` | g and h for all outcomes |
//! | `assignment`, `expected_mixture` | π(t\|x), or E[α_T\|x] where there are too many policies |
//! | `chosen` | which nuisance models were chosen, where that was left to the data |
//! | `centring` | e_h(x): exact, sampled, of the expected mixture, or the running mean |
//! | `own_mixtures`, `own_centring` | rows that meet contexts each in its own way: z and e_h by their exposures |
//! | `objective` | the loss |
//! | `r_loss` | the loss on held-out rows, by which the best state is kept |
//! | `logistic`, `baseline_net` | 0/1 outcomes, and the logit under the mean policy |
//! | `fit` | stage 2: the training of an ensemble |
//! | `held_out` | the rows that each member is not taught |
//! | `calibration`, `slope_posterior` | the size of effects by held-out rows, and what outcomes take from each other |
//! | `deviations` | what rows differ by, out of fold: taken off the noise of averages |
//! | `shared_gains` | outcomes in the order that they are learned in, and what they take from each other |
//! | `reference` | rows that a model with own exposure keeps, for averages of policies never run |
//! | `anchor` | effects of rows around the averages of policies |
//! | `halves` | members on complementary halves of the rows |
//! | `phases` | stage 2 on one population after the other |
//! | `warm_start` | stage 2 from a saved model |
//! | `nuisances` | settings of stage 1 (`nuisance::FirstStage`), and what is said of it |
//! | `noise` | how much rows teach by how noisy their outcomes are |
//! | `stage` | names of the stages that borrow the outcome model's machinery |
//! | `train` | the whole: scale outcomes, nuisances, stage 2 |
//! | `canonical` | of all equal forms of a model, the one whose axes mean something |
//! | `certificate`, `own_bound` | how far effects of two policies can differ: Proposition 3 |
//! | `axes` | the change of axes behind it |
//! | `fitted`, `scorer`, `own_scorer` | what comes out, and how it scores |

mod anchor;
mod assignment;
mod attributes;
mod axes;
mod baseline_net;
mod blocks;
mod calibration;
mod canonical;
mod centring;
mod certificate;
mod chosen;
mod deviations;
mod expected_mixture;
mod fit;
mod fitted;
mod gain;
mod halves;
mod held_out;
mod logistic;
mod noise;
mod nuisances;
mod objective;
mod own_bound;
mod own_centring;
mod own_mixtures;
mod own_scorer;
mod params;
mod phases;
mod preset;
mod r_loss;
mod reference;
mod rho;
mod scorer;
mod shared_gains;
mod slope_posterior;
mod space;
mod stage;
mod train;
mod treatment_net;
mod uplift_net;
mod warm_start;

pub use attributes::AttributeEncoder;
pub use canonical::Geometry;
pub use chosen::{ChosenNuisances, ChosenOutcomeModel};
pub use fitted::Poul;
pub use params::{
    Centring, Embedding, Loss, MemberRows, ModelParams, OutcomeTraining, Params, TrainingParams, ValidParams,
};
pub use phases::PhaseParams;
pub use preset::PRESETS;
pub use space::TreatmentSpace;
pub use train::{NAME, load, settle, train};
