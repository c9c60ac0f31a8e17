//! data.
