//! Upper tail of the χ² distribution, for the sample-ratio test and for p-values.

/// P(χ² with `degrees` degrees of freedom ≥ `statistic`), by the regularised upper incomplete gamma function.
pub(crate) fn upper_tail(statistic: f64, degrees: usize) -> f64 {
    if statistic <= 0.0 || degrees == 0 {
        return 1.0;
    }
    let (a, x) = (degrees as f64 / 2.0, statistic / 2.0);
    let scale = (a * x.ln() - x - ln_gamma(a)).exp();
    // The series converges fast below the mean, the continued fraction above it.
    let tail = if x < a + 1.0 { 1.0 - scale * lower_series(a, x) } else { scale * upper_fraction(a, x) };
    tail.clamp(0.0, 1.0)
}

const TERMS: usize = 10_000;
const PRECISION: f64 = 1e-15;

/// Σ xⁿ / (a (a+1) … (a+n)).
fn lower_series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for n in 1..TERMS {
        term *= x / (a + n as f64);
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    sum
}

/// Lentz's evaluation of the continued fraction 1 / (x + 1 − a − 1(1−a) / (x + 3 − a − …)).
fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for n in 1..TERMS {
        let numerator = -(n as f64) * (n as f64 - a);
        b += 2.0;
        d = 1.0 / keep_from_zero(numerator * d + b, TINY);
        c = keep_from_zero(b + numerator / c, TINY);
        fraction *= d * c;
        if (d * c - 1.0).abs() < PRECISION {
            break;
        }
    }
    fraction
}

fn keep_from_zero(value: f64, tiny: f64) -> f64 {
    if value.abs() < tiny { tiny } else { value }
}

/// Stirling's series after shifting the argument above 10 by the recurrence Γ(a + 1) = a Γ(a).
fn ln_gamma(a: f64) -> f64 {
    let mut shifted = a;
    let mut product = 1.0;
    while shifted < 10.0 {
        product *= shifted;
        shifted += 1.0;
    }
    let inverse = 1.0 / shifted;
    let square = inverse * inverse;
    let series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
    (shifted - 0.5) * shifted.ln() - shifted + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::upper_tail;

    #[test]
    fn agrees_with_published_quantiles() {
        // Critical values of the χ² table.
        for (statistic, degrees, tail) in [
            (3.841_458_820_694, 1, 0.05),
            (5.991_464_547_108, 2, 0.05),
            (18.307_038_053_275, 10, 0.05),
            (124.342_113_404_004, 100, 0.05),
            (6.634_896_601_021, 1, 0.01),
            (15.086_272_469_389, 5, 0.01),
        ] {
            let got = upper_tail(statistic, degrees);
            assert!((got - tail).abs() < 1e-9, "χ²({degrees}) ≥ {statistic}: {got}");
        }
        // With two degrees of freedom the tail is exp(−x/2).
        for x in [0.01, 0.5, 1.9, 2.1, 30.0, 200.0] {
            assert!((upper_tail(x, 2) / (-x / 2.0).exp() - 1.0).abs() < 1e-9);
        }
        assert_eq!(upper_tail(0.0, 3), 1.0);
    }
}
