//! Users of a ride-hailing platform before the month begins: who they are and how they rode last month.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, StringArray};
use arrow_schema::{DataType, Field};
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Poisson, StandardNormal};

use super::super::world::Part;
use crate::Rng;

/// Cities, four to a tier.
const CITIES: [&str; 12] = [
    "beijing",
    "shanghai",
    "guangzhou",
    "shenzhen",
    "chengdu",
    "hangzhou",
    "wuhan",
    "xian",
    "foshan",
    "luoyang",
    "weifang",
    "zhuhai",
];
const VERSIONS: [&str; 5] = ["6.8", "6.9", "7.0", "7.1", "7.2"];
const SYSTEMS: [&str; 2] = ["android", "ios"];

/// One user; NaN is a value that is not known.
pub(super) struct User {
    city: usize,
    system: Option<usize>,
    pub(super) opt_in: bool,
    /// Economy and discount requests of last month.
    pub(super) requests: [f32; 2],
    /// The same requests by city tier.
    pub(super) by_tier: [f32; 3],
    pub(super) share_peak: f32,
    pub(super) share_night: f32,
    pub(super) tenure_days: f32,
    pub(super) gmv_last_month: f32,
    pub(super) gmv_quarter: f32,
    pub(super) avg_fare: f32,
    pub(super) days_since_last: f32,
    pub(super) app_version: usize,
    pub(super) age: f32,
    pub(super) coupon_rate: f32,
    pub(super) wait_minutes: f32,
    pub(super) rating: f32,
    pub(super) wallet_balance: f32,
    cancel_rate: f32,
}

/// What makes a user, hidden from the table: the first factors behind the numeric features.
pub(super) struct Latent {
    pub(super) activity: f64,
    pub(super) affluence: f64,
    pub(super) thrift: f64,
}

impl Latent {
    /// From March to June people ride more, and are a little richer.
    pub(super) fn shift(part: Part) -> [f32; 3] {
        match part {
            Part::Train => [0.0, 0.0, 0.0],
            Part::Test => [0.12, 0.06, -0.05],
        }
    }
}

impl User {
    /// Draws a user; June has more users outside the largest cities, and newer app versions.
    pub(super) fn draw(part: Part, latent: &Latent, rng: &mut Rng) -> Self {
        let Latent { activity, affluence, thrift } = *latent;
        let tiers = if part == Part::Train { [0.5, 0.3, 0.2] } else { [0.46, 0.31, 0.23] };
        let tier = choose(&tiers, rng);
        let city = 4 * tier + choose(&[0.4, 0.3, 0.2, 0.1], rng);
        let versions =
            if part == Part::Train { [0.1, 0.2, 0.4, 0.25, 0.05] } else { [0.04, 0.1, 0.2, 0.36, 0.3] };
        let opt_in = rng.random_bool(logistic(-0.45 + 0.35 * activity + 0.2 * thrift));

        let economy = poisson((0.9 + 0.7 * activity + 0.25 * affluence - 0.1 * thrift).exp(), rng);
        let discount = poisson((0.4 + 0.6 * activity + 0.5 * thrift).exp(), rng);
        let n_requests = economy + discount;
        let by_tier = travel(n_requests as usize, tier, rng);
        let rode = n_requests > 0.0;
        let hours = [0.35_f64, 0.45, 0.2].map(|share| share * (0.5 * normal(rng)).exp());
        let hour_sum: f64 = hours.iter().sum();
        let fare = (3.1 + 0.25 * affluence - 0.12 * tier as f64 + 0.25 * normal(rng)).exp();
        let spent = fare * n_requests * (0.25 * normal(rng)).exp();
        let quarter = 2.0 * fare * (0.9 + 0.7 * activity + 0.4 * normal(rng)).exp() + spent;
        Self {
            city,
            system: (!rng.random_bool(0.02)).then(|| choose(&[0.6, 0.4], rng)),
            opt_in,
            requests: [economy as f32, discount as f32],
            by_tier,
            share_peak: known(rode, hours[0] / hour_sum, 100.0),
            share_night: known(rode, hours[2] / hour_sum, 100.0),
            tenure_days: (5.8 + 0.2 * activity + 0.9 * normal(rng)).exp().clamp(1.0, 4000.0).floor() as f32,
            gmv_last_month: rounded(spent, 100.0),
            gmv_quarter: rounded(quarter, 100.0),
            avg_fare: known(rode, fare, 100.0),
            days_since_last: known(rode, (30.0 / (n_requests + 1.0) * exponential(rng)).min(30.0), 1.0),
            app_version: choose(&versions, rng),
            age: known(!rng.random_bool(0.25), (36.0 + 10.0 * normal(rng)).clamp(18.0, 75.0), 1.0),
            coupon_rate: rounded(logistic(-0.6 + 0.9 * thrift + 0.4 * normal(rng)), 1000.0),
            wait_minutes: rounded((1.35 + 0.15 * tier as f64 + 0.3 * normal(rng)).exp(), 10.0),
            rating: known(!rng.random_bool(0.12), (4.75 + 0.2 * normal(rng)).clamp(3.0, 5.0), 100.0),
            wallet_balance: if rng.random_bool(0.4) { 0.0 } else { rounded(pareto(10.0, 1.5, rng), 100.0) },
            cancel_rate: rounded(logistic(-2.2 + 0.7 * normal(rng)), 1000.0),
        }
    }

