//! How numbers are written for people.

/// `3820637` → `3,820,637`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 context`, `3,000 contexts`.
pub fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", count(n as u64), if n == 1 { one } else { many })
}

/// So many a second: a decimal where they are few.
pub fn rate(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { count(rate as u64) }
}

/// `90` → `90 s`, `1500` → `25 min`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Four significant digits, without an exponent where the number is of everyday size.
pub fn significant(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { x.to_string() };
    }
    let magnitude = x.abs().log10().floor() as i32;
    if !(-4..9).contains(&magnitude) {
        return format!("{x:.3e}");
    }
    let decimals = (3 - magnitude).max(0) as usize;
    format!("{x:.decimals$}")
}

/// As [`significant`], and a dash where there is no number.
pub fn optional(x: Option<f64>) -> String {
    x.map_or_else(|| "–".into(), significant)
}

/// `0.4712` → `47.1 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_and_long_work_is_told_in_fitting_units() {
        assert_eq!(rate(0.72), "0.7");
        assert_eq!(rate(1234.5), "1,234");
        assert_eq!(
            (duration(90.4), duration(1500.0), duration(9000.0)),
            ("90 s".into(), "25 min".into(), "2.5 h".into())
        );
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(3_820_637), "3,820,637");
        assert_eq!(count(12), "12");
        assert_eq!(counted(1, "context", "contexts"), "1 context");
        assert_eq!(counted(3000, "context", "contexts"), "3,000 contexts");
        assert_eq!(significant(0.012_346), "0.01235");
        assert_eq!(significant(-1234.56), "-1235");
        assert_eq!(significant(1.0), "1.000");
        assert_eq!(percent(0.2351), "23.5 %");
    }
}
