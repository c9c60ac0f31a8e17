//! Rivals: what the method must beat. Each is one file and one line of the registry.

pub mod ridge;
