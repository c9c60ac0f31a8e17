//! Policies of a world: contexts with weights, actions, and who does what where; written in the human form.

use std::fmt::Write as _;

/// Policies over named contexts and actions, with probabilities in whole percent so that the text is exact.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicyTable {
    /// Names of the contexts.
    pub(super) contexts: Vec<String>,
    /// Weights of the contexts, not normalised.
    pub(super) weights: Vec<u32>,
    /// Names of the actions.
    pub(super) actions: Vec<String>,
    /// Names of the policies, control first.
    pub(super) names: Vec<String>,
    /// What each policy does.
    pub(super) rules: Vec<Rules>,
}

/// Percentages by context and action: context after context, each adding up to 100.
pub(super) type Rules = Vec<u8>;

impl PolicyTable {
    /// α_t(s, a) = w(s) Π_t(a | s) of any rules, context after context.
    pub(super) fn mixture_of(&self, rules: &[u8]) -> Vec<f64> {
        let total: f64 = self.weights.iter().map(|&weight| f64::from(weight)).sum();
        let cells = rules.chunks(self.actions.len()).zip(&self.weights);
        cells
            .flat_map(|(cell, &weight)| {
                cell.iter().map(move |&percent| f64::from(weight) / total * f64::from(percent) / 100.0)
            })
            .collect()
    }

    /// α_t of every policy.
    pub(super) fn mixtures(&self) -> Vec<Vec<f64>> {
        self.rules.iter().map(|rules| self.mixture_of(rules)).collect()
    }

    /// The policy file: `[contexts]`, then one table for each policy.
    pub(super) fn to_toml(&self) -> String {
        let mut text = String::from("[contexts]\n");
        for (context, weight) in self.contexts.iter().zip(&self.weights) {
            line(&mut text, &key(context), &weight.to_string());
        }
        for (name, rules) in self.names.iter().zip(&self.rules) {
            text.push_str("\n[policies.");
            text.push_str(&key(name));
            text.push_str("]\n");
            self.write_rules(&mut text, rules);
        }
        text
    }

    /// The commonest certain action stands for every context not named.
    fn write_rules(&self, text: &mut String, rules: &[u8]) {
        let cells: Vec<&[u8]> = rules.chunks(self.actions.len()).collect();
        let certain = |cell: &[u8]| cell.iter().position(|&percent| percent == 100);
        let mut counts = vec![0_usize; self.actions.len()];
        for action_idx in cells.iter().filter_map(|cell| certain(cell)) {
            counts[action_idx] += 1;
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let rest = counts.iter().position(|&count| count == most && count > 0);
        if let Some(action_idx) = rest {
            line(text, "\"*\"", &quoted(&self.actions[action_idx]));
        }
        for (context, cell) in self.contexts.iter().zip(&cells) {
            match certain(cell) {
                Some(action_idx) if Some(action_idx) == rest => {}
                Some(action_idx) => line(text, &key(context), &quoted(&self.actions[action_idx])),
                None => line(text, &key(context), &self.mixed(cell)),
            }
        }
    }

    fn mixed(&self, cell: &[u8]) -> String {
        let parts: Vec<String> = self
            .actions
            .iter()
            .zip(cell)
            .filter(|(_, percent)| **percent > 0)
            .map(|(action, &percent)| format!("{} = {}", key(action), f64::from(percent) / 100.0))
            .collect();
        format!("{{ {} }}", parts.join(", "))
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    let infallible = writeln!(text, "{key} = {value}");
    debug_assert!(infallible.is_ok(), "writing to a string cannot fail");
}

/// The names made here are letters, digits and underscores; anything else is quoted all the same.
fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if bare { name.to_string() } else { quoted(name) }
}

fn quoted(name: &str) -> String {
    toml::Value::from(name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> PolicyTable {
        PolicyTable {
            contexts: vec!["peak".into(), "off peak".into(), "night".into()],
            weights: vec![3, 1, 1],
            actions: vec!["none".into(), "up".into(), "down".into()],
            names: vec!["control".into(), "T2".into(), "mixed".into()],
            rules: vec![
                vec![100, 0, 0, 100, 0, 0, 100, 0, 0],
                vec![0, 100, 0, 100, 0, 0, 35, 60, 5],
                vec![5, 95, 0, 50, 50, 0, 35, 60, 5],
            ],
        }
    }

    #[test]
    fn text_reads_as_written() {
        assert_eq!(
            table().to_toml(),
            "[contexts]\npeak = 3\n\"off peak\" = 1\nnight = 1\n\n\
             [policies.control]\n\"*\" = \"none\"\n\n\
             [policies.T2]\n\"*\" = \"none\"\npeak = \"up\"\nnight = { none = 0.35, up = 0.6, down = 0.05 }\n\n\
             [policies.mixed]\npeak = { none = 0.05, up = 0.95 }\n\"off peak\" = { none = 0.5, up = 0.5 }\n\
             night = { none = 0.35, up = 0.6, down = 0.05 }\n"
        );
    }

    #[test]
    fn mixtures_are_distributions() {
        for mixture in table().mixtures() {
            assert!((mixture.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert_eq!(table().mixtures()[1][1], 0.6);
    }
}