    /// Requests of last month.
    pub(super) fn n_requests(&self) -> f64 {
        f64::from(self.requests[0] + self.requests[1])
    }
}

/// Fields of the named features.
pub(super) fn fields() -> Vec<Field> {
    let number = |name| Field::new(name, DataType::Float32, true);
    let text = |name| Field::new(name, DataType::Utf8, true);
    let mut fields = vec![Field::new("opt_in", DataType::Boolean, false), text("city")];
    fields.extend(["app_version", "os"].map(text));
    fields.extend(NUMBERS.map(|(name, _)| number(name)));
    fields
}

/// Columns of the named features, in the order of [`fields`].
pub(super) fn columns(users: &[User]) -> Vec<ArrayRef> {
    let cities = users.iter().map(|user| CITIES[user.city]);
    let versions = users.iter().map(|user| VERSIONS[user.app_version]);
    let systems = users.iter().map(|user| user.system.map(|system| SYSTEMS[system]));
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(users.iter().map(|user| Some(user.opt_in)).collect::<BooleanArray>()),
        Arc::new(StringArray::from_iter_values(cities)),
        Arc::new(StringArray::from_iter_values(versions)),
        Arc::new(systems.collect::<StringArray>()),
    ];
    for (_, value) in NUMBERS {
        let values = users.iter().map(value).map(|value| (!value.is_nan()).then_some(value));
        columns.push(Arc::new(values.collect::<Float32Array>()));
    }
    columns
}

type Number = (&'static str, fn(&User) -> f32);

const NUMBERS: [Number; 18] = [
    ("requests_economy", |user| user.requests[0]),
    ("requests_discount", |user| user.requests[1]),
    ("requests_tier1", |user| user.by_tier[0]),
    ("requests_tier2", |user| user.by_tier[1]),
    ("requests_tier3", |user| user.by_tier[2]),
    ("share_peak", |user| user.share_peak),
    ("share_night", |user| user.share_night),
    ("tenure_days", |user| user.tenure_days),
    ("gmv_last_month", |user| user.gmv_last_month),
    ("gmv_quarter", |user| user.gmv_quarter),
    ("avg_fare", |user| user.avg_fare),
    ("days_since_last", |user| user.days_since_last),
    ("age", |user| user.age),
    ("coupon_rate", |user| user.coupon_rate),
    ("wait_minutes", |user| user.wait_minutes),
    ("rating", |user| user.rating),
    ("wallet_balance", |user| user.wallet_balance),
    ("cancel_rate", |user| user.cancel_rate),
];

/// How many features have a name; the others are `f001`, `f002`, ….
pub(in super::super) const N_NAMED_FEATURES: usize = NUMBERS.len() + 4;

/// One request in ten is made away from home.
fn travel(n_requests: usize, home: usize, rng: &mut Rng) -> [f32; 3] {
    let mut by_tier = [0.0; 3];
    for _ in 0..n_requests {
        let away = if rng.random_bool(0.1) { rng.random_range(1..3) } else { 0 };
        by_tier[(home + away) % 3] += 1.0;
    }
    by_tier
}

fn known(is_known: bool, value: f64, steps: f64) -> f32 {
    if is_known { rounded(value, steps) } else { f32::NAN }
}

fn rounded(value: f64, steps: f64) -> f32 {
    ((value * steps).round() / steps) as f32
}

fn choose(probabilities: &[f64], rng: &mut Rng) -> usize {
    super::super::run::choose(probabilities, rng.random())
}

/// 1 / (1 + e⁻ˣ).
pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// A count with the given mean; 0 where the mean is.
pub(super) fn poisson(mean: f64, rng: &mut Rng) -> f64 {
    Poisson::new(mean).map_or(0.0, |poisson| poisson.sample(rng))
}

fn normal(rng: &mut Rng) -> f64 {
    rng.sample(StandardNormal)
}

fn exponential(rng: &mut Rng) -> f64 {
    rng.sample(Exp1)
}

fn pareto(least: f64, exponent: f64, rng: &mut Rng) -> f64 {
    least * (exponential(rng) / exponent).exp()
}
