//! Length and hash of a text that is not stored.

use serde::{Deserialize, Serialize};

/// 2^61 - 1, a prime that multiplies without division.
const PRIME: u128 = (1 << 61) - 1;
const BASE: u64 = 1_470_258_369_741_852_963 % (PRIME as u64);
/// Bytes that are hashed in one step.
const BLOCK: usize = 16;
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
/// The lower and the upper half of the power that each byte of a block is multiplied by.
const HALVES: [[u32; BLOCK]; 2] = {
    let mut halves = [[0; BLOCK]; 2];
    let mut at = 0;
    while at < BLOCK {
        let power = POWERS[BLOCK - 1 - at];
        halves[0][at] = power as u32;
        halves[1][at] = (power >> 32) as u32;
        at += 1;
    }
    halves
};
/// Bytes of text whose white space is removed in one step.
const WORDS: usize = 512;

/// How many bytes of the text are kept of each ASCII byte: none of white space.
const KEPT: [usize; 256] = {
    let mut kept = [1; 256];
    let mut at = 0;
    while at < kept.len() {
        if matches!(at as u8, b' ' | b'\t'..=b'\r') {
            kept[at] = 0;
        }
        at += 1;
    }
    kept
};

/// Length and hash of a text; can be extended piece by piece.
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
    /// Returns the digest of a text.
    pub fn of(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let hash = append(blocks.iter().fold(0, append_block), rest) % PRIME as u64;
        Self { len: bytes.len() as u64, hash, power: power_of(bytes.len()) }
    }

    /// Returns the digest of a text without its white space.
    pub fn without_whitespace(text: &str) -> Self {
        if !text.is_ascii() {
            return text.split_whitespace().fold(Self::default(), |digest, word| digest.then(Self::of(word)));
        }
        let mut digest = Self::default();
        let mut words = [0; WORDS];
        for part in text.as_bytes().chunks(WORDS) {
            let mut length = 0;
            for byte in part {
                // Overwritten by the next byte if it is white space: that is quicker than a branch. The remainder is
                // the length itself, and spares a comparison with the end of the buffer.
                words[length % WORDS] = *byte;
                length += KEPT[usize::from(*byte)];
            }
            digest = digest.then(Self::of_bytes(&words[..length]));
        }
        digest
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

/// Appends a block to the text of a hash.
///
/// The same as a multiplication for each byte, but the processor need not wait for one before the next.
fn append_block(hash: u64, block: &[u8; BLOCK]) -> u64 {
    let (mut low, mut high) = (0, 0);
    for at in 0..BLOCK {
        // Halves, so that nothing overflows 64 bits, and several are multiplied at once.
        let digit = u64::from(block[at]) + 1;
        low += digit * u64::from(HALVES[0][at]);
        high += digit * u64::from(HALVES[1][at]);
    }
    reduce(u128::from(hash) * u128::from(POWERS[BLOCK]) + (u128::from(high) << 32) + u128::from(low))
}

/// Appends less than a block.
fn append(hash: u64, bytes: &[u8]) -> u64 {
    let digits = bytes.iter().rev().zip(POWERS);
    let added: u128 = digits.map(|(byte, power)| (u128::from(*byte) + 1) * u128::from(power)).sum();
    reduce(u128::from(hash) * u128::from(POWERS[bytes.len()]) + added)
}

/// Returns BASE to a power.
fn power_of(mut exponent: usize) -> u64 {
    let (mut power, mut square) = (1, BASE);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = multiply(power, square);
        }
        square = multiply(square, square);
        exponent >>= 1;
    }
    power
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

    #[test]
    fn a_digest_is_the_same_however_the_text_is_taken() {
        let text = "light rain\tin the morning,\u{b}then sun;\r\n ".repeat(50);
        for length in (0..70).chain([WORDS - 1, WORDS, WORDS + 1, 2 * WORDS, text.len()]) {
            let text = &text[..length];
            let by_bytes = text.bytes().fold((0, 1), |(hash, power), byte| {
                (append(hash, &[byte]) % PRIME as u64, multiply(power, BASE))
            });
            let digest = Digest::of(text);
            assert_eq!((digest.len, digest.hash, digest.power), (length as u64, by_bytes.0, by_bytes.1));
            let words: String = text.split_whitespace().collect();
            assert_eq!(Digest::without_whitespace(text), Digest::of(&words));
            let foreign = format!("{text}\u{3000}天\u{a0}");
            assert_eq!(Digest::without_whitespace(&foreign), Digest::of(&(words + "天")));
        }
        let highest = "\u{10ffff}".repeat(100);
        assert_eq!(
            Digest::of(&highest).hash,
            highest.bytes().fold(0, |hash, byte| append(hash, &[byte])) % PRIME as u64
        );
    }
}
