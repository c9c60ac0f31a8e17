//! Numbers and lists as a person says them.

use super::super::result::Interval;

/// Three significant digits; whole numbers as they are.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    format!("{value:.*}", (2 - magnitude).max(0) as usize)
}

/// With its sign.
pub(super) fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", number(value)) } else { number(value) }
}

/// `low … high`.
pub(super) fn ends([low, high]: Interval) -> String {
    format!("{} … {}", number(low), number(high))
}

/// `2 of 3 policies`, `the policy`.
pub(super) fn within(n: usize, of: usize) -> String {
    match (n, of) {
        (1, 1) => "the policy".to_owned(),
        (n, of) if n == of => format!("each of {of} policies"),
        (n, of) => format!("{n} of {of} policies"),
    }
}

/// The first few of a list, and how many more there are.
pub(super) fn listed(items: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let said = [0.0, 6.4231, -0.012_345, 146.2, 1234.6, 12_345_678.0].map(number);
        assert_eq!(said, ["0", "6.42", "-0.0123", "146", "1235", "1.23e7"]);
        assert_eq!(signed(2.0), "+2.00");
        assert_eq!(listed(&["a"; 7].map(str::to_owned)), "a, a, a, a, a and 2 more");
    }
}
