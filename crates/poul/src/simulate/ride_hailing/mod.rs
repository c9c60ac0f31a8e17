//! `ride-hailing`: the setting of Section 4 of the method paper.
//!
//! Class upgrades by city tier × hour band × request class, randomised by user with unequal shares and recorded by
//! intention to treat: an upgrade happens only to who opted in and has requests in that context. Outcomes are a
//! month's GMV, zero-inflated and heavy-tailed, and the cost of the upgrades. Training rows are of March, test rows
//! of June, with shifted users and a mild drift of the effects.

mod response;
mod users;
mod variants;

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, StringArray};
use arrow_schema::{DataType, Field};
use rand::RngExt;
use rand_distr::StandardNormal;

use self::response::{UserResponse, cost_functional, gmv_functional};
use self::users::{Latent, N_NAMED_FEATURES, User, poisson};
use self::variants::{MAX_POLICIES, N_ACTIONS, N_CONTEXTS};
use super::features::{Features, factors};
use super::params::Valid;
use super::policies::PolicyTable;
use super::scenario::{Readme, Scenario};
use super::synthetic::feature_fields;
use super::world::{Contrasts, Part, Response, Setting, World, dot, mean_and_sd};
use crate::{Rng, Seed};

const N_FACTORS: usize = 6;
const CALIBRATION_ROWS: usize = 1 << 16;
/// Core eligible users: 897,946 of 3,820,637.
const CORE_SHARE: f64 = 897_946.0 / 3_820_637.0;
/// Average effects of T2 in March, as shares of the average GMV under control.
const GMV_LIFT: f64 = 0.05;
const COST_LIFT: f64 = 0.025;
/// Standard deviation of the logarithm of what one user's upgrades cost.
const COST_SIGMA: f64 = 0.25;

/// The scenario.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "ride-hailing",
    what: "class upgrades by city tier, hour and request class; GMV and cost; March and June",
    min_features: N_NAMED_FEATURES,
    n_policies: 8,
    policy_range: (3, MAX_POLICIES),
    fixed: Some((N_CONTEXTS, N_ACTIONS)),
    noise: 0.7,
    max_noise: 3.0,
    readme: Readme {
        story: "Users of a ride-hailing platform are assigned at random, with unequal shares, to a policy for a month. A \
             policy says for each context\n(city tier × hour band × request class) whether a request is upgraded: \
             Economy to Express, or Discount to Economy. `T1` does the\nfirst, `T2` does both, variants are limited \
             to some tiers or hours or to a percentage of requests. Assignment is recorded for all (intention\nto \
             treat), but an upgrade happens only to users who opted in and have requests in that context; all others \
             have an effect of exactly 0.\nTraining rows are of March and test rows of June: users have shifted and \
             the effects have drifted a little.",
        files: &[],
        columns: &[
            ("opt_in", "whether the user agreed to upgrades; without it nothing happens"),
            ("city, app_version, os", "categories; `os` has missing values"),
            ("requests_economy, requests_discount", "last month's requests by class"),
            ("requests_tier1 … requests_tier3", "the same requests by tier of the city they were made in"),
            ("share_peak, share_night", "shares of them in the peak and at night; missing without requests"),
            (
                "gmv_last_month, gmv_quarter, avg_fare",
                "past spending; `avg_fare` is missing without requests",
            ),
            (
                "tenure_days, days_since_last",
                "since sign-up and since the last ride (missing without requests)",
            ),
            ("age, coupon_rate, wait_minutes, rating", "`age` and `rating` have missing values"),
            ("wallet_balance, cancel_rate", "`wallet_balance` is heavy-tailed"),
            ("f001 …", "correlated numbers, some with missing values; no effect depends on them"),
            ("core", "core eligible: opted in and spent enough last month; 23.5 % of the users in March"),
            ("month", "`2025-03` (train) or `2025-06` (test)"),
            ("policy", "the policy assigned"),
            ("gmv", "the month's GMV: zero for the inactive, heavy-tailed for the others"),
            ("cost", "what upgrades cost that month; 0 where none happened, always 0 under `control`"),
        ],
        formula: |_| String::new(),
        roles: &[("outcome", "gmv"), ("outcome", "cost"), ("time", "month")],
        policy: Some("T2"),
        more: &[("population", "core"), ("policy", "T2")],
    },
    draw: |params, seed, task| task.carry_out(world(params, seed), false),
};

