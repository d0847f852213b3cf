//! The length and hash of a text that is not kept.

use serde::{Deserialize, Serialize};

/// 2^61 - 1, a prime that multiplies without division.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u64 = 1_470_258_369_741_852_963 % (PRIME as u64);

/// The length and hash of a text, which can grow piece by piece.
///
/// Two digests are equal when the texts are (a chance collision has a probability of 2^-61). A polynomial
/// hash, because the digest of two texts joined follows from their digests alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// Bytes.
    pub len: u64,
    hash: u64,
    /// BASE to the power of `len`.
    power: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { len: 0, hash: 0, power: 1 }
    }
}

impl Digest {
    /// Takes the digest of a text.
    pub fn of(text: &str) -> Self {
        let (mut hash, mut power) = (0, 1);
        for &byte in text.as_bytes() {
            hash = multiply(hash, BASE) + u64::from(byte) + 1;
            power = multiply(power, BASE);
        }
        Self { len: text.len() as u64, hash: hash % PRIME as u64, power }
    }

    /// Tells the digest of this text with another one after it.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            len: self.len + next.len,
            hash: (multiply(self.hash, next.power) + next.hash) % PRIME as u64,
            power: multiply(self.power, next.power),
        }
    }
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product & PRIME) + (product >> 61);
    (if folded >= PRIME { folded - PRIME } else { folded }) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_digests_is_the_digest_of_the_joined_text() {
        let text = "天气不错, let's go 🚶";
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (head, tail) = text.split_at(at);
            assert_eq!(Digest::of(head).then(Digest::of(tail)), Digest::of(text));
        }
        assert_ne!(Digest::of("ab"), Digest::of("ba"));
        assert_ne!(Digest::of(""), Digest::of("\0"));
    }
}
