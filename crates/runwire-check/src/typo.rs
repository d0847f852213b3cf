//! Recognises likely typos of keys.

use crate::nearest::nearest;

/// Minimum letters of a key, so that a similar one is no coincidence.
const SHORTEST: usize = 4;
/// Limits the bytes by which a typo makes a key longer or shorter, separators included.
const DIFFERENCE: usize = 4;

/// Returns true if an unknown key is likely a typo of a known one.
pub(crate) fn is_likely(key: &str, known: &str) -> bool {
    let first = |word: &str| word.bytes().next().map(|byte| byte.to_ascii_lowercase());
    // Cheap to tell apart, as nearly all keys are.
    key.len() >= SHORTEST
        && known.len() >= SHORTEST
        && key.len().abs_diff(known.len()) <= DIFFERENCE
        && first(key) == first(known)
        && nearest(key, &[known]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_words() {
        assert!(is_likely("conten", "content") && is_likely("isComplete", "is_complete"));
        assert!(is_likely("fromat", "format") && is_likely("toolCallID", "toolCallId"));
        assert!(!is_likely("ids", "id") && !is_likely("content", "context_id"));
        assert!(!is_likely("content", "content") && !is_likely("model", "node_id"));
    }
}