/// The platform.
pub(super) struct RideHailing {
    setting: Setting,
    features: Features,
    n_numeric: usize,
    /// Core users opted in and spent at least this much last month.
    core_spending: f64,
    gmv_scale: f64,
    /// The share of exposed requests that meet the operational constraints.
    trigger: f64,
    sigma: f64,
}

/// A block of users.
pub(super) struct Units {
    part: Part,
    users: Vec<User>,
    numeric: Vec<ArrayRef>,
    responses: [Response; 2],
    /// Expected upgrades in each context if all triggered requests were, user after user.
    upgrades: Vec<f64>,
    active: Vec<f64>,
}

/// Draws the world.
pub(super) fn world(params: &Valid, seed: Seed) -> RideHailing {
    let policies = variants::policies(params.n_policies);
    let contrasts = contrasts(&policies);
    let n_numeric = params.n_features - N_NAMED_FEATURES;
    let mut fields = users::fields();
    fields.extend(feature_fields("f", n_numeric));
    fields.push(Field::new("core", DataType::Boolean, false));
    fields.push(Field::new("month", DataType::Utf8, false));
    let mut world = RideHailing {
        setting: Setting {
            shares: variants::shares(params.n_policies),
            policies,
            outcomes: vec!["gmv", "cost"],
            contrasts,
            fields,
        },
        features: Features::draw(n_numeric, N_FACTORS, seed.child("features")),
        n_numeric,
        core_spending: 0.0,
        gmv_scale: 1.0,
        trigger: 1.0,
        sigma: params.noise,
    };
    world.calibrate(seed.child("calibration"));
    world
}

/// F of GMV and of cost.
fn contrasts(policies: &PolicyTable) -> Vec<Contrasts> {
    let mixtures = policies.mixtures();
    let gmv: Vec<_> = mixtures.iter().map(|mixture| gmv_functional(policies, mixture)).collect();
    let cost: Vec<_> = mixtures.iter().map(|mixture| cost_functional(policies, mixture)).collect();
    vec![Contrasts::against_control(&gmv), Contrasts::against_control(&cost)]
}

impl RideHailing {
    fn calibrate(&mut self, seed: Seed) {
        const T2: usize = 2;
        let hidden = shifted_factors(Part::Train, CALIBRATION_ROWS, seed);
        let users = draw_users(Part::Train, &hidden, seed);
        let contrasts = &self.setting.contrasts;
        let responses: Vec<_> = users.iter().map(|user| UserResponse::new(user, Part::Train)).collect();
        let (gmv, _) = mean_and_sd(responses.iter().map(|response| response.baseline));
        let (lift, _) = mean_and_sd(responses.iter().map(|response| dot(&response.gmv, contrasts[0].of(T2))));
        let (cost, _) =
            mean_and_sd(responses.iter().map(|response| dot(&response.cost, contrasts[1].of(T2))));
        self.gmv_scale = GMV_LIFT * gmv / lift;
        self.trigger = COST_LIFT * gmv / cost;
        let opted_in = users.iter().filter(|user| user.opt_in);
        let mut spending: Vec<f64> = opted_in.map(|user| f64::from(user.gmv_last_month)).collect();
        spending.sort_by(|a, b| b.total_cmp(a));
        let n_core = (CORE_SHARE * CALIBRATION_ROWS as f64) as usize;
        self.core_spending = spending[n_core.min(spending.len() - 1)];
    }

