//! What to say where no allocation keeps to the limits.

use super::options::Options;
use super::problem::{Adds, Limit, Problem};
use super::relax::{Failure, relax};
use super::table::Table;
use crate::{Error, Progress, Result};

/// A weight below this share of the greatest is rounding.
const ROUNDING: f64 = 1e-9;

/// A budget that is below what must be spent.
pub(super) fn below_least(limit: &Limit, least: f64) -> Error {
    Error::usage(format!("{} cannot be kept: {}", limit.name, told(limit, least)))
        .hint("change the amount, or let users choose among other policies")
}

/// Limits that contradict each other, those with a weight: which, and what each could be if the others stay.
pub(super) fn explain(table: &Table, weights: &[f64], progress: &dyn Progress) -> Error {
    let limits = &table.problem.limits;
    // Weights are by unit; what counts is what one user can change.
    let sizes: Vec<f64> = weights.iter().zip(table.scales()).map(|(weight, scale)| weight * scale).collect();
    let most = sizes.iter().fold(0.0, |most: f64, size| most.max(*size));
    let at_fault: Vec<usize> = (0..limits.len()).filter(|limit| sizes[*limit] > ROUNDING * most).collect();
    let mut ways_out = Vec::new();
    for limit in &at_fault {
        match least(table, *limit, progress) {
            Ok(Some(least)) if at_fault.len() == 1 => return below_least(&limits[*limit], least),
            Ok(Some(least)) => {
                ways_out.push(format!("for {} {}", limits[*limit].name, told(&limits[*limit], least)));
            }
            Ok(None) => {}
            Err(error) => return error,
        }
    }
    let names: Vec<&str> = at_fault.iter().map(|limit| limits[*limit].name.as_str()).collect();
    let error = Error::usage(match names.as_slice() {
        [one] => format!("{one} cannot be kept"),
        [first @ .., last] => format!("{} and {last} cannot all be kept", first.join(", ")),
        [] => "the limits cannot all be kept".to_owned(),
    });
    match ways_out.as_slice() {
        [] => error.hint("more than one of them must change"),
        ways_out => error.hint(format!("with the others as they are, {}", ways_out.join("; "))),
    }
}

/// The least amount of a limit that works with all others as they are; none where nothing does.
fn least(table: &Table, limit: usize, progress: &dyn Progress) -> Result<Option<f64>> {
    let mut problem = table.problem.clone();
    let own = problem.limits.remove(limit);
    let values = negated(table, &own);
    let options = Options { value: values, ..table.options.clone() };
    let others = Table::new(&options, &problem);
    match relax(&others, false, progress) {
        Ok(relaxed) => Ok(Some(-others.bound(&relaxed.prices))),
        Err(Failure::Infeasible(_)) => Ok(None),
        Err(Failure::Error(error)) => Err(error),
    }
}

/// What every option adds to a limit, as a value to keep low.
fn negated(table: &Table, limit: &Limit) -> Vec<f32> {
    let (options, problem): (&Options, &Problem) = (table.options, table.problem);
    let mut values = vec![0.0; options.n_options()];
    for user in (0..options.n_users()).filter(|user| problem.concerns(limit, *user)) {
        for option in options.of(user) {
            values[option] = match limit.adds {
                Adds::Load(load) => -options.loads(option)[load],
                Adds::Users(policy) => -f32::from(u8::from(options.policy(option) == policy)),
                Adds::MinusUsers(policy) => f32::from(u8::from(options.policy(option) == policy)),
            };
        }
    }
    values
}

fn told(limit: &Limit, least: f64) -> String {
    // Counts of users are whole, but for rounding.
    match limit.adds {
        Adds::Load(_) => format!("the least amount that works is {}", rounded_up(least)),
        Adds::Users(_) => format!("at least {} users must be allowed", (least - 1e-6).ceil().max(0.0)),
        Adds::MinusUsers(_) => format!("at most {} users can be asked for", (1e-6 - least).floor().max(0.0)),
    }
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
