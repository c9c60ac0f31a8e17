//! `delivery`: offers of a food-delivery platform by zone × part of the day, where a user meets the contexts of one zone.
//!
//! Users live in one zone and order in its parts of the day as they are used to; how often they did before the experiment
//! stands in a column for each context. The outcome is what an order brings on average, so that an offer counts by the
//! share w_i(s) of the user's orders that it meets:
//! E[Y(t) − Y(control) | x] = Σ_s w_i(s) Σ_a (Π_t − Π_control)(a|s)·v(s, a)·q_a(x).

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, StringArray};
use arrow_schema::{DataType, Field};
use rand::RngExt;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};

use super::features::{Features, factors};
use super::params::Valid;
use super::policies::{PolicyTable, Rules};
use super::scenario::{Readme, Scenario};
use super::synthetic::feature_fields;
use super::world::{Contrasts, Part, Response, Setting, World, mean_and_sd};
use crate::{Rng, Seed};

const ZONES: [&str; 6] = ["airport", "centre", "east", "harbour", "north", "west"];
/// How many live in each zone, in percent.
const ZONE_SIZES: [u32; 6] = [5, 30, 20, 10, 15, 20];
const DAYPARTS: [&str; 4] = ["breakfast", "lunch", "dinner", "night"];
/// How orders are spread over the day, in percent.
const DAYPART_SIZES: [u32; 4] = [10, 35, 40, 15];
const ACTIONS: [&str; 3] = ["none", "discount", "free_delivery"];

pub(super) const N_CONTEXTS: usize = ZONES.len() * DAYPARTS.len();
pub(super) const N_ACTIONS: usize = ACTIONS.len();
/// The columns that have names: zone, orders by context, and the four of [`Person`].
pub(super) const N_NAMED_FEATURES: usize = N_CONTEXTS + 5;
/// Offers that do something.
const N_OFFERS: usize = N_ACTIONS - 1;

const N_FACTORS: usize = 4;
const CALIBRATION_ROWS: usize = 1 << 15;
/// How much users' days differ: the smaller, the more each keeps to a part of the day.
const HABIT: f64 = 1.5;
/// Orders before the experiment, about.
const MEAN_ORDERS: f64 = 14.0;
/// Standard deviation of what orders bring without offers.
const BASELINE_SD: f64 = 2.0;

/// The scenario.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "delivery",
    what: "offers by zone and part of the day, to users who meet the contexts of one zone",
    min_features: N_NAMED_FEATURES,
    n_policies: 20,
    policy_range: (2, 20_000),
    fixed: Some((N_CONTEXTS, N_ACTIONS)),
    noise: 2.0,
    max_noise: 1_000.0,
    readme: Readme {
        story: "Users of a food-delivery platform are assigned at random to a policy, which says for each context (zone × \
             part of the day) what is offered:\nnothing, a discount or free delivery. A user orders in one zone, in \
             its parts of the day as it is used to, and meets the offers of those contexts\nalone, by the share of \
             its orders there. How often it ordered in each before the experiment stands in the columns `trips_*`.",
        files: &[],
        columns: &[
            ("zone", "where the user orders"),
            ("trips_airport_breakfast … trips_west_night", "orders in each context before the experiment"),
            ("coupon_rate", "share of past orders with a coupon"),
            ("basket", "usual size of an order"),
            ("tenure_days, wait_minutes", "since sign-up; usual wait for an order"),
            ("f001 …", "correlated numbers, some with missing values; no effect depends on them"),
            ("policy", "the policy assigned"),
            ("spend", "what an order of the month brought on average"),
        ],
        formula,
        roles: &[("outcome", "spend"), ("exposure", "'trips_*'")],
        policy: None,
        more: &[],
    },
    draw: |params, seed, task| task.carry_out(world(params, seed), false),
};

/// The platform.
pub(super) struct Delivery {
    setting: Setting,
    features: Features,
    n_numeric: usize,
    /// v(s, a) by context and offer.
    values: Vec<f64>,
    /// What an order brings in a zone, beside all else.
    zones: Vec<f64>,
    noise: f64,
}

/// A user before the experiment.
struct Person {
    zone: usize,
    orders: [f64; N_CONTEXTS],
    coupon_rate: f64,
    basket: f64,
    tenure_days: f64,
    wait_minutes: f64,
}

