//! What can be said of a policy before it is run: what was run near it, the rows behind its atoms, and how far its
//! effects can be from its neighbour's (Proposition 3 of the paper).

use serde::Serialize;

use super::Model;
use super::bound::OutcomeBound;
use crate::effect::{AtomSupport, Averages, Support};
use crate::policy::PolicySet;
use crate::{Error, Result, counted};

/// Settings of a certificate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CertificateParams {
    /// Training rows from which an atom, or a policy, counts as well seen. Default 100; at least 1.
    pub min_rows: u64,
    /// Policies that were run to list, nearest first. Default 3; at least 1.
    pub nearest: usize,
    /// Level of the intervals of averages. Default 0.9; between 0 and 1.
    pub level: f64,
}

impl Default for CertificateParams {
    fn default() -> Self {
        Self { min_rows: 100, nearest: 3, level: 0.9 }
    }
}

/// [`CertificateParams`] whose settings are in range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValidCertificateParams(CertificateParams);

impl CertificateParams {
    /// Checks that every setting is in range.
    pub fn check(self) -> Result<ValidCertificateParams> {
        let at_least_one = |name: &str| Error::usage(format!("`{name}` is 0")).hint("it must be at least 1");
        if self.min_rows == 0 {
            return Err(at_least_one("min_rows"));
        }
        if self.nearest == 0 {
            return Err(at_least_one("nearest"));
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            let error = Error::usage(format!("`level` is {}", self.level));
            return Err(error.hint("a level lies between 0 and 1, such as 0.9"));
        }
        Ok(ValidCertificateParams(self))
    }
}

/// What stands behind a policy, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It was run, on enough rows.
    RunBefore,
    /// All its atoms were seen in enough rows, in other combinations.
    Recombination,
    /// Some of its atoms were seen in few rows, or are known by attributes only.
    Thin,
    /// It has atoms that nothing is known of.
    Unseen,
}

/// What can be said of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// Its name.
    pub policy: String,
    /// Its training rows.
    pub rows: u64,
    /// What stands behind it.
    pub standing: Standing,
    /// The same in a sentence, with the numbers.
    pub verdict: String,
    /// Rows from which an atom counts as well seen.
    pub min_rows: u64,
    /// The policies that were run, nearest first; itself if it was.
    pub nearest: Vec<Neighbour>,
    /// Share of its mixture on atoms with at least `min_rows` rows.
    pub supported_share: f64,
    /// Share of its mixture on atoms that cannot be scored.
    pub unseen_share: f64,
    /// The atoms with fewer rows, the largest share first.
    pub weak_atoms: Vec<AtomSupport>,
    /// Its average effect over the training population against control, by outcome; empty without a control, for the
    /// control itself, and for learners that do not know how sure their averages are.
    pub averages: Vec<CertifiedAverage>,
    /// The policy that the bounds are about: the nearest with at least `min_rows` rows, or else the nearest.
    pub against: Option<String>,
    /// How far its effects can be from that one's, by outcome; empty for learners without a treatment net.
    pub bounds: Vec<OutcomeBound>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

/// The average effect of a policy on one outcome, and how sure it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CertifiedAverage {
    /// Name of the outcome.
    pub outcome: String,
    /// Name of the policy it is compared with.
    pub against: String,
    /// The average effect over the training population.
    pub effect: f64,
    /// Its standard error.
    pub se: f64,
    /// Its interval.
    pub interval: [f64; 2],
    /// The level of the interval.
    pub level: f64,
}

/// A policy that was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Neighbour {
    /// Its name.
    pub policy: String,
    /// d_Π to it.
    pub distance: f64,
    /// Its training rows.
    pub rows: u64,
}

