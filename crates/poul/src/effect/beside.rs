//! Names of policies where there is little room: of a combination of many columns, what sets it apart.

use super::combination::combination;
use crate::policy::combination_name;

/// A policy's name in at most `most` characters. Of a combination of factorial columns that is longer, only the values are
/// told that `against` does not have, after `…`; of any other name, its beginning.
///
/// ```
/// let (control, policy) = ("Age=30, Gender=male, Job=cook", "Age=30, Gender=male, Job=nurse");
/// assert_eq!(poul::effect::name_beside(policy, control, 100), policy);
/// assert_eq!(poul::effect::name_beside(policy, control, 20), "… Job=nurse");
/// ```
pub fn name_beside(name: &str, against: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let differing: Vec<String> = match (combination(name), combination(against)) {
        (Ok(own), Ok(base)) => own
            .iter()
            .filter(|pair| !base.contains(pair))
            .map(|(context, value)| combination_name([(context.as_str(), value.as_str())]))
            .collect(),
        _ => Vec::new(),
    };
    match differing.is_empty() {
        true => cut(name, most),
        false => as_many_as_fit(&differing, most),
    }
}

fn as_many_as_fit(pairs: &[String], most: usize) -> String {
    let told = |n: usize| match pairs.len() - n {
        0 => format!("… {}", pairs.join(", ")),
        more => format!("… {} and {more} more", pairs[..n].join(", ")),
    };
    let fits = |n: &usize| told(*n).chars().count() <= most;
    let n = (1..=pairs.len()).rev().find(fits).unwrap_or(1);
    cut(&told(n), most)
}

fn cut(name: &str, most: usize) -> String {
    match name.chars().count() > most {
        true => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(value: &str) -> Vec<(String, &str)> {
        (0..20).map(|at| (format!("attribute_{at:02}"), value)).collect()
    }

    #[test]
    fn what_differs_is_told_and_nothing_is_longer_than_allowed() {
        let name = |pairs: &[(String, &str)]| combination_name(pairs.iter().map(|(c, v)| (c.as_str(), *v)));
        let control = name(&pairs("low"));
        let mut one = pairs("low");
        one[19].1 = "high";
        assert_eq!(name_beside(&name(&one), &control, 60), "… attribute_19=high");
        one[18].1 = "very, very";
        assert_eq!(
            name_beside(&name(&one), &control, 60),
            "… attribute_18=\"very, very\", attribute_19=high"
        );
        assert_eq!(name_beside(&name(&one), &control, 40), "… attribute_18=\"very, very\" and 1 more");
        let all = name_beside(&name(&pairs("high")), &control, 60);
        assert_eq!(all, "… attribute_00=high, attribute_01=high and 18 more");
        assert_eq!(name_beside(&control, &control, 12), "attribute_0…");
        assert_eq!(name_beside(&"é".repeat(50), "control", 10), format!("{}…", "é".repeat(9)));
        for most in 1..80 {
            assert!(name_beside(&name(&one), &control, most).chars().count() <= most);
        }
    }
}
