//! What a setting may be: each kind of value, how it is written, and what to say of one that is not.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use runwire_model::dialect::Slots;
use runwire_server::hosts::AllowedHost;

/// A kind of value: read from a flag, a variable or a file, and shown by `check-config` as it would be written.
pub(crate) trait Setting: FromStr<Err = Wrong> + Display {
    /// What is allowed, as the end of "must be …".
    const ALLOWED: &'static str;
    /// How it is written in a file.
    const FORM: Form;
}

/// How a value is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Number,
    TextOrNumber,
    Switch,
}

/// Says what is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Wrong(String);

impl Wrong {
    pub(crate) fn not_allowed<T: Setting>() -> Self {
        Self(format!("must be {}", T::ALLOWED))
    }
}

/// Where the server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listen(pub(crate) SocketAddr);

impl Default for Listen {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, 7420)))
    }
}

impl Setting for Listen {
    const ALLOWED: &'static str =
        "an IP address and a port, such as `127.0.0.1:7420` (port 0: any that is free)";
    const FORM: Form = Form::Text;
}

impl FromStr for Listen {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let local = local.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        local.or_else(|| text.parse().ok()).map(Self).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The hosts that requests may name, beside those that are always allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AllowedHosts(pub(crate) Vec<AllowedHost>);

impl Setting for AllowedHosts {
    const ALLOWED: &'static str = "hosts without ports, with commas between them (`wire.example.com, *.internal, 192.0.2.7`), `*` for any, \
         or `none`";
    const FORM: Form = Form::Text;
}

impl FromStr for AllowedHosts {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == NONE {
            return Ok(Self(Vec::new()));
        }
        let hosts = text.split(',').map(|host| host.trim().parse()).collect::<Result<_, _>>();
        hosts.map(Self).map_err(|_| Wrong::not_allowed::<Self>())
    }
}

impl Display for AllowedHosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(if hosts.is_empty() { NONE } else { "" })?;
        formatter.write_str(&hosts.join(", "))
    }
}

/// A time that something may take, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) u32);

impl Seconds {
    const MOST: u32 = 86_400;

    pub(crate) fn duration(self) -> Duration {
        Duration::from_secs(u64::from(self.0))
    }
}

impl Setting for Seconds {
    const ALLOWED: &'static str = "a whole number of seconds from 1 to 86400";
    const FORM: Form = Form::Number;
}

impl FromStr for Seconds {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let seconds = text.parse().ok().filter(|seconds| (1..=Self::MOST).contains(seconds));
        seconds.map(Self).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How many connections may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connections(pub(crate) u32);

impl Connections {
    const MOST: u32 = 1_000_000;
}

impl Setting for Connections {
    const ALLOWED: &'static str = "a whole number from 1 to 1000000";
    const FORM: Form = Form::Number;
}

impl FromStr for Connections {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let count = text.parse().ok().filter(|count| (1..=Self::MOST).contains(count));
        count.map(Self).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for Connections {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How many runs of agents may be under way, or open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentRuns(pub(crate) u32);

impl AgentRuns {
    const MOST: u32 = 100_000;
}

impl Setting for AgentRuns {
    const ALLOWED: &'static str = "a whole number from 1 to 100000";
    const FORM: Form = Form::Number;
}

impl FromStr for AgentRuns {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let count = text.parse().ok().filter(|count| (1..=Self::MOST).contains(count));
        count.map(Self).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for AgentRuns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The agent of requests that cannot name one; none means the only one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DefaultAgent(pub(crate) Option<String>);

impl Setting for DefaultAgent {
    const ALLOWED: &'static str = "the name of an agent, or `none`";
    const FORM: Form = Form::Text;
}

impl FromStr for DefaultAgent {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text {
            "" => Err(Wrong::not_allowed::<Self>()),
            NONE => Ok(Self(None)),
            name => Ok(Self(Some(name.to_owned()))),
        }
    }
}

impl Display for DefaultAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_deref().unwrap_or(NONE))
    }
}

