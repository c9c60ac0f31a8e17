//! Quantiles of a sample.

/// A quantile of sorted values, interpolated between neighbours (type 7 of Hyndman and Fan 1996); 0 of none.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let below = (at.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let weight = at - below as f64;
    sorted[below] * (1.0 - weight) + sorted[above] * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[1.0], 0.3), 1.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
        // R: quantile(c(1, 3, 7, 8, 20), c(.1, .33, .9, 1)).
        for (share, expected) in [(0.1, 1.8), (0.33, 4.28), (0.9, 15.2), (1.0, 20.0)] {
            assert!((quantile(&[1.0, 3.0, 7.0, 8.0, 20.0], share) - expected).abs() < 1e-12, "{share}");
        }
    }
}
