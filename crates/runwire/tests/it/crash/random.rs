//! Random numbers with a seed.

use std::env;
use std::fmt::{self, Display};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DEFAULT_SEED: u64 = 0x5eed_0003;

/// SplitMix64: small, and good enough to choose moments.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A source of its own for whoever has another name, so that threads do not disturb each other's chance.
    pub(crate) fn named(&self, name: &str) -> Self {
        let mixed =
            name.bytes().fold(self.0, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Self(mixed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, and without, another.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn millis(&mut self, longest: u64) -> Duration {
        Duration::from_micros(self.next() % (longest * 1000 + 1))
    }
}

/// The seed of a test, which it tells when it fails.
pub(crate) struct Seed {
    variable: &'static str,
    value: u64,
}

impl Seed {
    /// Takes the seed from `RUNWIRE_CRASH_SEED`, if it is there.
    pub(crate) fn from_environment() -> Self {
        Self::of("RUNWIRE_CRASH_SEED")
    }

    /// Takes the seed from a variable; else it is always the same, but a new one with `--long`.
    pub(crate) fn of(variable: &'static str) -> Self {
        let value = match env::var(variable) {
            Ok(named) => named.parse().expect("a seed is a whole number"),
            Err(_) if env::var_os("RUNWIRE_LONG").is_some() => {
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
            }
            Err(_) => DEFAULT_SEED,
        };
        Self { variable, value }
    }

    pub(crate) fn random(&self) -> Random {
        Random(self.value)
    }
}

/// How to have the same chance again.
impl Display for Seed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.variable, self.value)
    }
}

impl Drop for Seed {
    #[expect(clippy::print_stderr, reason = "what a failed test says")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to have the same chance again: {self}");
        }
    }
}

/// How often the server is killed: `RUNWIRE_CRASH_ROUNDS`, or a few times.
pub(crate) fn rounds() -> usize {
    env::var("RUNWIRE_CRASH_ROUNDS")
        .map_or(10, |rounds| rounds.parse().expect("RUNWIRE_CRASH_ROUNDS is a number"))
}
