//! The length and hash of a text that is not kept.

use serde::{Deserialize, Serialize};

/// 2^61 - 1, a prime that multiplies without division.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u64 = 1_470_258_369_741_852_963 % (PRIME as u64);
/// Bytes that are taken in one step.
const BLOCK: usize = 8;
/// BASE to the powers from 0 to BLOCK.
const POWERS: [u64; BLOCK + 1] = {
    let mut powers = [1; BLOCK + 1];
    let mut at = 1;
    while at <= BLOCK {
        powers[at] = multiply(powers[at - 1], BASE);
        at += 1;
    }
    powers
};

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
        let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
        for block in blocks {
            hash = append(hash, block);
            power = multiply(power, POWERS[BLOCK]);
        }
        let hash = append(hash, rest) % PRIME as u64;
        Self { len: text.len() as u64, hash, power: multiply(power, POWERS[rest.len()]) }
    }

    /// Takes the digest of a text without its white space.
    pub fn without_whitespace(text: &str) -> Self {
        text.split_whitespace().fold(Self::default(), |digest, word| digest.then(Self::of(word)))
    }

    /// Returns the digest of this text with another one after it.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            len: self.len + next.len,
            hash: (multiply(self.hash, next.power) + next.hash) % PRIME as u64,
            power: multiply(self.power, next.power),
        }
    }
}

/// Appends at most a block of bytes to the text of a hash.
///
/// The same as a multiplication for each byte, but the processor need not wait for one before the next.
fn append(hash: u64, bytes: &[u8]) -> u64 {
    let digits = bytes.iter().rev().zip(POWERS);
    let added: u128 = digits.map(|(byte, power)| (u128::from(*byte) + 1) * u128::from(power)).sum();
    reduce(u128::from(hash) * u128::from(POWERS[bytes.len()]) + added)
}

const fn multiply(a: u64, b: u64) -> u64 {
    reduce(a as u128 * b as u128)
}

const fn reduce(product: u128) -> u64 {
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
        let by_bytes = text.bytes().fold(0, |hash, byte| append(hash, &[byte])) % PRIME as u64;
        assert_eq!(Digest::of(text).hash, by_bytes);
        assert_ne!(Digest::of("ab"), Digest::of("ba"));
        assert_ne!(Digest::of(""), Digest::of("\0"));
    }
}
