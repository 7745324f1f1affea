//! What measurements are worth: medians, and how sure of them one may be.

/// The middle one.
pub fn median(values: &[f64]) -> f64 {
    share(values, 0.5)
}

/// The value that this share of all lies below.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small counts"
)]
pub fn share(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// The 95 % interval of the median, by order statistics (no assumption about the distribution).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small counts"
)]
pub fn interval(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    let half = (0.98 * (sorted.len() as f64).sqrt()).ceil() as usize;
    let middle = sorted.len() / 2;
    (sorted[middle.saturating_sub(half)], sorted[(middle + half).min(sorted.len() - 1)])
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
