//! The `poul` binary as a person meets it: messages, tables, files, exit codes.

mod allocate;
mod averages;
mod bad_data;
mod bad_output;
mod bad_policies;
mod bad_usage;
mod book;
mod certify;
mod check;
mod compare;
mod evaluate;
mod exposure;
mod harness;
mod help;
mod model;
mod nuisance;
mod policy;
mod real_data;
mod report;
mod resume;
mod schema;
mod screen;
mod settings;
mod simulate;
mod thin_arms;
mod treatment;
