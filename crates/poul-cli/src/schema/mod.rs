//! JSON Schema (draft 4, which editors of TOML read) of `poul.toml` and of policy files.
//!
//! Names and defaults of learners' settings come from the learners themselves; what stands here is what a setting is for
//! and which values it takes. Tests compare both with what the learners accept.

mod config;
mod learners;
mod meaning;
mod policies;

pub(crate) use self::config::config;
pub(crate) use self::policies::policies;

const DRAFT: &str = "http://json-schema.org/draft-04/schema#";
