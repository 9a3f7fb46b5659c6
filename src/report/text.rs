//! Numbers and names as a person reads them.

use serde::Serialize;
use serde_json::Value;

/// A number and its noun.
#[must_use]
pub fn count(number: u64, noun: &str) -> String {
    count_of(number, noun, &format!("{noun}s"))
}

/// A number and its noun, for a noun with a plural of its own.
#[must_use]
pub fn count_of(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Bytes in the decimal unit that fits.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "one decimal for a person to read"
)]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return count(bytes, "byte");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Characters that a sentence or a line for people has at most.
pub const SENTENCE_LENGTH: usize = 1000;

/// A text of at most so many characters, an ellipsis included.
#[must_use]
pub fn shorten(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(length.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// The name of a unit variant, as outputs spell it.
#[must_use]
pub fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        for (given, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (614_400_000, "614.4 MB"),
            (u64::MAX, "18446.7 PB"),
        ] {
            assert_eq!(bytes(given), shown);
        }
    }
}
