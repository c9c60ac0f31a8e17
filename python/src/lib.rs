//! `poul._poul`: the library as Python sees it, thin. What a person calls is in `python/poul/*.py`.
//!
//! | file | subject |
//! |---|---|
//! | `capsule` | Arrow data and NumPy memory in and out, without copies: all unsafe code |
//! | `column`, `frame` | a table in memory or in files, as the library's `Source` |
//! | `texts` | text cells of any Arrow type |
//! | `policies` | sets of policies |
//! | `settings` | settings as they come from Python, and the learners' own by name |
//! | `work` | long work on threads of its own: progress, Ctrl-C, panics |
//! | `failure` | the library's error as a Python exception |
//! | `fit`, `model`, `effect` | learning, the model, its effects |
//! | `evaluate`, `averages` | measuring effects; average effects as a table |
//! | `compare`, `simulate` | learners side by side, experiments with known truth |

mod averages;
mod capsule;
mod column;
mod compare;
mod effect;
mod evaluate;
mod failure;
mod fit;
mod frame;
mod model;
mod policies;
mod settings;
mod simulate;
mod texts;
mod work;

/// The native part of the package.
#[pyo3::pymodule]
mod _poul {
    #[pymodule_export]
    use super::averages::averages;
    #[pymodule_export]
    use super::column::Column;
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::evaluate::evaluate_columns;
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::policies::PolicySet;
    #[pymodule_export]
    use super::settings::{context_weights, learners, nearest_name, settings};
    #[pymodule_export]
    use super::simulate::simulate;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::work::silence_own_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