    fn respond(&self, users: &[User], part: Part) -> ([Response; 2], Vec<f64>, Vec<f64>) {
        let n_rows = users.len();
        let mut gmv = Response { baseline: Vec::with_capacity(n_rows), gain: Vec::new() };
        let mut cost = Response { baseline: vec![0.0; n_rows], gain: Vec::new() };
        let (mut upgrades, mut active) = (Vec::new(), Vec::with_capacity(n_rows));
        for user in users {
            let response = UserResponse::new(user, part);
            gmv.baseline.push(response.baseline);
            gmv.gain.extend(response.gmv.map(|gain| self.gmv_scale * gain));
            cost.gain.extend(response.cost.map(|cost| self.trigger * cost));
            upgrades.extend(response.exposure.map(|requests| self.trigger * requests));
            active.push(response.active);
        }
        ([gmv, cost], upgrades, active)
    }
}

impl World for RideHailing {
    type Units = Units;

    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn with_policies(mut self, policies: PolicyTable, shares: Vec<f64>) -> Self {
        self.setting.contrasts = contrasts(&policies);
        (self.setting.policies, self.setting.shares) = (policies, shares);
        self
    }

    fn units(&self, part: Part, n_rows: usize, seed: Seed) -> Units {
        let hidden = shifted_factors(part, n_rows, seed);
        let users = draw_users(part, &hidden, seed);
        let column = |idx| Arc::new(self.features.column(idx, &hidden, seed.child("features"))) as ArrayRef;
        let numeric = (0..self.n_numeric).map(column).collect();
        let (responses, upgrades, active) = self.respond(&users, part);
        Units { part, users, numeric, responses, upgrades, active }
    }

    fn columns(&self, units: &Units) -> Vec<ArrayRef> {
        let core = |user: &User| Some(user.opt_in && f64::from(user.gmv_last_month) >= self.core_spending);
        let month = if units.part == Part::Train { "2025-03" } else { "2025-06" };
        let mut columns = users::columns(&units.users);
        columns.extend(units.numeric.iter().cloned());
        columns.push(Arc::new(units.users.iter().map(core).collect::<BooleanArray>()));
        columns.push(Arc::new(StringArray::from_iter_values(units.users.iter().map(|_| month))));
        columns
    }

    fn propensities<'a>(&'a self, _units: &'a Units, _row: usize) -> &'a [f64] {
        &self.setting.shares
    }

    fn responses<'a>(&self, units: &'a Units) -> &'a [Response] {
        &units.responses
    }

    fn draw(&self, units: &Units, row: usize, policy_idx: usize, rng: &mut Rng, outcomes: &mut [f64]) {
        outcomes[0] = 0.0;
        if rng.random_bool(units.active[row]) {
            outcomes[0] =
                self.expected(units, 0, row, policy_idx) / units.active[row] * log_normal(self.sigma, rng);
        }
        let rates = &units.upgrades[row * N_CONTEXTS..(row + 1) * N_CONTEXTS];
        let n_expected = dot(rates, self.setting.contrasts[1].of(policy_idx));
        outcomes[1] = 0.0;
        if n_expected > 0.0 {
            let price = self.expected(units, 1, row, policy_idx) / n_expected;
            outcomes[1] = price * poisson(n_expected, rng) * log_normal(COST_SIGMA, rng);
        }
    }
}

/// Mean 1.
fn log_normal(sigma: f64, rng: &mut Rng) -> f64 {
    (sigma * rng.sample::<f64, _>(StandardNormal) - sigma * sigma / 2.0).exp()
}

fn shifted_factors(part: Part, n_rows: usize, seed: Seed) -> Vec<Vec<f32>> {
    let mut hidden = factors(N_FACTORS, n_rows, seed.child("factors"));
    for (factor, shift) in hidden.iter_mut().zip(Latent::shift(part)) {
        factor.iter_mut().for_each(|value| *value += shift);
    }
    hidden
}

fn draw_users(part: Part, hidden: &[Vec<f32>], seed: Seed) -> Vec<User> {
    let mut rng = seed.child("users").rng();
    let value = |factor: usize, row: usize| f64::from(hidden[factor][row]);
    (0..hidden[0].len())
        .map(|row| {
            let latent = Latent { activity: value(0, row), affluence: value(1, row), thrift: value(2, row) };
            User::draw(part, &latent, &mut rng)
        })
        .collect()
}
