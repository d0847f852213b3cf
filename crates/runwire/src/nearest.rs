//! The name that was probably meant.

/// Finds the candidate that differs least from a word, if it differs little.
pub(super) fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    // Long words are no typing mistakes, and comparing them costs.
    const LONGEST: usize = 64;
    let plain = plain(word);
    if plain.is_empty() || plain.len() > LONGEST {
        return None;
    }
    let most = (plain.len() / 4).clamp(1, 3);
    let close = candidates.iter().filter(|candidate| **candidate != word && candidate.len() <= 2 * LONGEST);
    close
        .map(|candidate| (distance(&plain, &self::plain(candidate)), *candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Drops what dialects write differently: case, `_`, `-`, `.`.
fn plain(word: &str) -> Vec<char> {
    word.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Counts the letters that must change (Levenshtein).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in to.iter().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
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
        assert_eq!(nearest("run_started", &types), None);
    }
}
