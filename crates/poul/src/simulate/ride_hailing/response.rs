//! What an upgrade does to a user's monthly GMV and what it costs, as functions of the user's features.
//!
//! A user is exposed in proportion to last month's requests in each context, and only after opting in: who is not
//! exposed has no effect and no cost. An upgrade that is everywhere is noticed less: GMV gains shrink by a quarter
//! of the share of requests that the policy upgrades, which is a function of its mixture.

use super::super::policies::PolicyTable;
use super::super::world::Part;
use super::users::{User, logistic};
use super::variants::{N_ACTIONS, N_CONTEXTS};

/// Newest versions explain the upgrade to the user.
const FIRST_NEW_VERSION: usize = 3;

/// F(μ_t) for GMV: the probability of the upgrade in each context, times 1 − ¼ of all that is upgraded.
pub(super) fn gmv_functional(table: &PolicyTable, mixture: &[f64]) -> Vec<f64> {
    let upgraded: f64 = mixture.chunks(N_ACTIONS).map(|atoms| atoms[1..].iter().sum::<f64>()).sum();
    cost_functional(table, mixture)
        .into_iter()
        .map(|probability| probability * (1.0 - 0.25 * upgraded))
        .collect()
}

/// F(μ_t) for cost: the probability of the upgrade in each context, α_t(s, upgrade) / w(s).
pub(super) fn cost_functional(table: &PolicyTable, mixture: &[f64]) -> Vec<f64> {
    let total: f64 = table.weights.iter().map(|&weight| f64::from(weight)).sum();
    let atoms = mixture.chunks(N_ACTIONS).zip(&table.weights);
    atoms.map(|(atoms, &weight)| atoms[1..].iter().sum::<f64>() * total / f64::from(weight)).collect()
}

/// A user's response in each context, before the scales that calibration sets.
pub(super) struct UserResponse {
    /// E[GMV(control) | x].
    pub(super) baseline: f64,
    /// P(GMV > 0 | x).
    pub(super) active: f64,
    /// Requests that could be upgraded.
    pub(super) exposure: [f64; N_CONTEXTS],
    /// GMV gained if all of them were.
    pub(super) gmv: [f64; N_CONTEXTS],
    /// What that would cost.
    pub(super) cost: [f64; N_CONTEXTS],
}

impl UserResponse {
    /// Computes the response; it drifts a little from March to June.
    pub(super) fn new(user: &User, part: Part) -> Self {
        let drift = if part == Part::Train { [1.0, 1.0] } else { [0.9, 1.05] };
        let fare = known(user.avg_fare).unwrap_or(0.0);
        let per_ride = [fare * express_gain(user) * drift[0], fare * economy_gain(user) * drift[1]];
        let mut response = Self {
            baseline: baseline(user, part),
            active: active(user),
            exposure: exposure(user),
            gmv: [0.0; N_CONTEXTS],
            cost: [0.0; N_CONTEXTS],
        };
        for context_idx in 0..N_CONTEXTS {
            let (tier, hour, class) = (context_idx / 6, context_idx / 2 % 3, context_idx % 2);
            let by_tier = [1.0, 1.15, 0.8][tier];
            let by_hour = [[1.3, 0.9, 1.1], [0.9, 1.0, 1.2]][class][hour];
            let dearer = [0.25, 0.15][class] * [1.2, 1.0, 1.1][hour];
            let exposure = response.exposure[context_idx];
            response.gmv[context_idx] = exposure * per_ride[class] * by_tier * by_hour;
            response.cost[context_idx] = exposure * fare * dearer;
        }
        response
    }
}

/// Last month's requests, spread over tier, hour and class.
fn exposure(user: &User) -> [f64; N_CONTEXTS] {
    let n_requests = user.n_requests();
    if !user.opt_in || n_requests == 0.0 {
        return [0.0; N_CONTEXTS];
    }
    let (peak, night) = (known(user.share_peak).unwrap_or(0.0), known(user.share_night).unwrap_or(0.0));
    let hours = [peak, (1.0 - peak - night).max(0.0), night];
    std::array::from_fn(|context_idx| {
        let (tier, hour, class) = (context_idx / 6, context_idx / 2 % 3, context_idx % 2);
        f64::from(user.requests[class]) * f64::from(user.by_tier[tier]) / n_requests * hours[hour]
    })
}

/// Bounded above and below by multiples of last month's spending, so that no expected GMV can be negative.
fn baseline(user: &User, part: Part) -> f64 {
    let season = if part == Part::Train { 1.0 } else { 1.03 };
    let fare = known(user.avg_fare).unwrap_or(0.0);
    let spending = 8.0 + 0.85 * fare * user.n_requests() + 0.05 * f64::from(user.gmv_quarter);
    let tilt = 0.2 * ((f64::from(user.tenure_days) - 500.0) / 500.0).tanh()
        - 0.2 * f64::from(user.coupon_rate)
        + 0.15 * centred(user.rating, 4.75, 0.4)
        - 0.2 * centred(user.days_since_last, 0.0, 15.0)
        + 0.15 * (f64::from(user.wallet_balance).ln_1p() / 4.0).tanh();
    season * spending * tilt.exp()
}

fn active(user: &User) -> f64 {
    let idle_days = known(user.days_since_last).unwrap_or(30.0);
    logistic(0.3 + 0.9 * user.n_requests().ln_1p() - 0.06 * idle_days)
}

/// Share of the fare gained by Economy-to-Express: welcome to new users and to those who wait, not to the thrifty.
fn express_gain(user: &User) -> f64 {
    let gain = 0.35 + 0.5 * novelty(user) + 0.45 * (0.4 * (f64::from(user.wait_minutes) - 4.5)).tanh()
        - 0.5 * f64::from(user.coupon_rate)
        + 0.25 * centred(user.avg_fare, 22.0, 12.0)
        - 0.15 * centred(user.age, 38.0, 12.0);
    gain.max(-0.3)
}

/// Share of the fare gained by Discount-to-Economy: welcome to those who hunt coupons, ride now, and rated low.
fn economy_gain(user: &User) -> f64 {
    let hunts = f64::from(user.coupon_rate) * (f64::from(user.requests[1]) / 4.0).tanh();
    let recent = known(user.days_since_last).map_or(0.0, |days| (-days / 7.0).exp());
    let told = if user.app_version >= FIRST_NEW_VERSION { 0.4 } else { 0.0 };
    let gain = 0.15 + 0.7 * hunts + 0.35 * recent - 0.4 * centred(user.rating, 4.75, 0.4)
        + told * novelty(user)
        - 0.3 * centred(user.avg_fare, 22.0, 12.0);
    gain.max(-0.3)
}

fn novelty(user: &User) -> f64 {
    (-f64::from(user.tenure_days) / 300.0).exp()
}

/// tanh((value − centre) / scale), 0 where the value is not known.
fn centred(value: f32, centre: f64, scale: f64) -> f64 {
    known(value).map_or(0.0, |value| ((value - centre) / scale).tanh())
}

fn known(value: f32) -> Option<f64> {
    (!value.is_nan()).then(|| f64::from(value))
}