/// A block of users.
pub(super) struct Units {
    people: Vec<Person>,
    numeric: Vec<ArrayRef>,
    responses: [Response; 1],
}

/// Draws the world.
pub(super) fn world(params: &Valid, seed: Seed) -> Delivery {
    let policies = policies(params.n_policies, &mut seed.child("policies").rng());
    let n_held_out = (params.n_policies - 1) / 5;
    let shares = shares(params.n_policies, n_held_out);
    let n_numeric = params.n_features - N_NAMED_FEATURES;
    let mut fields = vec![Field::new("zone", DataType::Utf8, false)];
    let number = |name: String| Field::new(name, DataType::Float32, false);
    fields.extend(policies.contexts.iter().map(|context| number(format!("trips_{context}"))));
    fields
        .extend(["coupon_rate", "basket", "tenure_days", "wait_minutes"].map(|name| number(name.to_owned())));
    fields.extend(feature_fields("f", n_numeric));
    let mut rng = seed.child("values").rng();
    let mut normal = || -> f64 { rng.sample(StandardNormal) };
    let of_zone: Vec<f64> = (0..ZONES.len() * N_OFFERS).map(|_| 0.5 * normal()).collect();
    let of_daypart: Vec<f64> = (0..DAYPARTS.len() * N_OFFERS).map(|_| 0.5 * normal()).collect();
    let value = |cell: usize| {
        let (context, offer) = (cell / N_OFFERS, cell % N_OFFERS);
        let (zone, daypart) = (context / DAYPARTS.len(), context % DAYPARTS.len());
        1.0 + of_zone[zone * N_OFFERS + offer] + of_daypart[daypart * N_OFFERS + offer]
    };
    let values: Vec<f64> = (0..N_CONTEXTS * N_OFFERS).map(|cell| value(cell) + 0.3 * normal()).collect();
    let zones = ZONES.iter().map(|_| normal()).collect();
    let contrasts = contrasts(&policies);
    let mut world = Delivery {
        setting: Setting { policies, shares, outcomes: vec!["spend"], contrasts, fields },
        features: Features::draw(n_numeric, N_FACTORS, seed.child("features")),
        n_numeric,
        values,
        zones,
        noise: params.noise,
    };
    world.calibrate(seed.child("calibration"));
    world
}

fn formula(noise: f64) -> String {
    format!(
        "\n`spend` = m(x) + Σ w(s)·(what the policy offers in s)·v(s, offer)·q(x, offer) + noise, summed over contexts s, \
             w(s) being the share of the user's\norders in s. Over users and policies other than control the effect \
             has standard deviation 1; the noise is normal with standard deviation {noise}.\n"
    )
}

/// How often each offer is made in each context.
fn contrasts(policies: &PolicyTable) -> Vec<Contrasts> {
    let offers = |rules: &Rules| -> Vec<f64> {
        let cells = rules.chunks(N_ACTIONS);
        cells.flat_map(|cell| cell[1..].iter().map(|percent| f64::from(*percent) / 100.0)).collect()
    };
    let functional: Vec<Vec<f64>> = policies.rules.iter().map(offers).collect();
    vec![Contrasts::against_control(&functional)]
}

impl Delivery {
    /// Over users and policies other than control the effect has standard deviation 1.
    fn calibrate(&mut self, seed: Seed) {
        let hidden = factors(N_FACTORS, CALIBRATION_ROWS, seed.child("factors"));
        let people = draw_people(&hidden, seed);
        let [response] = self.respond(&people);
        let contrasts = &self.setting.contrasts[0];
        let effects = (0..people.len())
            .flat_map(|row| (1..self.setting.shares.len()).map(move |policy| (row, policy)))
            .map(|(row, policy)| response.effect(row, contrasts, policy));
        let (_, sd) = mean_and_sd(effects);
        self.values.iter_mut().for_each(|value| *value /= sd);
    }

