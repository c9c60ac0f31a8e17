//! Reading a combination of factorial columns: `Education=college, Gender=female`.

use crate::{Error, Result};

/// The context and value pairs of a combination, as `combination_name` writes them.
///
/// Space around names does not count unless they are quoted. A quoted name begins and ends with `"`; inside, `\"` and
/// `\\` stand for a quotation mark and a backslash.
pub fn combination(text: &str) -> Result<Vec<(String, String)>> {
    let wrong = |what: String| {
        let error = Error::usage(format!("the combination `{text}` {what}"));
        error.hint("write every treatment column and its value: 'Education=college, Gender=female'")
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    loop {
        let (context, after) =
            piece(rest, &['=', ',']).ok_or_else(|| wrong("has an open quotation mark".into()))?;
        let Some(after) = after.strip_prefix('=') else {
            return Err(wrong(format!("has no value for `{context}`")));
        };
        let (value, after) =
            piece(after, &[',']).ok_or_else(|| wrong("has an open quotation mark".into()))?;
        if context.is_empty() || value.is_empty() {
            return Err(wrong("has an empty name".into()));
        }
        if pairs.iter().any(|(known, _)| *known == context) {
            return Err(wrong(format!("has two values for `{context}`")));
        }
        pairs.push((context, value));
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() => return Ok(pairs),
            None => return Err(wrong(format!("lacks a comma before `{after}`"))),
        }
    }
}

/// A name, quoted or up to one of `ends`, and what follows it; `None` if its quotation mark is never closed.
fn piece<'t>(text: &'t str, ends: &[char]) -> Option<(String, &'t str)> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(ends).unwrap_or(text.len());
        return Some((text[..end].trim_end().to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((name, quoted[at + 1..].trim_start())),
            (_, '\\') => name.push(characters.next()?.1),
            (_, other) => name.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::combination_name;

    proptest! {
        #[test]
        fn names_of_combinations_are_read_back(
            pairs in prop::collection::btree_map("[a=,\"\\\\]{1,4}", "[a=,\"\\\\]{1,4}", 1..4),
        ) {
            let pairs: Vec<(String, String)> = pairs.into_iter().collect();
            let name = combination_name(pairs.iter().map(|(c, v)| (c.as_str(), v.as_str())));
            prop_assert_eq!(combination(&name).unwrap(), pairs);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a=,\" \\\\é]{0,12}") {
            let _ = combination(&text);
        }
    }

    #[test]
    fn space_is_free_and_mistakes_are_named() {
        let read = |text: &str| combination(text).map(|pairs| format!("{pairs:?}"));
        let expected = r#"[("Gender", "female"), ("Education", "high school")]"#;
        assert_eq!(read("Gender = female,Education=high school ").unwrap(), expected);
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(message("T2"), "the combination `T2` has no value for `T2`");
        assert_eq!(message("a=1,b"), "the combination `a=1,b` has no value for `b`");
        assert_eq!(message("a=1,a=2"), "the combination `a=1,a=2` has two values for `a`");
        assert_eq!(message("a="), "the combination `a=` has an empty name");
        assert_eq!(message("a=\"1"), "the combination `a=\"1` has an open quotation mark");
        assert_eq!(message("a=\"1\" b"), "the combination `a=\"1\" b` lacks a comma before `b`");
    }
}