impl Model {
    /// What can be said of a policy of `policies`, which holds the model's own and perhaps others.
    pub fn certify(
        &self,
        policies: &PolicySet,
        policy: usize,
        params: &ValidCertificateParams,
    ) -> Result<Certificate> {
        let CertificateParams { min_rows, nearest: n_nearest, level } = params.0;
        let manifest = self.manifest();
        let (policies, trained) = (&*self.weighted(policies), self.weighted(&manifest.policies));
        let support = Support::new(&trained, &manifest.policy_rows);
        let own = self.support(policies, &[policy]).remove(0);
        let mut weak_atoms = support.atoms(policies, policy);
        weak_atoms.retain(|atom| atom.rows < min_rows);
        weak_atoms.sort_by(|a, b| b.share.total_cmp(&a.share));
        let run = support.nearest_run(policies, policy, policies.len());
        let rows_of = |policy: usize| support.policy_rows(policies.name(policy));
        let neighbours = run.iter().take(n_nearest).map(|(other, distance)| Neighbour {
            policy: policies.name(*other).to_owned(),
            distance: *distance,
            rows: rows_of(*other),
        });
        let well_run = run.iter().find(|(other, _)| rows_of(*other) >= min_rows);
        let against = well_run.or(run.first()).map(|(other, _)| *other);
        let mut certificate = Certificate {
            policy: own.policy,
            rows: own.rows,
            standing: Standing::Unseen,
            verdict: String::new(),
            min_rows,
            nearest: neighbours.collect(),
            supported_share: support.supported_share(policies, policy, min_rows),
            unseen_share: own.unseen_share,
            weak_atoms,
            averages: self.certified_averages(policies, policy, level)?,
            against: against.map(|other| policies.name(other).to_owned()),
            bounds: Vec::new(),
            notes: Vec::new(),
        };
        certificate.judge();
        match (self.effects().policy_embedding(), against) {
            (Some(net), Some(other)) => {
                let apart = self.effects().averages(policies, &[policy], other, false)?;
                for outcome in self.effects().outcomes().iter().enumerate() {
                    let outcome = (outcome.0, outcome.1.as_str());
                    let mut bound = OutcomeBound::between(net, policies, [policy, other], outcome)?;
                    if let Some(averages) = &apart {
                        bound.add_average(averages[outcome.0].estimates[0].effect.abs());
                    }
                    certificate.bounds.push(bound);
                }
                certificate.note_gaps(&manifest.poul);
            }
            (None, _) => certificate.notes.push(format!(
                "the learner `{}` has no policy embedding: there is no bound on how far effects can differ",
                manifest.learner
            )),
            (_, None) => {}
        }
        Ok(certificate)
    }

    fn certified_averages(
        &self,
        policies: &PolicySet,
        policy: usize,
        level: f64,
    ) -> Result<Vec<CertifiedAverage>> {
        let Some(control) = self.manifest().control.as_deref() else { return Ok(Vec::new()) };
        let against = policies.require(control)?;
        if against == policy {
            return Ok(Vec::new());
        }
        let averages = self.effects().averages(policies, &[policy], against, false)?.unwrap_or_default();
        let certified = |(outcome, own): (&String, Averages)| {
            own.estimates.first().map(|own| CertifiedAverage {
                outcome: outcome.clone(),
                against: control.to_owned(),
                effect: own.effect,
                se: own.se,
                interval: own.interval(level),
                level,
            })
        };
        Ok(self.effects().outcomes().iter().zip(averages).filter_map(certified).collect())
    }

    /// For some policies of a set that holds the model's own, the share of the mixture on atoms with at least
    /// `min_rows` training rows.
    pub(crate) fn supported_shares(&self, policies: &PolicySet, of: &[usize], min_rows: u64) -> Vec<f64> {
        let (policies, own) = (&self.weighted(policies), self.weighted(&self.manifest().policies));
        let support = Support::new(&own, &self.manifest().policy_rows);
        of.iter().map(|policy| support.supported_share(policies, *policy, min_rows)).collect()
    }
}

impl Certificate {
    fn judge(&mut self) {
        let Self { rows, min_rows, .. } = *self;
        let weak_share = 100.0 * (1.0 - self.supported_share);
        let n_weak = self.weak_atoms.len();
        let n_rows = |rows: u64| counted(rows as usize, "row", "rows");
        let run = match rows {
            0 => "never run",
            _ => "run on few rows",
        };
        let how_many = if rows == 0 { String::new() } else { format!(" ({})", n_rows(rows)) };
        let (standing, verdict) = if self.unseen_share > 0.0 {
            let share = 100.0 * self.unseen_share;
            let text =
                format!("has atoms never seen: {share:.1} % of the policy is on them and counts as zero");
            (Standing::Unseen, text)
        } else if rows >= min_rows {
            (Standing::RunBefore, format!("run before: {} of training had this policy", n_rows(rows)))
        } else if n_weak > 0 {
            let fewest = self.weak_atoms.iter().map(|atom| atom.rows).min().unwrap_or(0);
            let text = format!(
                "leans on thin atoms: {weak_share:.1} % of the policy is on {} with fewer than {min_rows} rows \
                 (the fewest: {fewest}); {run}{how_many}",
                counted(n_weak, "atom", "atoms")
            );
            (Standing::Thin, text)
        } else {
            let text = format!(
                "recombination of well-seen atoms: each was carried by at least {min_rows} rows; {run}{how_many}"
            );
            (Standing::Recombination, text)
        };
        (self.standing, self.verdict) = (standing, verdict);
    }

    fn note_gaps(&mut self, written_by: &str) {
        if self.bounds.iter().any(|bound| bound.deciles.is_empty()) {
            self.notes.push(format!(
                "the model was written by poul {written_by}, which did not keep how strongly users respond: fit it again for \
                 bounds by decile"
            ));
        }
        let is_normalised = |bound: &OutcomeBound| bound.members.iter().any(|own| own.lipschitz.is_none());
        if self.bounds.iter().any(is_normalised) {
            self.notes.push(
                "the policy embedding normalises its hidden layer (`model.layer_norm`), so that there is no bound by distance: \
                 the bound is by the embeddings alone"
                    .to_owned(),
            );
        }
    }
}
