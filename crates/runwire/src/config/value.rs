//! Types of settings: parsing, display, and the message for an invalid value.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use runwire_model::dialect::Slots;
use runwire_server::hosts::AllowedHost;

/// A type of setting: parsed from a flag, a variable or the file, and displayed in the same syntax.
pub(crate) trait Setting: FromStr<Err = InvalidValue> + Display {
    /// The allowed values, as the end of "must be …".
    const ALLOWED: &'static str;
    /// Its TOML type.
    const TOML_TYPE: TomlType;
}

/// The TOML type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TomlType {
    Text,
    Number,
    TextOrNumber,
    Switch,
}

/// Why a value is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidValue(String);

impl InvalidValue {
    pub(crate) fn not_allowed<T: Setting>() -> Self {
        Self(format!("must be {}", T::ALLOWED))
    }
}

/// The address that the server listens on.
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
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for Listen {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
        let local = local.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        local.or_else(|| text.parse().ok()).map(Self).ok_or_else(InvalidValue::not_allowed::<Self>)
    }
}

impl Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The hosts that requests may name, in addition to those that are always allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct AllowedHosts(pub(crate) Vec<AllowedHost>);

impl Setting for AllowedHosts {
    const ALLOWED: &'static str = "hosts without ports, with commas between them (`wire.example.com, *.internal, 192.0.2.7`), `*` for any, \
         or `none`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for AllowedHosts {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == NONE {
            return Ok(Self(Vec::new()));
        }
        let hosts = text.split(',').map(|host| host.trim().parse()).collect::<Result<_, _>>();
        hosts.map(Self).map_err(|_| InvalidValue::not_allowed::<Self>())
    }
}

impl Display for AllowedHosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(if hosts.is_empty() { NONE } else { "" })?;
        formatter.write_str(&hosts.join(", "))
    }
}

/// Defines settings that are whole numbers from 1 to a maximum.
macro_rules! whole_numbers {
    ($($(#[$doc:meta])* $kind:ident: 1 to $max:literal, $allowed:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $kind(pub(crate) u32);

        impl Setting for $kind {
            const ALLOWED: &'static str = $allowed;
            const TOML_TYPE: TomlType = TomlType::Number;
        }

        impl FromStr for $kind {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                let number = text.parse().ok().filter(|number| (1..=$max).contains(number));
                number.map(Self).ok_or_else(InvalidValue::not_allowed::<Self>)
            }
        }

        impl Display for $kind {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )*};
}

whole_numbers! {
    /// A time limit in whole seconds.
    Seconds: 1 to 86_400, "a whole number of seconds from 1 to 86400";
    /// Limits the open connections.
    ConnectionLimit: 1 to 1_000_000, "a whole number from 1 to 1000000";
    /// Limits the running or open runs of agents.
    AgentRunLimit: 1 to 100_000, "a whole number from 1 to 100000";
}

impl Seconds {
    pub(crate) fn duration(self) -> Duration {
        Duration::from_secs(u64::from(self.0))
    }
}

/// The agent of requests that cannot name one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DefaultAgent(pub(crate) Option<String>);

impl Setting for DefaultAgent {
    const ALLOWED: &'static str = "the name of an agent, or `none`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for DefaultAgent {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "" => Err(InvalidValue::not_allowed::<Self>()),
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

/// The extension frames (slots) that a façade includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownSlots(pub(crate) Slots);

impl Setting for ShownSlots {
    const ALLOWED: &'static str = "`all`, `asks` or `none`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

impl FromStr for ShownSlots {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Slots::from_name(text).map(Self).ok_or_else(InvalidValue::not_allowed::<Self>)
    }
}

impl Display for ShownSlots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name())
    }
}

/// Enables or disables a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switch(pub(crate) bool);

impl Setting for Switch {
    const ALLOWED: &'static str = "`true` or `false`";
    const TOML_TYPE: TomlType = TomlType::Switch;
}

impl FromStr for Switch {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map(Self).map_err(|_| InvalidValue::not_allowed::<Self>())
    }
}

impl Display for Switch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The log level.
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
    const TOML_TYPE: TomlType = TomlType::Text;
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Setting for LogFormat {
    const ALLOWED: &'static str = "`text` or `json`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

macro_rules! named_values {
    ($($kind:ty),*) => {$(
        impl FromStr for $kind {
            type Err = InvalidValue;

            fn from_str(text: &str) -> Result<Self, InvalidValue> {
                <Self as ValueEnum>::from_str(text, false).map_err(|_| InvalidValue::not_allowed::<Self>())
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

/// Maximum age of a closed run; `none` keeps it forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Age(pub(crate) Option<Duration>);

impl Setting for Age {
    const ALLOWED: &'static str = "a whole number and a unit (`90s`, `15m`, `12h`, `30d`, `8w`), or `none`";
    const TOML_TYPE: TomlType = TomlType::Text;
}

/// Units of an age, largest first: an age is shown in the largest unit that divides it.
const AGE_UNITS: [(&str, u64); 5] = [("w", 604_800), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

impl FromStr for Age {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == NONE {
            return Ok(Self(None));
        }
        let seconds = scaled(text, &AGE_UNITS).filter(|seconds| *seconds > 0);
        seconds
            .map(|seconds| Self(Some(Duration::from_secs(seconds))))
            .ok_or_else(InvalidValue::not_allowed::<Self>)
    }
}

impl Display for Age {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(age) = self.0 else { return formatter.write_str(NONE) };
        write_scaled(formatter, age.as_secs(), &AGE_UNITS)
    }
}

/// Limits the bytes of stored records; `none` keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteLimit(pub(crate) Option<u64>);

impl Setting for ByteLimit {
    const ALLOWED: &'static str =
        "a whole number of bytes, with a unit or without (`500MB`, `10GiB`), or `none`";
    const TOML_TYPE: TomlType = TomlType::TextOrNumber;
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

impl FromStr for ByteLimit {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == NONE {
            return Ok(Self(None));
        }
        let bytes = scaled(text, &BYTE_UNITS).filter(|bytes| *bytes > 0);
        bytes.map(|bytes| Self(Some(bytes))).ok_or_else(InvalidValue::not_allowed::<Self>)
    }
}

impl Display for ByteLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = self.0 else { return formatter.write_str(NONE) };
        write_scaled(formatter, bytes, &BYTE_UNITS)
    }
}

/// Limits the bytes that are buffered for clients; `auto` is a quarter of the machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemoryLimit(pub(crate) Option<u64>);

const AUTO: &str = "auto";

/// The least that serves anybody: some of the largest frames at once.
const MIN_BUDGET_BYTES: u64 = 16 << 20;

impl Setting for MemoryLimit {
    const ALLOWED: &'static str =
        "at least 16 MiB, as a whole number of bytes with a unit or without (`512MiB`, `2GiB`), or `auto`";
    const TOML_TYPE: TomlType = TomlType::TextOrNumber;
}

impl FromStr for MemoryLimit {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == AUTO {
            return Ok(Self(None));
        }
        let bytes = scaled(text, &BYTE_UNITS).filter(|bytes| *bytes >= MIN_BUDGET_BYTES);
        bytes.map(|bytes| Self(Some(bytes))).ok_or_else(InvalidValue::not_allowed::<Self>)
    }
}

impl Display for MemoryLimit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bytes) = self.0 else { return formatter.write_str(AUTO) };
        write_scaled(formatter, bytes, &BYTE_UNITS)
    }
}

