//! The flags of the commands for shells and editors: schema, completions, man.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use clap_complete::Shell;

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul schema config > poul.schema.json
  poul schema policies > policies.schema.json

In an editor with TOML support, the first line of poul.toml may then be
  #:schema ./poul.schema.json")]
pub(crate) struct Schema {
    /// Which file it describes
    #[arg(value_enum)]
    pub(crate) kind: SchemaKind,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SchemaKind {
    /// The settings file, poul.toml
    Config,
    /// Policy files in TOML or JSON
    Policies,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul completions bash > ~/.local/share/bash-completion/completions/poul
  poul completions zsh > ~/.zfunc/_poul
  poul completions fish > ~/.config/fish/completions/poul.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  poul man | man -l -
  poul man fit | man -l -
  poul man policy diff | man -l -
  poul man --out ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The command whose page is printed [default: the page of poul itself]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to this folder instead
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
