//! Average effects of policies that were run often, rarely or never, by small-area estimation (Fay and Herriot 1979):
//! what every policy's own rows say, smoothed over mixtures.
//!
//! For each outcome ȳ_t = μ + β·dose_t + f(t) + e_t, where ȳ_t is the mean residual outcome of the rows that got t
//! (`evidence`), dose_t the share of the mixture that t moves away from control, f a Gaussian process over mixtures and
//! e_t the sampling noise. f has three parts (`kernel`): what an action does wherever it is taken, what it does in one
//! context, and anything else that changes smoothly with d_Π. Their variances and the length of d_Π are those of the
//! largest restricted likelihood under weak priors (`likelihood`); the average of any mixture and its variance follow in
//! closed form (`posterior`). A policy with many rows follows them, a rare one is drawn to its like, a new one is made of
//! its parts, and its interval widens with its distance from all that was run.
//!
//! | file | subject |
//! |---|---|
//! | `evidence` | mean residuals of policies, and their noise |
//! | `described` | policies with the attributes of their actions |
//! | `kernel` | how alike two policies are |
//! | `landmarks` | the policies that stand for all, where there are many |
//! | `likelihood` | how much policies differ, and along what |
//! | `posterior` | averages and their errors for any policies |

mod described;
mod evidence;
mod kernel;
mod landmarks;
mod likelihood;
mod posterior;
#[cfg(test)]
mod tests;

pub(crate) use evidence::ResidualRows;
pub(crate) use posterior::{Posterior, PosteriorManifest};
