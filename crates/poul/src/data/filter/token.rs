//! Text of a filter into tokens. Positions count characters from 1.

use super::parse::{LiteralValue, Relation};
use crate::{Error, Result};

/// A word, a sign or a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(String),
    Quoted(String),
    Literal(LiteralValue),
    Relation(Relation),
    Open,
    Close,
    Comma,
}

/// An error in the expression `text`, at a character of it.
pub(super) fn wrong(text: &str, position: usize, what: impl Into<String>) -> Error {
    Error::usage(what).at(format!("population `{text}`")).at(format!("position {position}"))
}

/// The tokens of `text` and their positions.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        let next = chars.get(at + 1).copied();
        let token = match chars[at] {
            space if space.is_whitespace() => {
                at += 1;
                continue;
            }
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '=' => {
                at += usize::from(next == Some('='));
                Token::Relation(Relation::Equal)
            }
            '!' if next == Some('=') => {
                at += 1;
                Token::Relation(Relation::NotEqual)
            }
            '<' => {
                at += usize::from(matches!(next, Some('=' | '>')));
                Token::Relation(match next {
                    Some('=') => Relation::LessOrEqual,
                    Some('>') => Relation::NotEqual,
                    _ => Relation::Less,
                })
            }
            '>' => {
                at += usize::from(next == Some('='));
                Token::Relation(if next == Some('=') { Relation::GreaterOrEqual } else { Relation::Greater })
            }
            quote @ ('"' | '\'' | '`') => {
                let (value, end) = quoted(&chars, at, quote)
                    .ok_or_else(|| wrong(text, start + 1, format!("the {quote} is never closed")))?;
                at = end;
                if quote == '`' { Token::Quoted(value) } else { Token::Literal(LiteralValue::Text(value)) }
            }
            first if first.is_ascii_digit() || matches!(first, '-' | '+' | '.') => {
                let is_part = |at: usize| {
                    let after_exponent = matches!(chars[at - 1], 'e' | 'E') && matches!(chars[at], '+' | '-');
                    chars[at].is_alphanumeric() || matches!(chars[at], '.' | '_') || after_exponent
                };
                while at + 1 < chars.len() && is_part(at + 1) {
                    at += 1;
                }
                let word: String = chars[start..=at].iter().collect();
                Token::Literal(number(&word).ok_or_else(|| {
                    let error = wrong(text, start + 1, format!("`{word}` is not a number"));
                    error.hint("put names that begin with a digit in backquotes")
                })?)
            }
            first if first.is_alphanumeric() || first == '_' => {
                let is_part = |part: char| part.is_alphanumeric() || matches!(part, '_' | '.');
                while at + 1 < chars.len() && is_part(chars[at + 1]) {
                    at += 1;
                }
                Token::Word(chars[start..=at].iter().collect())
            }
            other => {
                let error = wrong(text, start + 1, format!("`{other}` has no meaning here"));
                return Err(error.hint("put text in quotes and unusual column names in backquotes"));
            }
        };
        at += 1;
        tokens.push((start + 1, token));
    }
    Ok(tokens)
}

/// The text between quotes, a doubled quote standing for itself, and the place of the closing quote.
fn quoted(chars: &[char], start: usize, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut at = start + 1;
    loop {
        let char = *chars.get(at)?;
        if char == quote {
            if chars.get(at + 1) != Some(&quote) {
                return Some((value, at));
            }
            at += 1;
        }
        value.push(char);
        at += 1;
    }
}

fn number(word: &str) -> Option<LiteralValue> {
    if let Ok(integer) = word.parse() {
        return Some(LiteralValue::Integer(integer));
    }
    let digit = word.contains(|char: char| char.is_ascii_digit());
    word.parse().ok().filter(|number: &f64| digit && number.is_finite()).map(LiteralValue::Number)
}
