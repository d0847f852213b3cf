//! Measures the regex patterns of a schema: compiled size, and whether matching backtracks.
//!
//! Matching a plain pattern takes up to its compiled size times the length of the text. A pattern with look-around is
//! matched by backtracking, and each attempt may take that long for each byte of the text.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::{Value, json};

use super::schema::UnusableSchema;
use crate::limits;

/// The patterns of a schema with their sizes.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, PatternSize>);

#[derive(Debug, Clone, Copy)]
struct PatternSize {
    /// The compiled size, rounded up to a power of two.
    bytes: usize,
    /// Whether it has look-around, so that matching backtracks.
    backtracks: bool,
}

/// The cost of matching a pattern on a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MatchCost {
    /// Steps of a plain match, or of one backtracking attempt.
    pub(super) steps: u64,
    /// Whether there may be several attempts.
    pub(super) backtracks: bool,
}

impl Patterns {
    /// Compiles each pattern to measure its size.
    ///
    /// Patterns above the limits are skipped: compiling the schema refuses them.
    pub(super) fn measure<'p>(patterns: impl Iterator<Item = &'p str>) -> Result<Self, UnusableSchema> {
        let (mut measured, mut all) = (Self::default(), 0);
        for pattern in patterns {
            if measured.0.contains_key(pattern) {
                continue;
            }
            let Some(size) = PatternSize::of(pattern) else { continue };
            all += size.bytes;
            if all > limits::PATTERNS_BYTES {
                let what = "bytes of compiled patterns";
                return Err(UnusableSchema::TooLarge { what, limit: limits::PATTERNS_BYTES });
            }
            measured.0.insert(pattern.to_owned(), size);
        }
        Ok(measured)
    }

    /// Returns the cost of matching a pattern on a text of a length.
    pub(super) fn match_cost(&self, pattern: &str, bytes: usize) -> MatchCost {
        let unknown = PatternSize { bytes: limits::PATTERN_BYTES, backtracks: true };
        let measured = self.0.get(pattern).copied().unwrap_or(unknown);
        let (size, bytes) = (measured.bytes as u64, bytes as u64 + 1);
        let steps = size.saturating_mul(bytes);
        match measured.backtracks {
            true => MatchCost { steps: steps.saturating_mul(bytes), backtracks: true },
            false => MatchCost { steps, backtracks: false },
        }
    }
}

impl PatternSize {
    fn of(pattern: &str) -> Option<Self> {
        let schema = json!({"pattern": pattern});
        let backtracks = !fits(&schema, limits::PATTERN_BYTES, false);
        if backtracks && !fits(&schema, limits::PATTERN_BYTES, true) {
            return None;
        }
        // Binary search for the smallest power of two that it fits into.
        let (mut low, mut high) = (SMALLEST_BITS, limits::PATTERN_BYTES.ilog2());
        while low < high {
            let middle = (low + high) / 2;
            if fits(&schema, 1 << middle, backtracks) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(Self { bytes: 1 << high, backtracks })
    }
}

/// Smallest size that is measured, as a power of two.
const SMALLEST_BITS: u32 = 9;

/// Returns true if a pattern compiles within a size, with or without a backtracking engine.
fn fits(schema: &Value, bytes: usize, backtracks: bool) -> bool {
    let options = jsonschema::options().offline();
    let options = match backtracks {
        true => options.with_pattern_options(PatternOptions::fancy_regex().size_limit(bytes)),
        false => options.with_pattern_options(PatternOptions::regex().size_limit(bytes)),
    };
    options.build(schema).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(pattern: &str) -> (usize, bool) {
        let size = PatternSize::of(pattern).unwrap();
        (size.bytes, size.backtracks)
    }

    #[test]
    fn a_pattern_is_as_large_as_what_it_is_compiled_into() {
        let (small, large) = (size("^[a-z]+$"), size("a[ab]{9000}[cd]"));
        assert!(small.0 <= 4 << 10, "{small:?}");
        assert!((128 << 10..=1 << 20).contains(&large.0), "{large:?}");
        assert!(!small.1 && !large.1);
        let password = size(r"^(?=.*[A-Z])(?=.*\d).{8,}$");
        assert!(password.0 <= 16 << 10 && password.1, "{password:?}");
        assert!(PatternSize::of("(").is_none());
        assert!(PatternSize::of("a{100000}").is_none());
    }

    #[test]
    fn patterns_are_bounded_together() {
        let many: Vec<_> = (0..20).map(|n| format!("{n}[ab]{{9000}}[cd]")).collect();
        let refused = Patterns::measure(many.iter().map(String::as_str)).unwrap_err();
        assert!(
            matches!(refused, UnusableSchema::TooLarge { limit: limits::PATTERNS_BYTES, .. }),
            "{refused}"
        );
        let same = Patterns::measure(std::iter::repeat_n("a[ab]{9000}[cd]", 20)).unwrap();
        assert_eq!(same.0.len(), 1);
    }
}
