//! The same code for processors with wider vectors, chosen when it runs.
#![allow(unsafe_code, reason = "one call, with a proof beside it")]

use super::{Predictor, Text};
use crate::tables::Tables;

/// Reads events by prediction; see [`Predictor::run`].
pub(super) fn run(
    predictor: &mut Predictor,
    text: Text<'_>,
    at: usize,
    most: usize,
    tables: &mut Tables,
) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") {
        // SAFETY: `run_wide` is a safe function, and its body is `Predictor::run_inline`, which is safe code. That it may
        // not be called without care has one reason: it is compiled to instructions of AVX2, BMI1 and BMI2, which a
        // processor without them does not know. The line above has just asked this processor for all three.
        return unsafe { run_wide(predictor, text, at, most, tables) };
    }
    predictor.run_inline(text, at, most, tables)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn run_wide(predictor: &mut Predictor, text: Text<'_>, at: usize, most: usize, tables: &mut Tables) -> Option<usize> {
    predictor.run_inline(text, at, most, tables)
}
