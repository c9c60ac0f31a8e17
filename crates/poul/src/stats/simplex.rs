//! The least value of a function of a few variables without its gradient (Nelder and Mead 1965).

/// Where `f` is least near `start`, and its value there. `step` is the size of the first simplex; values that are not
/// finite count as the worst. The same function gives the same bits.
pub(crate) fn minimise(
    start: &[f64],
    step: f64,
    n_steps: usize,
    mut f: impl FnMut(&[f64]) -> f64,
) -> (Vec<f64>, f64) {
    let n = start.len();
    let mut value = |at: &[f64]| {
        let value = f(at);
        if value.is_finite() { value } else { f64::MAX }
    };
    let mut corners: Vec<(Vec<f64>, f64)> = vec![(start.to_vec(), value(start))];
    for axis in 0..n {
        let mut at = start.to_vec();
        at[axis] += step;
        let own = value(&at);
        corners.push((at, own));
    }
    let along = |from: &[f64], to: &[f64], share: f64| -> Vec<f64> {
        from.iter().zip(to).map(|(a, b)| a + share * (b - a)).collect()
    };
    for _ in 0..n_steps {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (worst, worst_value) = corners[n].clone();
        let others = &corners[..n];
        let centre: Vec<f64> =
            (0..n).map(|axis| others.iter().map(|(at, _)| at[axis]).sum::<f64>() / n.max(1) as f64).collect();
        let reflected = along(&worst, &centre, 2.0);
        let reflected_value = value(&reflected);
        let better = if reflected_value < corners[0].1 {
            let further = along(&worst, &centre, 3.0);
            let further_value = value(&further);
            Some(if further_value < reflected_value {
                (further, further_value)
            } else {
                (reflected, reflected_value)
            })
        } else if n > 0 && reflected_value < corners[n - 1].1 {
            Some((reflected, reflected_value))
        } else {
            let inside = match reflected_value < worst_value {
                true => along(&worst, &centre, 1.5),
                false => along(&worst, &centre, 0.5),
            };
            let inside_value = value(&inside);
            (inside_value < worst_value.min(reflected_value)).then_some((inside, inside_value))
        };
        match better {
            Some(better) => corners[n] = better,
            None => {
                let best = corners[0].0.clone();
                for (at, own) in &mut corners[1..] {
                    *at = along(&best, at, 0.5);
                    *own = value(at);
                }
            }
        }
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn the_valley_of_rosenbrock_is_found() {
        let rosenbrock = |at: &[f64]| (1.0 - at[0]).powi(2) + 100.0 * (at[1] - at[0] * at[0]).powi(2);
        let (at, least) = minimise(&[-1.2, 1.0], 0.5, 200, rosenbrock);
        assert!(least < 1e-8 && (at[0] - 1.0).abs() < 1e-3 && (at[1] - 1.0).abs() < 1e-3, "{at:?}, {least}");
        // Where the function has no value it is not looked for.
        let (at, _) =
            minimise(&[2.0], 0.5, 100, |at| if at[0] > 0.0 { at[0] - at[0].ln() } else { f64::NAN });
        assert!((at[0] - 1.0).abs() < 1e-4);
    }
}
