//! Settings of the learner.

use serde::{Deserialize, Serialize};

/// How an atom (s, a) becomes a vector φ(s, a).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embedding {
    /// A vector of its own for every atom.
    Lookup,
    /// A vector of the action, changed by the context's sensitivity: a_a + c_s ⊙ b_a.
    Additive,
    /// The additive part plus a deviation of the atom, shrunk harder.
    Hierarchical,
}

/// How h(T) is centred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centring {
    /// e_h(x) = Σ_t π(t|x) h(t) for the current h, with its gradient.
    Exact,
    /// Not at all: for comparison.
    None,
}

/// Settings of [`fit`](super::fit).
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// φ. Default hierarchical.
    pub embedding: Embedding,
    /// Width r of φ and z. Default 16.
    pub embedding_dim: usize,
    /// Width d of h and g. Default 16.
    pub effect_dim: usize,
    /// Hidden layers of g. Default 128, 64.
    pub hidden: Vec<usize>,
    /// Width of ρ's hidden layer; 0: ρ is linear. Default 32.
    pub rho_hidden: usize,
    /// Whether ρ has a linear part beside the hidden layer. Default true.
    pub rho_skip: bool,
    /// Dropout in g. Default 0.2.
    pub dropout: f32,
    /// Centring of h.
    pub centring: Centring,
    /// Members of the ensemble. Default 6.
    pub members: usize,
    /// Learning rate. Default 2e-3.
    pub learning_rate: f32,
    /// Weight decay of g. Default 0.05.
    pub decay_g: f32,
    /// Weight decay of ρ. Default 0.05.
    pub decay_rho: f32,
    /// Weight decay of the shared parts of φ. Default 0.05.
    pub decay_phi: f32,
    /// Weight decay of the atoms' deviations. Default 0.5.
    pub decay_delta: f32,
    /// Start of the atoms' deviations, relative to the shared part. Default 0.3.
    pub delta_start: f32,
    /// Penalty on the sum of the gates through which features enter g. Default 1e-3; 0: no gates.
    pub gate_penalty: f32,
    /// Average of weights. Default 0.999.
    pub average: f32,
    /// Gradient clipping. Default 5.
    pub clip_norm: Option<f32>,
    /// Schedule.
    pub schedule: crate::net::Schedule,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            embedding: Embedding::Hierarchical,
            embedding_dim: 16,
            effect_dim: 16,
            hidden: vec![128, 64],
            rho_hidden: 32,
            rho_skip: true,
            dropout: 0.2,
            centring: Centring::Exact,
            members: 6,
            learning_rate: 2e-3,
            decay_g: 0.05,
            decay_rho: 0.05,
            decay_phi: 0.05,
            decay_delta: 0.5,
            delta_start: 0.3,
            gate_penalty: 1e-3,
            average: 0.999,
            clip_norm: Some(5.0),
            schedule: crate::net::Schedule::default(),
        }
    }
}