/// Parses a number with a unit, ignoring case and a space between them.
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
    use super::super::store::{StoreUrl, TailUrl, TrustedCertificates};
    use super::*;

    #[test]
    fn values_are_displayed_in_their_own_syntax() {
        fn round_trip<T: Setting>(text: &str) -> String {
            text.parse::<T>().map_or_else(|wrong| wrong.to_string(), |value| value.to_string())
        }
        assert_eq!(round_trip::<Listen>("localhost:0"), "127.0.0.1:0");
        assert_eq!(round_trip::<Listen>("[::1]:7420"), "[::1]:7420");
        assert_eq!(round_trip::<AllowedHosts>("A.example,*.b , [::1]"), "a.example, *.b, ::1");
        assert_eq!(round_trip::<AllowedHosts>("*"), "*");
        assert_eq!(round_trip::<AllowedHosts>("none"), "none");
        assert_eq!(round_trip::<StoreUrl>("sqlite://a/b.db"), "sqlite:a/b.db");
        assert_eq!(round_trip::<StoreUrl>("postgres://ann@db/x"), "postgres://ann@db/x");
        assert_eq!(round_trip::<StoreUrl>("postgresql://ann:secret@db/x"), "postgresql://ann:***@db/x");
        assert_eq!(round_trip::<TailUrl>("rediss://:secret@redis:6380"), "rediss://:***@redis:6380");
        assert_eq!(round_trip::<TailUrl>("none"), "none");
        assert_eq!(round_trip::<TrustedCertificates>("redis.pem"), "redis.pem");
        assert_eq!(round_trip::<Age>("14d"), "2w");
        assert_eq!(round_trip::<Age>("36h"), "36h");
        assert_eq!(round_trip::<ByteLimit>("10 gib"), "10GiB");
        assert_eq!(round_trip::<ByteLimit>("1500000"), "1500kB");
        assert_eq!(round_trip::<ByteLimit>("none"), "none");
        assert_eq!(round_trip::<LogLevel>("debug"), "debug");
        assert_eq!(round_trip::<Switch>("false"), "false");
        assert_eq!(round_trip::<AgentRunLimit>("7"), "7");
        assert_eq!(round_trip::<DefaultAgent>("planner"), "planner");
        assert_eq!(round_trip::<DefaultAgent>("none"), "none");
    }

    #[test]
    fn messages_for_invalid_values_name_the_allowed_ones() {
        fn wrong<T: Setting>(text: &str) -> bool {
            text.parse::<T>().is_err_and(|wrong| wrong.to_string().contains(T::ALLOWED))
        }
        assert!(wrong::<Listen>("7420"));
        assert!(wrong::<AllowedHosts>(""));
        assert!(wrong::<AllowedHosts>("a, , b"));
        assert!(wrong::<AllowedHosts>("a:7420"));
        assert!(wrong::<AllowedHosts>("https://a"));
        assert!(wrong::<StoreUrl>("runwire.db"));
        assert!(wrong::<StoreUrl>("sqlite:"));
        assert!(wrong::<StoreUrl>("mysql://localhost/runwire"));
        assert!(wrong::<StoreUrl>("postgres:runwire"));
        assert!(wrong::<TailUrl>("127.0.0.1:6379"));
        assert!(wrong::<TailUrl>("valkey://127.0.0.1"));
        assert!(wrong::<TrustedCertificates>(""));
        assert!(wrong::<Seconds>("0"));
        assert!(wrong::<Seconds>("1.5"));
        assert!(wrong::<ConnectionLimit>("-1"));
        assert!(wrong::<AgentRunLimit>("0"));
        assert!(wrong::<AgentRunLimit>("100001"));
        assert!(wrong::<DefaultAgent>(""));
        assert!(wrong::<Age>("30"));
        assert!(wrong::<Age>("0d"));
        assert!(wrong::<ByteLimit>("10 gigs"));
        assert!(wrong::<ByteLimit>("99999999999TiB"));
        assert!(wrong::<LogFormat>("JSON"));
        assert!(wrong::<Switch>("no"));
    }
}
