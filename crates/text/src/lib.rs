//! Numbers, counts and time spans as people read them. Reasons, notes, tables and pages all show
//! them in the same way.
//!
//! ```
//! use muster_text::{counted, duration};
//!
//! assert_eq!(counted(5_000, "node"), "5,000 nodes");
//! assert_eq!(duration(12_000_000), "3h20m");
//! ```

/// A number with a comma after each three digits: 5000 → "5,000".
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, which gets an "s" unless there is exactly one: "1 node", "5,000 nodes".
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// The two largest units of a time span: "45s", "12m", "3h20m", "2d4h".
pub fn duration(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, size)| seconds >= *size).unwrap_or(3);
    let mut left = seconds;
    let mut text = String::new();
    for (unit, size) in &units[first..(first + 2).min(4)] {
        let count = left / size;
        left %= size;
        if count > 0 || text.is_empty() {
            text += &format!("{count}{unit}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_nouns_their_plural() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 1, 2_000].map(|number| counted(number, "node")),
            ["0 nodes", "1 node", "2,000 nodes"]
        );
    }

    #[test]
    fn durations_show_two_units() {
        let shown: Vec<String> = [0, 45_000, 720_000, 12_000_000, 187_200_000].map(duration).into();
        assert_eq!(shown, ["0s", "45s", "12m", "3h20m", "2d4h"]);
    }
}