    fn respond(&self, people: &[Person]) -> [Response; 1] {
        let mut response = Response { baseline: Vec::with_capacity(people.len()), gain: Vec::new() };
        for person in people {
            let share = 1.0 / person.orders.iter().sum::<f64>();
            let late: f64 =
                (0..ZONES.len()).map(|zone| person.orders[zone * DAYPARTS.len() + 3] * share).sum();
            let usual = (person.basket - 20.0) / 8.0;
            let mut level =
                self.zones[person.zone] + 1.2 * usual + 0.8 * late - 0.6 * (person.wait_minutes / 30.0);
            level += 0.7 * (person.coupon_rate * 3.0).sin();
            response.baseline.push(0.75 * BASELINE_SD * level + 20.0);
            // Who clips coupons takes discounts; large baskets hardly notice a delivery fee, new users do.
            let newness = (-person.tenure_days / 200.0).exp();
            let takes = [0.3 + 1.4 * person.coupon_rate, (0.9 - 0.4 * usual.tanh()) * (0.7 + 0.6 * newness)];
            for (orders, values) in person.orders.iter().zip(self.values.chunks(N_OFFERS)) {
                response
                    .gain
                    .extend(values.iter().zip(takes).map(|(value, takes)| orders * share * value * takes));
            }
        }
        [response]
    }
}

impl World for Delivery {
    type Units = Units;

    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn with_policies(mut self, policies: PolicyTable, shares: Vec<f64>) -> Self {
        self.setting.contrasts = contrasts(&policies);
        (self.setting.policies, self.setting.shares) = (policies, shares);
        self
    }

    fn units(&self, _part: Part, n_rows: usize, seed: Seed) -> Units {
        let hidden = factors(N_FACTORS, n_rows, seed.child("factors"));
        let people = draw_people(&hidden, seed);
        let column = |idx| Arc::new(self.features.column(idx, &hidden, seed.child("features"))) as ArrayRef;
        let numeric = (0..self.n_numeric).map(column).collect();
        let responses = self.respond(&people);
        Units { people, numeric, responses }
    }

    fn columns(&self, units: &Units) -> Vec<ArrayRef> {
        let people = &units.people;
        let numbers = |of: &dyn Fn(&Person) -> f64| -> ArrayRef {
            Arc::new(Float32Array::from_iter_values(people.iter().map(|person| of(person) as f32)))
        };
        let zone = people.iter().map(|person| ZONES[person.zone]);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from_iter_values(zone))];
        columns.extend((0..N_CONTEXTS).map(|context| numbers(&|person| person.orders[context])));
        columns.push(numbers(&|person| person.coupon_rate));
        columns.push(numbers(&|person| person.basket));
        columns.push(numbers(&|person| person.tenure_days));
        columns.push(numbers(&|person| person.wait_minutes));
        columns.extend(units.numeric.iter().cloned());
        columns
    }

    fn propensities<'a>(&'a self, _units: &'a Units, _row: usize) -> &'a [f64] {
        &self.setting.shares
    }

    fn responses<'a>(&self, units: &'a Units) -> &'a [Response] {
        &units.responses
    }

    fn draw(&self, units: &Units, row: usize, policy_idx: usize, rng: &mut Rng, outcomes: &mut [f64]) {
        let noise: f64 = rng.sample(StandardNormal);
        outcomes[0] = self.expected(units, 0, row, policy_idx) + self.noise * noise;
    }
}

/// Zones and parts of the day with their weights, and policies that offer something in some of them.
fn policies(n_policies: usize, rng: &mut Rng) -> PolicyTable {
    let pairs = || (0..ZONES.len()).flat_map(|zone| (0..DAYPARTS.len()).map(move |daypart| (zone, daypart)));
    let offered = |rng: &mut Rng| match rng.random_range(0..10) {
        0..=4 => [100, 0, 0],
        5 | 6 => [0, 100, 0],
        7 => [50, 50, 0],
        8 => [0, 0, 100],
        _ => [50, 0, 50],
    };
    let mut rules: Vec<Rules> = vec![pairs().flat_map(|_| [100, 0, 0]).collect()];
    while rules.len() < n_policies {
        rules.push(pairs().flat_map(|_| offered(rng)).collect());
    }
    let names = (0..n_policies).map(|policy| match policy {
        0 => "control".to_owned(),
        policy => format!("P{policy:02}"),
    });
    PolicyTable {
        contexts: pairs().map(|(zone, daypart)| format!("{}_{}", ZONES[zone], DAYPARTS[daypart])).collect(),
        weights: pairs().map(|(zone, daypart)| ZONE_SIZES[zone] * DAYPART_SIZES[daypart]).collect(),
        actions: ACTIONS.map(str::to_owned).to_vec(),
        names: names.collect(),
        rules,
    }
}

