//! Patterns over column names: `*` is any text, `?` is any one character.

/// Whether `pattern` holds a wildcard.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// Whether `pattern` matches the whole of `name`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // The last star and how far it reaches: the only point worth going back to.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(expected) if *expected == '?' || *expected == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star_at, reach)) = star else { return false };
                star = Some((star_at, reach + 1));
                p = star_at + 1;
                n = reach + 1;
            }
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

/// If `pattern` matches `name`, the shortest text its first `*` can stand for; all of `name` where there is no `*`.
pub(crate) fn captured<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    if !matches(pattern, name) {
        return None;
    }
    let Some((before, after)) = pattern.split_once('*') else { return Some(name) };
    let rest: &str = name.char_indices().nth(before.chars().count()).map_or("", |(byte, _)| &name[byte..]);
    let ends = rest.char_indices().map(|(byte, _)| byte).chain([rest.len()]);
    ends.into_iter().find(|end| matches(after, &rest[*end..])).map(|end| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("f*", "f001", true),
            ("f*", "gf", false),
            ("*", "", true),
            ("f?", "f", false),
            ("f??", "f12", true),
            ("*_past_*", "gmv_past_30d", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b", "ab ", false),
            ("größe", "größe", true),
            ("gr?ße*", "größe (cm)", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_star_is_captured() {
        assert_eq!(captured("p_*", "p_T2"), Some("T2"));
        assert_eq!(captured("p_*_hat", "p_T2_hat"), Some("T2"));
        assert_eq!(captured("*_*", "a_b_c"), Some("a"));
        assert_eq!(captured("p", "p"), Some("p"));
        assert_eq!(captured("é*", "éx"), Some("x"));
        assert_eq!(captured("p*", "p"), Some(""));
        assert_eq!(captured("q*", "p"), None);
    }
}
