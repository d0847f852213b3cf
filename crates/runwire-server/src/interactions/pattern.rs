//! Measures the patterns of a schema: how large each is when compiled, and whether it is matched by trying.
//!
//! Matching a plain pattern takes time up to its compiled size times the bytes of the text. One that looks ahead or
//! back is matched by trying, and each try may take as long, once for each byte of the text.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::{Value, json};

use super::schema::Unusable;
use crate::limits;

/// The patterns of a schema, each with its extent.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Extent>);

#[derive(Debug, Clone, Copy)]
struct Extent {
    /// The compiled size, rounded up to a power of two.
    bytes: usize,
    /// Whether it looks ahead or back.
    tries: bool,
}

/// The work of matching a pattern on a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// The work of plain matching, or of one try.
    pub(super) steps: u64,
    /// Whether there may be more tries than one.
    pub(super) tries: bool,
}

impl Patterns {
    /// Compiles patterns one by one to find out how large they are.
    ///
    /// Patterns that cannot be compiled within the limits are left out: compiling the schema refuses them.
    pub(super) fn measure<'p>(patterns: impl Iterator<Item = &'p str>) -> Result<Self, Unusable> {
        let (mut measured, mut all) = (Self::default(), 0);
        for pattern in patterns {
            if measured.0.contains_key(pattern) {
                continue;
            }
            let Some(extent) = Extent::of(pattern) else { continue };
            all += extent.bytes;
            if all > limits::PATTERNS_BYTES {
                let what = "bytes of compiled patterns";
                return Err(Unusable::TooLarge { what, limit: limits::PATTERNS_BYTES });
            }
            measured.0.insert(pattern.to_owned(), extent);
        }
        Ok(measured)
    }

    /// Tells the work of matching a pattern on a text of so many bytes.
    pub(super) fn work(&self, pattern: &str, bytes: usize) -> Work {
        let unknown = Extent { bytes: limits::PATTERN_BYTES, tries: true };
        let extent = self.0.get(pattern).copied().unwrap_or(unknown);
        let (size, bytes) = (extent.bytes as u64, bytes as u64 + 1);
        let steps = size.saturating_mul(bytes);
        match extent.tries {
            true => Work { steps: steps.saturating_mul(bytes), tries: true },
            false => Work { steps, tries: false },
        }
    }
}

impl Extent {
    fn of(pattern: &str) -> Option<Self> {
        let schema = json!({"pattern": pattern});
        let tries = !fits(&schema, limits::PATTERN_BYTES, false);
        if tries && !fits(&schema, limits::PATTERN_BYTES, true) {
            return None;
        }
        // Finds the smallest power of two that it fits into.
        let (mut least, mut most) = (SMALLEST_BITS, limits::PATTERN_BYTES.ilog2());
        while least < most {
            let middle = (least + most) / 2;
            if fits(&schema, 1 << middle, tries) {
                most = middle;
            } else {
                least = middle + 1;
            }
        }
        Some(Self { bytes: 1 << most, tries })
    }
}

/// Sizes are not told apart below this power of two.
const SMALLEST_BITS: u32 = 9;

/// Tells whether a pattern compiles into so many bytes, by an engine that tries or by one that does not.
fn fits(schema: &Value, bytes: usize, tries: bool) -> bool {
    let options = jsonschema::options().offline();
    let options = match tries {
        true => options.with_pattern_options(PatternOptions::fancy_regex().size_limit(bytes)),
        false => options.with_pattern_options(PatternOptions::regex().size_limit(bytes)),
    };
    options.build(schema).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(pattern: &str) -> (usize, bool) {
        let extent = Extent::of(pattern).unwrap();
        (extent.bytes, extent.tries)
    }

    #[test]
    fn a_pattern_is_as_large_as_what_it_is_compiled_into() {
        let (small, large) = (extent("^[a-z]+$"), extent("a[ab]{9000}[cd]"));
        assert!(small.0 <= 4 << 10, "{small:?}");
        assert!((128 << 10..=1 << 20).contains(&large.0), "{large:?}");
        assert!(!small.1 && !large.1);
        let password = extent(r"^(?=.*[A-Z])(?=.*\d).{8,}$");
        assert!(password.0 <= 16 << 10 && password.1, "{password:?}");
        assert!(Extent::of("(").is_none());
        assert!(Extent::of("a{100000}").is_none());
    }

    #[test]
    fn patterns_are_bounded_together() {
        let many: Vec<_> = (0..20).map(|n| format!("{n}[ab]{{9000}}[cd]")).collect();
        let refused = Patterns::measure(many.iter().map(String::as_str)).unwrap_err();
        assert!(matches!(refused, Unusable::TooLarge { limit: limits::PATTERNS_BYTES, .. }), "{refused}");
        let same = Patterns::measure(std::iter::repeat_n("a[ab]{9000}[cd]", 20)).unwrap();
        assert_eq!(same.0.len(), 1);
    }
}