/// Control twice as often as the others; the last ones never.
fn shares(n_policies: usize, n_held_out: usize) -> Vec<f64> {
    let n_run = n_policies - n_held_out;
    let share = |policy: usize| match policy {
        0 => 2.0,
        policy if policy < n_run => 1.0,
        _ => 0.0,
    };
    (0..n_policies).map(|policy| share(policy) / (n_run + 1) as f64).collect()
}

fn draw_people(hidden: &[Vec<f32>], seed: Seed) -> Vec<Person> {
    let mut rng = seed.child("people").rng();
    let value = |factor: usize, row: usize| f64::from(hidden[factor][row]);
    (0..hidden[0].len())
        .map(|row| Person::draw([value(0, row), value(1, row), value(2, row)], &mut rng))
        .collect()
}

impl Person {
    fn draw([activity, affluence, thrift]: [f64; 3], rng: &mut Rng) -> Self {
        let mut place = rng.random_range(0..ZONE_SIZES.iter().sum::<u32>());
        let mut zone = 0;
        while place >= ZONE_SIZES[zone] {
            place -= ZONE_SIZES[zone];
            zone += 1;
        }
        // Shares of the day by a Dirichlet around those of all.
        let habit = DAYPART_SIZES.map(|size| {
            let shape = HABIT * f64::from(size) / 25.0;
            Gamma::new(shape, 1.0).map_or(1.0, |gamma| gamma.sample(rng)) + 1e-6
        });
        let total: f64 = habit.iter().sum();
        let rate = MEAN_ORDERS * (0.6 * activity - 0.18).exp();
        let mut orders = [0.0; N_CONTEXTS];
        for (daypart, own) in habit.iter().enumerate() {
            let mean = rate * own / total;
            orders[zone * DAYPARTS.len() + daypart] =
                Poisson::new(mean).map_or(0.0, |poisson| poisson.sample(rng));
        }
        // Everybody ordered once, or would not be a user.
        if orders.iter().sum::<f64>() == 0.0 {
            orders[zone * DAYPARTS.len() + rng.random_range(0..DAYPARTS.len())] = 1.0;
        }
        let noise = |rng: &mut Rng| -> f64 { rng.sample(StandardNormal) };
        Self {
            zone,
            orders,
            coupon_rate: 1.0 / (1.0 + (-1.2 * thrift - 0.4 * noise(rng)).exp()),
            basket: 20.0 + 8.0 * (0.8 * affluence + 0.6 * noise(rng)),
            tenure_days: (500.0 * rng.random::<f64>()).round(),
            wait_minutes: 15.0 + 30.0 * rng.random::<f64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::Simulation;
    use super::super::world::dot;
    use super::*;

    fn world_of(seed: u64) -> Delivery {
        let simulation =
            Simulation { scenario: "delivery".into(), features: Some(40), ..Simulation::default() };
        world(&simulation.check().unwrap(), Seed::new(seed))
    }

    #[test]
    fn users_meet_the_contexts_of_their_zone_alone() {
        let world = world_of(1);
        let units = world.units(Part::Test, 500, Seed::new(2));
        for person in &units.people {
            let met = person.orders.iter().enumerate().filter(|(_, orders)| **orders > 0.0);
            assert!(met.clone().all(|(context, _)| context / DAYPARTS.len() == person.zone));
            assert!(met.count() > 0);
        }
    }

    #[test]
    fn an_offer_that_a_user_never_meets_does_nothing() {
        let world = world_of(3);
        let units = world.units(Part::Test, 200, Seed::new(4));
        let rules = &world.setting.policies.rules;
        for (row, person) in units.people.iter().enumerate() {
            for (policy, own) in rules.iter().enumerate() {
                let cells = own.chunks(N_ACTIONS).zip(&person.orders);
                let meets_none = cells.clone().all(|(cell, orders)| *orders == 0.0 || cell[0] == 100);
                let effect = world.effect(&units, 0, row, policy);
                assert!(!meets_none || effect == 0.0, "{row} {policy}: {effect}");
            }
        }
        let effects = (0..200).flat_map(|row| (1..rules.len()).map(move |policy| (row, policy)));
        let (_, sd) = mean_and_sd(effects.map(|(row, policy)| world.effect(&units, 0, row, policy)));
        assert!((0.7..1.4).contains(&sd), "{sd}");
        assert!((dot(&world.setting.shares, &vec![1.0; rules.len()]) - 1.0).abs() < 1e-12);
    }
}
