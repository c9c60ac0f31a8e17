//! Who gains: predicted effects along the features that set rows apart, and a small tree of them.

use poul::evaluate::{Evaluation, FeatureEffect, TreeNode, WhoGains};
use serde_json::json;

use super::MOST_POLICIES;
use super::chart::{Column, Panel, Variant, axis, short_label};
use super::markup::{escape, listed, signed};
use super::page::{Part, Section};
use crate::number::{count, percent, significant};

pub(super) fn section(evaluation: &Evaluation) -> Option<Section> {
    let shown: Vec<&WhoGains> = evaluation.who_gains.iter().take(2 * MOST_POLICIES).collect();
    let mut parts = Vec::new();
    let features: Vec<Variant> = shown
        .iter()
        .flat_map(|own| own.features.iter().map(|feature| feature_variant(own, feature)))
        .collect();
    if !features.is_empty() {
        parts.push(Part::Panel(Panel {
            id: "features",
            title: "Predicted effect along a feature".to_owned(),
            how: "The mean predicted effect of the rows in each group of the feature; features are listed by how much of the \
                  differences between rows they explain."
                .to_owned(),
            keys: vec!["outcome", "policy", "feature"],
            variants: features,
            columns: vec![
                Column::new("group", 0, "customdata"),
                Column::new("effect", 0, "x"),
                Column::new("rows", 0, "rows"),
            ],
        }));
    }
    let trees: Vec<Variant> =
        shown.iter().filter(|own| !own.tree.is_empty()).map(|own| tree_variant(own)).collect();
    if !trees.is_empty() {
        parts.push(Part::Panel(Panel {
            id: "tree",
            title: "Groups of rows whose effects differ".to_owned(),
            how:
                "A small tree of the predicted effects: every line is a group with its mean predicted effect."
                    .to_owned(),
            keys: vec!["outcome", "policy"],
            variants: trees,
            columns: Vec::new(),
        }));
    }
    (!parts.is_empty()).then_some(Section { id: "who-gains", title: "Who gains?", parts })
}

fn feature_variant(own: &WhoGains, feature: &FeatureEffect) -> Variant {
    let WhoGains { outcome, policy, features, .. } = own;
    let place: Vec<usize> = (0..feature.groups.len()).collect();
    let names: Vec<String> = feature.groups.iter().map(|group| short_label(&group.label)).collect();
    let effect: Vec<f64> = feature.groups.iter().map(|group| group.effect).collect();
    let rows: Vec<usize> = feature.groups.iter().map(|group| group.rows).collect();
    let hover: Vec<String> = rows.iter().map(|rows| format!("{} rows", count(*rows as u64))).collect();
    let traces = vec![json!({
        "type": "bar", "orientation": "h", "role": "bars", "name": "effect", "x": effect, "y": place, "customdata": names,
        "rows": rows, "text": hover, "textposition": "none",
        "hovertemplate": "%{customdata}<br>effect %{x:.4~g}<br>%{text}<extra></extra>",
    })];
    let layout = json!({
        "xaxis": axis(&format!("mean predicted effect on {outcome}")),
        "yaxis": { "tickmode": "array", "tickvals": place, "ticktext": names, "autorange": "reversed", "zeroline": false },
        "height": 110 + 30 * place.len(), "bargap": 0.35,
    });
    let order: Vec<String> =
        features.iter().map(|own| format!("{} ({})", own.feature, percent(own.share))).collect();
    let ends = feature.groups.iter().map(|group| group.effect);
    let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), own| (low.min(own), high.max(own)));
    let words = format!(
        "{policy} on {outcome}, along {}: from {} to {}. Of the variance of effects the features explain: {}.",
        feature.feature,
        significant(low),
        significant(high),
        listed(&order),
    );
    Variant::chart(vec![outcome.clone(), policy.clone(), feature.feature.clone()], words, traces, layout)
}

fn tree_variant(own: &WhoGains) -> Variant {
    let share = own.tree_share.map_or_else(String::new, |share| {
        format!(" The tree explains {} of the variance of predicted effects.", percent(share))
    });
    let words = format!("{} on {}.{share}", own.policy, own.outcome);
    let roots = (0..own.tree.len()).filter(|node| own.tree[*node].parent.is_none());
    let lines: String = roots.map(|root| branch(&own.tree, root)).collect();
    let html = format!("<ul class=\"tree\">{lines}</ul>");
    Variant::html(vec![own.outcome.clone(), own.policy.clone()], words, html)
}

/// A node and what is below it. Children come after their parents, so that it ends.
fn branch(tree: &[TreeNode], node: usize) -> String {
    let TreeNode { rule, rows, effect, .. } = &tree[node];
    let below: String = (node + 1..tree.len())
        .filter(|child| tree[*child].parent == Some(node))
        .map(|child| branch(tree, child))
        .collect();
    let below = if below.is_empty() { below } else { format!("<ul>{below}</ul>") };
    let class = if *effect >= 0.0 { "up" } else { "down" };
    format!(
        "<li><span class=\"rule\">{}</span>: <span class=\"effect {class}\">{}</span> \
         <span class=\"size\">{} rows</span>{below}</li>",
        escape(rule),
        signed(Some(*effect)),
        count(*rows as u64),
    )
}
