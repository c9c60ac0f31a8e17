//! Commands as one types them, for the record.

/// Words as a shell reads them.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted_word(word)).collect::<Vec<_>>().join(" ")
}

/// A word that a shell reads as one.
pub fn quoted_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted_word("--control=a"), "--control=a");
        assert_eq!(quoted_word("No E-Mail"), "'No E-Mail'");
        assert_eq!(quoted_word("it's"), "'it'\\''s'");
        assert_eq!(quoted_word(""), "''");
        let words = ["poul", "check", "my data.csv"].map(String::from);
        assert_eq!(command_line(&words), "poul check 'my data.csv'");
    }
}
