//! The learner: Y = m(X) + g(X)ᵀ(h(T) − e_h(X)) + ε, fitted on residuals (Eqs. 3 to 5 and Algorithm 1 of the paper).
//!
//! | file | subject |
//! |---|---|
//! | `params` | settings, checked |
//! | `preset` | named sets of defaults |
//! | `space` | the atoms that were seen, and mixtures over them |
//! | `treatment_net` | φ, ρ and h(t) |
//! | `uplift_net` | g(x), and the loss |
//! | `r_loss` | the loss on held-out rows, by which the best state is kept |
//! | `fit` | stage 2: the training of an ensemble |
//! | `phases` | stage 2 on one population after the other |
//! | `warm_start` | stage 2 from a saved model |
//! | `nuisances` | stage 1: m and π out of fold |
//! | `train` | the whole: scale outcomes, nuisances, stage 2 |
//! | `poul` | what comes out |

mod fit;
mod nuisances;
mod params;
mod phases;
mod poul;
mod preset;
mod r_loss;
mod space;
mod train;
mod treatment_net;
mod uplift_net;
mod warm_start;

pub(crate) use nuisances::residuals;
pub use params::{Centring, Embedding, ModelParams, Params, TrainingParams, ValidParams};
pub use phases::PhaseParams;
pub use poul::Poul;
pub use preset::PRESETS;
pub use space::TreatmentSpace;
pub use train::{NAME, load, settle, train};
