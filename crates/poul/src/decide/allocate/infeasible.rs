//! What to say where no allocation keeps to the limits.

use super::problem::Limit;
use crate::Error;

/// A budget that is below what must be spent.
pub(super) fn below_least(limit: &Limit, least: f64) -> Error {
    let least = rounded_up(least);
    Error::usage(format!("{} cannot be kept: the least amount that works is {least}", limit.name))
        .hint("raise the amount to that, or let users have cheaper policies")
}

/// Six digits, never below: what is told works.
pub(super) fn rounded_up(amount: f64) -> f64 {
    if amount == 0.0 || !amount.is_finite() {
        return amount;
    }
    let digits = 6 - amount.abs().log10().ceil() as i32;
    // By a whole power of ten, which is exact, on the side where it is whole.
    let power = 10f64.powi(digits.abs());
    let up = if digits >= 0 { (amount * power).ceil() / power } else { (amount / power).ceil() * power };
    if up >= amount { up } else { amount }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_in_few_digits_and_never_too_low() {
        assert_eq!(rounded_up(132.404_217_3), 132.405);
        assert_eq!(rounded_up(-132.404_217_3), -132.404);
        assert_eq!(rounded_up(1_234_567_890.0), 1_234_570_000.0);
        assert_eq!(rounded_up(0.000_123_456_789), 0.000_123_457);
        assert_eq!(rounded_up(0.0), 0.0);
        assert_eq!(rounded_up(100.0), 100.0);
    }
}
