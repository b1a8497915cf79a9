//! Ratios as integers.

pub const PPM: i64 = 1_000_000;

/// An amount against a need, in parts per million, rounded down.
pub fn share(amount: i64, need: i64) -> i64 {
    match amount.checked_mul(PPM) {
        Some(scaled) => scaled / need.max(1),
        None => {
            let ppm = i128::from(amount) * i128::from(PPM) / i128::from(need.max(1));
            i64::try_from(ppm).unwrap_or(i64::MAX / 64)
        }
    }
}
