//! What stands after a program's name: words, and settings as `key=value`.

use std::collections::BTreeMap;
use std::str::FromStr;

use poul::effect::Settings;

/// The arguments of a program.
#[derive(Default)]
pub struct Arguments {
    words: Vec<String>,
    given: BTreeMap<String, String>,
}

impl Arguments {
    /// Those of this program.
    pub fn read() -> Self {
        let mut arguments = Self::default();
        for word in std::env::args().skip(1) {
            match word.split_once('=') {
                Some((key, value)) => {
                    arguments.given.insert(key.to_owned(), value.to_owned());
                }
                None => arguments.words.push(word),
            }
        }
        arguments
    }

    /// The first word, which says what is asked for.
    pub fn word(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }

    /// What is given under a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(String::as_str)
    }

    /// The number given under a key, or another.
    pub fn number<T: FromStr>(&self, key: &str, default: T) -> T {
        self.get(key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// Settings such as `model.members=2` and `training.epochs=10`, for a learner.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        for (key, value) in &self.given {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.clone().into());
            if let Some(key) = key.strip_prefix("model.") {
                settings.model.insert(key.to_owned(), value);
            } else if let Some(key) = key.strip_prefix("training.") {
                settings.training.insert(key.to_owned(), value);
            }
        }
        settings
    }
}
