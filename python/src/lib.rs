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
//! | `failure`, `panicking` | the library's error, or a panic, as a Python exception |
//! | `check` | the profile of a table |
//! | `fit`, `model`, `effect` | learning, the model, its effects |
//! | `allocate` | which policy each user should have |
//! | `evaluate`, `averages` | measuring effects; average effects as a table |
//! | `summary` | the same, and checks, of rows that come in parts |
//! | `design` | the policies to run next |
//! | `compare`, `tune`, `simulate` | learners side by side, the search for settings, experiments with known truth |
//! | `allocation_solver` | the solver of allocations on plain numbers, for tests |
//! | `checkpoint` | where long work leaves what it has done |

mod allocate;
mod allocation_solver;
mod averages;
mod capsule;
mod check;
mod checkpoint;
mod column;
mod compare;
mod design;
mod effect;
mod evaluate;
mod failure;
mod fit;
mod frame;
mod model;
#[cfg(debug_assertions)]
mod panicking;
mod policies;
mod settings;
mod simulate;
mod spelling;
mod summary;
mod texts;
mod tune;
mod work;

/// The native part of the package.
#[pyo3::pymodule]
mod _poul {
    #[pymodule_export]
    use super::allocation_solver::{budget_path, solve_allocation};
    #[pymodule_export]
    use super::averages::averages;
    #[pymodule_export]
    use super::check::check;
    #[pymodule_export]
    use super::column::Column;
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::evaluate::{evaluate_columns, metrics, write_report};
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::model::Model;
    #[cfg(debug_assertions)]
    #[pymodule_export]
    use super::panicking::panic_on_demand;
    #[pymodule_export]
    use super::policies::PolicySet;
    #[pymodule_export]
    use super::settings::{context_weights, learners, nearest_name, settings};
    #[pymodule_export]
    use super::simulate::simulate;
    #[pymodule_export]
    use super::summary::{CheckedParts, Parts, merged_checks, merged_outlines, merged_sums};
    #[pymodule_export]
    use super::tune::tune;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::work::silence_own_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
