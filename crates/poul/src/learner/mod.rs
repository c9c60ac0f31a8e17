//! The learner: Y = m(X) + g(X)ᵀ(h(T) − e_h(X)) + ε, fitted on residuals (Eqs. 3 to 5 and Algorithm 1 of the paper).
//!
//! | file | subject |
//! |---|---|
//! | `params` | settings, checked |
//! | `space` | the atoms that were seen, and mixtures over them |
//! | `attributes` | what is known of contexts and actions, as numbers |
//! | `treatment_net` | φ and h(t) |
//! | `rho` | ρ, and its Lipschitz constant |
//! | `uplift_net` | g(x), and the loss |
//! | `r_loss` | the loss on held-out rows, by which the best state is kept |
//! | `fit` | stage 2: the training of an ensemble |
//! | `nuisances` | stage 1: m and π out of fold |
//! | `train` | the whole: scale outcomes, nuisances, stage 2 |
//! | `canonical` | of all equal forms of a model, the one whose axes mean something |
//! | `axes` | the change of axes behind it |
//! | `eigen` | eigenvalues of small matrices |
//! | `poul` | what comes out |

mod attributes;
mod axes;
mod canonical;
mod eigen;
mod fit;
mod nuisances;
mod params;
mod poul;
mod r_loss;
mod rho;
mod space;
mod train;
mod treatment_net;
mod uplift_net;

pub use attributes::AttributeEncoder;
pub use canonical::Geometry;
pub(crate) use nuisances::residuals;
pub use params::{Centring, Embedding, ModelParams, Params, TrainingParams, ValidParams};
pub use poul::Poul;
pub use space::TreatmentSpace;
pub use train::{NAME, load, settle, train};
