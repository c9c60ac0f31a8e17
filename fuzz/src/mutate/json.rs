//! A tree of JSON with some of its nodes changed: it stays JSON.

use serde_json::{Map, Value};

use super::{NUMBERS, WORDS};
use crate::random::Random;

/// Deep enough to tell who recurses, if a reader lets it in.
const DEEP: usize = 200;
/// A list that is made longer gets at most so many more.
const MOST_MORE: usize = 64;

/// Changes a few nodes of a tree.
pub(crate) fn json(random: &mut Random, tree: &mut Value) {
    let n_changes = if random.once_in(4) { 1 + random.below(8) } else { 1 };
    for _ in 0..n_changes {
        let all = count(tree);
        let mut at = random.below(all);
        // Parts taken from elsewhere in the tree fit better than any that are made up.
        let mut from = random.below(all);
        let other = node(tree, &mut from).cloned().unwrap_or_default();
        if let Some(found) = node(tree, &mut at) {
            change(random, found, other);
        }
    }
}

fn count(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(parts) => parts.iter().map(count).sum(),
        Value::Object(parts) => parts.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// The node that is so many steps away, parents first.
fn node<'t>(tree: &'t mut Value, steps: &mut usize) -> Option<&'t mut Value> {
    if *steps == 0 {
        return Some(tree);
    }
    *steps -= 1;
    match tree {
        Value::Array(parts) => parts.iter_mut().find_map(|part| node(part, steps)),
        Value::Object(parts) => parts.values_mut().find_map(|part| node(part, steps)),
        _ => None,
    }
}

fn change(random: &mut Random, found: &mut Value, other: Value) {
    if random.once_in(12) {
        *found = other;
        return;
    }
    match found {
        Value::Number(old) => *found = number(random, old.as_f64().unwrap_or(0.0)),
        Value::String(text) => *found = string(random, text),
        Value::Array(parts) if !parts.is_empty() && !random.once_in(8) => list(random, parts, other),
        Value::Object(parts) if !parts.is_empty() && !random.once_in(8) => table(random, parts, other),
        Value::Bool(flag) if random.once_in(2) => *flag = !*flag,
        _ => *found = anything(random),
    }
}

fn number(random: &mut Random, old: f64) -> Value {
    match random.below(10) {
        0..=3 => Value::from(*random.pick(NUMBERS)),
        4 => Value::from((*random.pick(NUMBERS) as i64).wrapping_neg()),
        5 => {
            Value::from(*random.pick(&[0.5, -0.5, 1e-320, 1e38, 3.5e38, 1e155, 1e300, 1.7e308, -1e308, -0.0]))
        }
        6 => Value::from(old + if random.once_in(2) { 1.0 } else { -1.0 }),
        7 if old.fract() == 0.0 && old.abs() < 1e9 => {
            Value::from(old as i64 + if random.once_in(2) { 1 } else { -1 })
        }
        8 => Value::from(-old),
        _ => anything(random),
    }
}

fn string(random: &mut Random, text: &str) -> Value {
    match random.below(6) {
        0 => Value::from(*random.pick(WORDS)),
        1 => Value::from(text.repeat(1 + random.below(50))),
        2 => Value::from(text.chars().take(random.below(text.len().max(1))).collect::<String>()),
        3 => Value::from(format!("{text}{}", random.pick(WORDS))),
        4 => Value::from(""),
        _ => anything(random),
    }
}

fn list(random: &mut Random, parts: &mut Vec<Value>, other: Value) {
    let at = random.below(parts.len());
    match random.below(7) {
        0 => drop(parts.remove(at)),
        1 => parts.truncate(at),
        2 => parts.insert(at, parts[at].clone()),
        3 => {
            let more = vec![parts[at].clone(); random.below(MOST_MORE)];
            parts.extend(more);
        }
        4 => parts.clear(),
        5 => parts.push(other),
        _ => {
            let with = random.below(parts.len());
            parts.swap(at, with);
        }
    }
}

fn table(random: &mut Random, parts: &mut Map<String, Value>, other: Value) {
    let key = parts.keys().nth(random.below(parts.len())).cloned().unwrap_or_default();
    match random.below(6) {
        0 => drop(parts.remove(&key)),
        1 => {
            let value = parts.remove(&key).unwrap_or_default();
            parts.insert((*random.pick(WORDS)).to_owned(), value);
        }
        2 => drop(parts.insert((*random.pick(WORDS)).to_owned(), other)),
        3 => drop(parts.insert(key, other)),
        4 => {
            let with = parts.keys().nth(random.below(parts.len())).cloned().unwrap_or_default();
            let (one, two) = (parts.get(&key).cloned(), parts.get(&with).cloned());
            parts.insert(key, two.unwrap_or_default());
            parts.insert(with, one.unwrap_or_default());
        }
        _ => parts.clear(),
    }
}

fn anything(random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => Value::from(random.once_in(2)),
        2 => Value::from(*random.pick(NUMBERS)),
        3 => Value::from(-1),
        4 => Value::from(random.normal() * 10_f64.powi(random.below(40) as i32 - 20)),
        5 => Value::from(*random.pick(WORDS)),
        6 => Value::Array(Vec::new()),
        7 => Value::Object(Map::new()),
        _ => {
            let depth = if random.once_in(8) { DEEP } else { 2 };
            (0..depth).fold(Value::from(1), |inner, _| Value::Array(vec![inner]))
        }
    }
}