/// Which extension frames a façade shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownSlots(pub(crate) Slots);

impl Setting for ShownSlots {
    const ALLOWED: &'static str = "`all`, `asks` or `none`";
    const FORM: Form = Form::Text;
}

impl FromStr for ShownSlots {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        Slots::from_name(text).map(Self).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for ShownSlots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name())
    }
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch(pub(crate) bool);

impl Setting for Switch {
    const ALLOWED: &'static str = "`true` or `false`";
    const FORM: Form = Form::Switch;
}

impl FromStr for Switch {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        text.parse().map(Self).map_err(|_| Wrong::not_allowed::<Self>())
    }
}

impl Display for Switch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl Setting for LogLevel {
    const ALLOWED: &'static str = "`error`, `warn`, `info`, `debug` or `trace`";
    const FORM: Form = Form::Text;
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Setting for LogFormat {
    const ALLOWED: &'static str = "`text` or `json`";
    const FORM: Form = Form::Text;
}

macro_rules! named_values {
    ($($kind:ty),*) => {$(
        impl FromStr for $kind {
            type Err = Wrong;

            fn from_str(text: &str) -> Result<Self, Wrong> {
                <Self as ValueEnum>::from_str(text, false).map_err(|_| Wrong::not_allowed::<Self>())
            }
        }

        impl Display for $kind {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let name = self.to_possible_value();
                formatter.write_str(name.as_ref().map_or("", clap::builder::PossibleValue::get_name))
            }
        }
    )*};
}

named_values!(LogLevel, LogFormat);

pub(super) const NONE: &str = "none";

/// How old a closed run may grow; none keeps it for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Age(pub(crate) Option<Duration>);

impl Setting for Age {
    const ALLOWED: &'static str = "a whole number and a unit (`90s`, `15m`, `12h`, `30d`, `8w`), or `none`";
    const FORM: Form = Form::Text;
}

/// Units of an age, the largest first, so that an age is shown in the largest that divides it.
const AGE_UNITS: [(&str, u64); 5] = [("w", 604_800), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

impl FromStr for Age {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == NONE {
            return Ok(Self(None));
        }
        let seconds = scaled(text, &AGE_UNITS).filter(|seconds| *seconds > 0);
        seconds.map(|seconds| Self(Some(Duration::from_secs(seconds)))).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for Age {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(age) = self.0 else { return formatter.write_str(NONE) };
        write_scaled(formatter, age.as_secs(), &AGE_UNITS)
    }
}

/// How many bytes of records are kept; none keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bytes(pub(crate) Option<u64>);

impl Setting for Bytes {
    const ALLOWED: &'static str =
        "a whole number of bytes, with a unit or without (`500MB`, `10GiB`), or `none`";
    const FORM: Form = Form::TextOrNumber;
}

const BYTE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("", 1),
];

impl FromStr for Bytes {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == NONE {
            return Ok(Self(None));
        }
        let bytes = scaled(text, &BYTE_UNITS).filter(|bytes| *bytes > 0);
        bytes.map(|bytes| Self(Some(bytes))).ok_or_else(Wrong::not_allowed::<Self>)
    }
}

impl Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = self.0 else { return formatter.write_str(NONE) };
        write_scaled(formatter, bytes, &BYTE_UNITS)
    }
}

/// Reads a number with a unit, case and a space between them aside.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, scale) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_start()))?;
    number.parse::<u64>().ok()?.checked_mul(*scale)
}

fn write_scaled(formatter: &mut fmt::Formatter<'_>, amount: u64, units: &[(&str, u64)]) -> fmt::Result {
    let fitting = units.iter().find(|(_, scale)| amount.is_multiple_of(*scale));
    let (unit, scale) = fitting.copied().unwrap_or(("", 1));
    write!(formatter, "{}{unit}", amount / scale)
}

