//! Settings of messages as flags.

use poul::quoted_word;

/// A text of the library with its settings as flags.
pub(crate) fn with_flags(text: &str) -> String {
    poul::spelled(text, flag)
}

/// A setting as it is typed: `--stratum COL`.
pub(crate) fn flag(name: &str, value: Option<&str>) -> String {
    let name = name.replace('_', "-");
    match value {
        // What stands for a list is not meant to be typed as it is.
        Some(value) if value.ends_with('…') => format!("--{name} {value}"),
        Some(value) => format!("--{name} {}", quoted_word(value)),
        None => format!("--{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags_that_a_shell_reads() {
        for (text, typed) in [
            ("see ‹allow_unseen›", "see --allow-unseen"),
            ("‹shares=POLICY=SHARE,…›", "--shares POLICY=SHARE,…"),
            ("‹population=y is not null›", "--population 'y is not null'"),
            ("‹exclude=a,b›, or keep it as ‹id›", "--exclude a,b, or keep it as --id"),
        ] {
            assert_eq!(with_flags(text), typed);
        }
    }
}
