//! The R-loss, the method's validation objective: mean (Y − m(X) − g(X)ᵀ(h(T) − e_h(X)))², and its score.

use super::definition::{About, Better, Definition};

pub(super) const R_LOSS: Definition = Definition {
    better: Better::Less,
    ..Definition::new("r_loss", "R-loss", About::Sizes, |pass| pass.residual.r_loss())
};

pub(super) const R_SCORE: Definition =
    Definition::new("r_score", "R-score", About::Sizes, |pass| pass.residual.r_score());

/// Weighted mean squared difference between the residual outcome Y − m̂(X) and the predicted centred effect.
///
/// For two arms the centred effect is (W − e)·τ̂. `None` where lengths differ or the weights sum to zero.
pub fn r_loss(residual: &[f64], centred_effect: &[f64], weight: Option<&[f64]>) -> Option<f64> {
    if residual.len() != centred_effect.len() || weight.is_some_and(|weight| weight.len() != residual.len()) {
        return None;
    }
    let (mut mass, mut loss) = (0.0, 0.0);
    for (row, (residual, effect)) in residual.iter().zip(centred_effect).enumerate() {
        let weight = weight.map_or(1.0, |weight| weight[row]);
        mass += weight;
        loss += weight * (residual - effect) * (residual - effect);
    }
    let loss = loss / mass;
    loss.is_finite().then_some(loss)
}

/// 1 − R-loss / R-loss of a constant effect: above 0 the heterogeneity is real, below it is worse than none.
///
/// `constant` is the centred effect that the constant-effect model predicts; for two arms,
/// [`constant_effect`] times (W − e).
pub fn r_score(
    residual: &[f64],
    centred_effect: &[f64],
    constant: &[f64],
    weight: Option<&[f64]>,
) -> Option<f64> {
    let reference = r_loss(residual, constant, weight)?;
    let loss = r_loss(residual, centred_effect, weight)?;
    (reference > 0.0).then(|| 1.0 - loss / reference)
}

/// The constant effect of least R-loss: Σ W̃Ỹ / Σ W̃², W̃ = W − e the arm residual.
pub fn constant_effect(residual: &[f64], arm_residual: &[f64], weight: Option<&[f64]>) -> Option<f64> {
    if residual.len() != arm_residual.len() || weight.is_some_and(|weight| weight.len() != residual.len()) {
        return None;
    }
    let mut sums = ResidualSums::default();
    for (row, (residual, arm)) in residual.iter().zip(arm_residual).enumerate() {
        sums.add(weight.map_or(1.0, |weight| weight[row]), *residual, *arm, 0.0);
    }
    sums.constant_effect()
}

/// Weighted sums from which loss and score of a two-arm comparison follow.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::evaluate) struct ResidualSums {
    mass: f64,
    loss: f64,
    residual_squared: f64,
    residual_by_arm: f64,
    arm_squared: f64,
}

impl ResidualSums {
    #[inline(always)]
    pub(super) fn add(&mut self, mass: f64, residual: f64, arm_residual: f64, effect: f64) {
        let error = residual - arm_residual * effect;
        self.mass += mass;
        self.loss += mass * error * error;
        self.residual_squared += mass * residual * residual;
        self.residual_by_arm += mass * residual * arm_residual;
        self.arm_squared += mass * arm_residual * arm_residual;
    }

    /// What the residuals of a row that stands for many scatter about their mean.
    #[inline(always)]
    pub(super) fn add_variance(&mut self, mass: f64, variance: f64) {
        self.loss += mass * variance;
        self.residual_squared += mass * variance;
    }

    /// Adds rows whose sums are known: of weight, squared errors, squared residuals, residual times arm residual, squared arm
    /// residuals.
    pub(in crate::evaluate) fn add_sums(
        &mut self,
        mass: f64,
        loss: f64,
        residual_squared: f64,
        residual_by_arm: f64,
        arm_squared: f64,
    ) {
        self.mass += mass;
        self.loss += loss;
        self.residual_squared += residual_squared;
        self.residual_by_arm += residual_by_arm;
        self.arm_squared += arm_squared;
    }

    pub(in crate::evaluate) fn r_loss(&self) -> Option<f64> {
        (self.mass > 0.0).then(|| self.loss / self.mass)
    }

    pub(in crate::evaluate) fn r_score(&self) -> Option<f64> {
        let reference = self.residual_squared - self.constant_effect()? * self.residual_by_arm;
        (reference > 0.0).then(|| 1.0 - self.loss / reference)
    }

    fn constant_effect(&self) -> Option<f64> {
        (self.arm_squared > 0.0).then(|| self.residual_by_arm / self.arm_squared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_constant_scores_zero_and_the_truth_one() {
        let arm = [0.5, -0.5, 0.5, -0.5, 0.5];
        let residual = [1.0, 0.0, 0.5, -1.0, 0.25];
        let effect = constant_effect(&residual, &arm, None).unwrap();
        let constant: Vec<f64> = arm.iter().map(|arm| arm * effect).collect();
        assert_eq!(r_score(&residual, &constant, &constant, None), Some(0.0));
        assert_eq!(r_score(&residual, &residual, &constant, None), Some(1.0));
        let nudged: Vec<f64> = arm.iter().map(|arm| arm * (effect + 0.1)).collect();
        assert!(r_loss(&residual, &nudged, None) > r_loss(&residual, &constant, None));
    }

    #[test]
    fn sums_agree_with_the_plain_functions() {
        let arm = [0.4, -0.6, 0.4, -0.6];
        let residual = [1.0, 0.3, -0.5, -1.0];
        let effect = [2.0, 1.0, -1.0, 0.5];
        let weight = [1.0, 2.0, 0.5, 1.0];
        let mut sums = ResidualSums::default();
        (0..4).for_each(|row| sums.add(weight[row], residual[row], arm[row], effect[row]));
        let centred: Vec<f64> = (0..4).map(|row| arm[row] * effect[row]).collect();
        let best = constant_effect(&residual, &arm, Some(&weight)).unwrap();
        let constant: Vec<f64> = arm.iter().map(|arm| arm * best).collect();
        let expected = r_score(&residual, &centred, &constant, Some(&weight)).unwrap();
        assert!((sums.r_score().unwrap() - expected).abs() < 1e-14);
        let expected = r_loss(&residual, &centred, Some(&weight)).unwrap();
        assert!((sums.r_loss().unwrap() - expected).abs() < 1e-14);
    }
}
