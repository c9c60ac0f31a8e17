//! The `poul` command.
fn main() {}
