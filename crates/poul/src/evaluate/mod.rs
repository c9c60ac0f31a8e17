//! evaluate.
