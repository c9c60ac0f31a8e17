//! Settings in messages: the library names a setting, `‹stratum=COL›`, and each front end spells it its own way.

/// A text in which every setting is spelled by `spell`, from its name and the value that is suggested for it, if any.
///
/// ```
/// let text = "name the column: ‹stratum=COL›, or leave ‹resume› out";
/// let flags = |name: &str, value: Option<&str>| match value {
///     Some(value) => format!("--{name} {value}"),
///     None => format!("--{name}"),
/// };
/// assert_eq!(poul::spelled(text, flags), "name the column: --stratum COL, or leave --resume out");
/// assert_eq!(poul::plainly(text), "name the column: `stratum = COL`, or leave `resume` out");
/// ```
pub fn spelled(text: &str, spell: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut parts = text.split(OPEN);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(CLOSE).and_then(|(inside, after)| Some((setting(inside)?, after))) {
            Some(((name, value), after)) => {
                whole += &spell(name, value);
                whole += after;
            }
            // Somebody's own text.
            None => {
                whole.push(OPEN);
                whole += part;
            }
        }
    }
    whole
}

/// A text with settings by their names, for files that every front end writes alike.
pub fn plainly(text: &str) -> String {
    spelled(text, |name, value| match value {
        Some(value) => format!("`{name} = {value}`"),
        None => format!("`{name}`"),
    })
}

/// `1 row`, `25 rows`.
///
/// ```
/// assert_eq!(poul::counted(1, "row", "rows"), "1 row");
/// assert_eq!(poul::counted(0, "policy has", "policies have"), "0 policies have");
/// ```
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

const OPEN: char = '‹';
const CLOSE: char = '›';

/// The name and the value between the marks.
fn setting(inside: &str) -> Option<(&str, Option<&str>)> {
    let (name, value) = inside.split_once('=').map_or((inside, None), |(name, value)| (name, Some(value)));
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_spelled_and_all_else_is_left_alone() {
        let spell = |name: &str, value: Option<&str>| format!("<{name}|{}>", value.unwrap_or("-"));
        assert_eq!(spelled("no setting", spell), "no setting");
        assert_eq!(spelled("‹shares=POLICY=SHARE,…›", spell), "<shares|POLICY=SHARE,…>");
        assert_eq!(spelled("a ‹by› and ‹policy=T2›.", spell), "a <by|-> and <policy|T2>.");
        for other in ["‹Ein Zitat›", "open ‹ only", "closed › only", "‹›", "‹ ‹by"] {
            assert_eq!(spelled(other, spell), other);
        }
        assert_eq!(plainly("use ‹design=observational›"), "use `design = observational`");
    }
}