#[cfg(test)]
mod tests {
    use super::super::store::{LiveTail, Store, Trust};
    use super::*;

    #[test]
    fn values_are_shown_as_they_may_be_written() {
        fn there_and_back<T: Setting>(text: &str) -> String {
            text.parse::<T>().map_or_else(|wrong| wrong.to_string(), |value| value.to_string())
        }
        assert_eq!(there_and_back::<Listen>("localhost:0"), "127.0.0.1:0");
        assert_eq!(there_and_back::<Listen>("[::1]:7420"), "[::1]:7420");
        assert_eq!(there_and_back::<AllowedHosts>("A.example,*.b , [::1]"), "a.example, *.b, ::1");
        assert_eq!(there_and_back::<AllowedHosts>("*"), "*");
        assert_eq!(there_and_back::<AllowedHosts>("none"), "none");
        assert_eq!(there_and_back::<Store>("sqlite://a/b.db"), "sqlite:a/b.db");
        assert_eq!(there_and_back::<Store>("postgres://ann@db/x"), "postgres://ann@db/x");
        assert_eq!(there_and_back::<Store>("postgresql://ann:secret@db/x"), "postgresql://ann:***@db/x");
        assert_eq!(there_and_back::<LiveTail>("rediss://:secret@redis:6380"), "rediss://:***@redis:6380");
        assert_eq!(there_and_back::<LiveTail>("none"), "none");
        assert_eq!(there_and_back::<Trust>("redis.pem"), "redis.pem");
        assert_eq!(there_and_back::<Age>("14d"), "2w");
        assert_eq!(there_and_back::<Age>("36h"), "36h");
        assert_eq!(there_and_back::<Bytes>("10 gib"), "10GiB");
        assert_eq!(there_and_back::<Bytes>("1500000"), "1500kB");
        assert_eq!(there_and_back::<Bytes>("none"), "none");
        assert_eq!(there_and_back::<LogLevel>("debug"), "debug");
        assert_eq!(there_and_back::<Switch>("false"), "false");
        assert_eq!(there_and_back::<AgentRuns>("7"), "7");
        assert_eq!(there_and_back::<DefaultAgent>("planner"), "planner");
        assert_eq!(there_and_back::<DefaultAgent>("none"), "none");
    }

    #[test]
    fn wrong_values_are_told_what_is_allowed() {
        fn wrong<T: Setting>(text: &str) -> bool {
            text.parse::<T>().is_err_and(|wrong| wrong.to_string().contains(T::ALLOWED))
        }
        assert!(wrong::<Listen>("7420"));
        assert!(wrong::<AllowedHosts>(""));
        assert!(wrong::<AllowedHosts>("a, , b"));
        assert!(wrong::<AllowedHosts>("a:7420"));
        assert!(wrong::<AllowedHosts>("https://a"));
        assert!(wrong::<Store>("runwire.db"));
        assert!(wrong::<Store>("sqlite:"));
        assert!(wrong::<Store>("mysql://localhost/runwire"));
        assert!(wrong::<Store>("postgres:runwire"));
        assert!(wrong::<LiveTail>("127.0.0.1:6379"));
        assert!(wrong::<LiveTail>("valkey://127.0.0.1"));
        assert!(wrong::<Trust>(""));
        assert!(wrong::<Seconds>("0"));
        assert!(wrong::<Seconds>("1.5"));
        assert!(wrong::<Connections>("-1"));
        assert!(wrong::<AgentRuns>("0"));
        assert!(wrong::<AgentRuns>("100001"));
        assert!(wrong::<DefaultAgent>(""));
        assert!(wrong::<Age>("30"));
        assert!(wrong::<Age>("0d"));
        assert!(wrong::<Bytes>("10 gigs"));
        assert!(wrong::<Bytes>("99999999999TiB"));
        assert!(wrong::<LogFormat>("JSON"));
        assert!(wrong::<Switch>("no"));
    }
}
