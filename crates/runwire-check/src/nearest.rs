//! The name that was probably meant.

/// Finds the candidate that differs least from a word, if it differs little.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
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

/// Counts the letters that must change; two that changed places count as one (optimal string alignment).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.iter().enumerate() {
        let mut next = vec![at + 1];
        for (column, other) in to.iter().enumerate() {
            let mut least = row[column] + usize::from(letter != other);
            least = least.min(row[column + 1] + 1).min(next[column] + 1);
            if at > 0 && column > 0 && *letter == to[column - 1] && from[at - 1] == *other {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
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
        assert_eq!(nearest("stroe", &["listen", "store"]), Some("store"));
        assert_eq!(nearest("run_started", &types), None);
    }
}
