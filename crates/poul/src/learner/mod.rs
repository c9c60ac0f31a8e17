//! The learner: Y = m(X) + g(X)ᵀ(h(T) − e_h(X)) + ε, fitted on residuals (Eqs. 3 to 5 and Algorithm 1 of the paper).

mod fit;
mod params;
mod space;
mod treatment_net;
mod uplift_net;

pub use fit::{Fitted, Problem, fit};
pub use params::{Centring, Embedding, Params};
pub use space::{Mixtures, TreatmentSpace};
pub use treatment_net::TreatmentNet;
