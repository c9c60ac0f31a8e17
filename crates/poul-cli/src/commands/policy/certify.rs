//! `poul policy certify`: what a model can say of a policy before it is run.

use poul::model::{Certificate, CertificateParams, Model, OutcomeBound};
use poul::{Error, Progress, Result};
use poul_report::number::{count, optional, percent, significant};
use serde_json::json;

use crate::args::PolicyCertify;
use crate::commands::{JsonTarget, effect};
use crate::progress::Terminal;
use crate::table::{Table, shortened, shortened_beside};

pub(super) fn run(args: &PolicyCertify, terminal: &Terminal) -> Result<()> {
    let params = CertificateParams { min_rows: args.min_rows, nearest: args.nearest, level: args.level };
    let params = params.check().map_err(|error| error.at("poul policy certify"))?;
    let json = JsonTarget::open(args.json.as_deref())?;
    let model = Model::load(&args.model)?;
    let (policies, added) = effect::policies(&model, &args.policy_files)?;
    let names = if args.names.is_empty() { added } else { args.names.clone() };
    if names.is_empty() {
        return Err(Error::usage("which policy is to be certified?")
            .hint("name one of the model's, or give new ones: --policies new.toml"));
    }
    let mut certificates = Vec::with_capacity(names.len());
    for name in &names {
        let (policies, policy) = effect::find(&model, &policies, name)?;
        certificates.push(model.certify(&policies, policy, &params)?);
    }
    for certificate in &certificates {
        certificate.notes.iter().for_each(|note| terminal.warn(note));
    }
    let text = || certificates.iter().map(text).collect::<Vec<_>>().join("\n");
    json.write(&json!({ "certificates": certificates }), text)
}

fn text(certificate: &Certificate) -> String {
    let Certificate { policy, verdict, min_rows, .. } = certificate;
    let mut text = format!("{}: {verdict}\n\n", shortened(policy));
    let mut nearest = Table::new(["nearest policies that were run", "distance", "training rows"]);
    for own in &certificate.nearest {
        nearest.row([shortened_beside(&own.policy, policy), significant(own.distance), count(own.rows)]);
    }
    text += &format!("{nearest}\n");
    text += &format!(
        "{} of the mixture is on atoms with at least {} training rows, {} on atoms never seen\n",
        percent(certificate.supported_share),
        count(*min_rows),
        percent(certificate.unseen_share),
    );
    text += &weak_atoms(certificate);
    text += &averages(certificate);
    if let Some(against) = &certificate.against {
        certificate.bounds.iter().for_each(|own| text += &bound(own, certificate, against));
    }
    if certificate.bounds.is_empty() {
        text += "\nno bound: the learner has no policy embedding\n";
    }
    text
}

/// Its average effects, with their intervals.
fn averages(certificate: &Certificate) -> String {
    let Some(first) = certificate.averages.first() else { return String::new() };
    let mut table = Table::new(["outcome", "average effect", "standard error", "interval"]);
    for own in &certificate.averages {
        let [low, high] = own.interval.map(significant);
        let interval = format!("{low} … {high}");
        table.row([own.outcome.clone(), significant(own.effect), significant(own.se), interval]);
    }
    let (against, level) = (shortened(&first.against), percent(first.level));
    format!("\naverage effect against {against} over the training population, interval at {level}\n{table}")
}

fn weak_atoms(certificate: &Certificate) -> String {
    const SHOWN: usize = 10;
    if certificate.weak_atoms.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["context", "action", "share of the policy", "training rows"]).left(2);
    for atom in certificate.weak_atoms.iter().take(SHOWN) {
        table.row([atom.context.clone(), atom.action.clone(), percent(atom.share), count(atom.rows)]);
    }
    let more = match certificate.weak_atoms.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("and {more} more\n"),
    };
    format!("\n{table}{more}")
}

fn bound(bound: &OutcomeBound, certificate: &Certificate, against: &str) -> String {
    let range = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        match values.as_slice() {
            [] => "unknown".to_owned(),
            [only] => significant(*only),
            _ => format!("{} to {}", significant(low), significant(high)),
        }
    };
    let members = &bound.members;
    let lipschitz = range(members.iter().filter_map(|own| own.lipschitz).collect());
    let embedding = range(members.iter().map(|own| own.embedding_bound).collect());
    let moved = range(members.iter().map(|own| own.moved).collect());
    let (policy, outcome) = (shortened(&certificate.policy), &bound.outcome);
    let mut text = format!(
        "\n{outcome}: the most by which the effect of {policy} can differ from that of {}\n\
         policy embedding: Lipschitz constant {lipschitz}, largest action vector {embedding}, moved by {moved}",
        shortened(against)
    );
    text += if members.len() > 1 { " over members\n" } else { "\n" };
    let mut table = Table::new(["decile of heterogeneity", "size", "by distance", "by embedding", "typical"]);
    for own in &bound.deciles {
        table.row([
            own.decile.to_string(),
            significant(own.gain),
            optional(own.by_distance),
            significant(own.by_embedding),
            significant(own.typical),
        ]);
    }
    if !table.is_empty() {
        text += &table.to_string();
    }
    text
}
