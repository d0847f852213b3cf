//! Guesses the name that was meant.

/// Returns the candidate nearest to a word, if it is near.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // Long words are no typing mistakes, and comparing them costs.
    const LONGEST: usize = 64;
    let plain = plain(word);
    if plain.is_empty() || plain.len() > LONGEST {
        return None;
    }
    let max_distance = (plain.len() / 4).clamp(1, 3);
    let close = candidates.iter().filter(|candidate| **candidate != word && candidate.len() <= 2 * LONGEST);
    close
        // Two letters that changed places count as one.
        .map(|candidate| (strsim::osa_distance(&plain, &self::plain(candidate)), *candidate))
        .filter(|(distance, _)| *distance <= max_distance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Normalises what dialects write differently: case, `_`, `-`, `.`.
fn plain(word: &str) -> String {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let types = ["node_enter", "node_exit", "message_chunk"];
        assert_eq!(nearest("node_entr", &types), Some("node_enter"));
        assert_eq!(nearest("NodeExit", &types), Some("node_exit"));
        assert_eq!(nearest("conversation_id", &["conversationId"]), Some("conversationId"));
        assert_eq!(nearest("stroe", &["listen", "store"]), Some("store"));
        assert_eq!(nearest("run_started", &types), None);
    }
}
