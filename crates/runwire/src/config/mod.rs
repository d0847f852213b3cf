//! The server's configuration: flags win over variables, which win over the file, which wins over defaults.

mod agents;
mod file;
mod layers;
mod problem;
mod secret_url;
mod store;
mod tables;
mod value;
mod webhooks;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use runwire_agents::Agent;
use runwire_log::cluster::TailOptions;
use runwire_log::cluster::redis::{RedisTail, TailError};
use runwire_log::postgres::PostgresLog;
use runwire_server::Facades;
use runwire_server::hosts::AllowedHost;
use runwire_server::webhooks::Webhook;

pub(crate) use layers::{Origin, ResolvedSetting};
pub(crate) use problem::ConfigProblem;
pub(crate) use secret_url::{SecretUrl, without_password};
pub(crate) use store::{StoreUrl, TailUrl, TrustedCertificates};
pub(crate) use value::{
    Age, AgentRunLimit, AllowedHosts, ByteLimit, ConnectionLimit, Listen, LogFormat, LogLevel, MemoryLimit,
    Seconds, ShownSlots, Switch,
};

use crate::failure::Failure;
use layers::Layers;
use value::Setting;

/// The settings that can be given on the command line.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Flags {
    /// The configuration file [default: runwire.toml in this directory, if there is one]
    #[arg(long, value_name = "FILE", env = CONFIG_VARIABLE, hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,

    /// Where to listen; port 0 takes any that is free [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<Listen>,

    /// The hosts that requests may name beside loopback names and this machine's addresses: names, *.NAME, IP
    /// addresses, with commas between them, or * for any [default: none]
    #[arg(long, value_name = "HOSTS")]
    pub(crate) allowed_hosts: Option<AllowedHosts>,

    /// Where events are kept: sqlite:PATH, or postgres://USER:PASSWORD@HOST/DATABASE, which many nodes may share
    /// [default: sqlite:runwire.db]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,

    /// Where nodes that share a store tell each other of new events: redis://HOST:PORT, with TLS rediss://HOST:PORT
    /// [default: none]
    #[arg(long, value_name = "URL")]
    pub(crate) tail: Option<TailUrl>,

    /// Certificates in PEM that are trusted at the tail, instead of the system's [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) tail_trust: Option<TrustedCertificates>,

    /// How long a run whose producer is silent stays open [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lease: Option<Seconds>,

    /// How old a closed run may grow before it is removed: 90s, 15m, 12h, 30d, 8w [default: none]
    #[arg(long, value_name = "AGE")]
    pub(crate) retention_age: Option<Age>,

    /// How many bytes of records to keep, the oldest closed runs going first: 500MB, 10GiB [default: none]
    #[arg(long, value_name = "BYTES")]
    pub(crate) retention_bytes: Option<ByteLimit>,

    /// Serve no console for browsers
    #[arg(long)]
    pub(crate) no_console: bool,

    /// How much to log, to standard error [default: info]
    #[arg(long, value_name = "LEVEL", hide_possible_values = false)]
    pub(crate) log_level: Option<LogLevel>,

    /// How a line of the log looks [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

pub(crate) const CONFIG_VARIABLE: &str = "RUNWIRE_CONFIG";

const LEASE: Seconds = Seconds(60);
const CANCEL: Seconds = Seconds(30);
const KEEP_ALIVE: Seconds = Seconds(15);
const CONNECTIONS: ConnectionLimit = ConnectionLimit(50_000);
const AGENTS_AT_ONCE: AgentRunLimit = AgentRunLimit(256);
const AGENTS_OPEN: AgentRunLimit = AgentRunLimit(4096);

/// The resolved settings of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) listen: Listen,
    pub(crate) allowed_hosts: Vec<AllowedHost>,
    pub(crate) store: StoreUrl,
    pub(crate) tail: Option<TailSettings>,
    pub(crate) lease: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) connections: u32,
    pub(crate) memory_budget: Option<u64>,
    pub(crate) console: bool,
    pub(crate) log_level: LogLevel,
    pub(crate) log_format: LogFormat,
    pub(crate) retention_age: Option<Duration>,
    pub(crate) retention_bytes: Option<u64>,
    pub(crate) agents_at_once: u32,
    pub(crate) agents_open: u32,
    pub(crate) default_agent: Option<String>,
    pub(crate) facades: Facades,
    pub(crate) agents: Vec<Agent>,
    pub(crate) webhooks: Vec<Webhook>,
}

/// The live tail: where nodes publish new events to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TailSettings {
    pub(crate) address: SecretUrl,
    /// Certificates in PEM that are trusted instead of the system's.
    pub(crate) trust: Option<Vec<u8>>,
}

impl TailSettings {
    /// Returns the options for the log.
    pub(crate) fn options(&self) -> TailOptions {
        TailOptions { url: self.address.expose().to_owned(), trust: self.trust.clone() }
    }
}

/// The settings, their origins, and the problems of the configuration.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) settings: Settings,
    pub(crate) resolved: Vec<ResolvedSetting>,
    pub(crate) problems: Vec<ConfigProblem>,
    /// Warnings that are not problems.
    pub(crate) notes: Vec<String>,
}

/// Reads the configuration from flags, variables, file and defaults.
///
/// `built_in` agents are added to those of the file, which win by name. If there are problems, the settings omit the
/// invalid parts.
pub(crate) fn read(flags: &Flags, built_in: Vec<Agent>) -> Result<Configuration, Failure> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
    let mut layers = Layers::new(flags.config.as_deref(), variables)?;
    let mut agents = layers.take_agents();
    // A single configured agent is the default; else the first built-in one.
    let default = match agents.as_slice() {
        [only] => Some(only),
        _ => built_in.first(),
    };
    let default = default.filter(|_| !built_in.is_empty()).map(|agent| agent.name.clone());
    for built_in in built_in {
        if agents.iter().all(|agent| agent.name != built_in.name) {
            agents.push(built_in);
        }
    }
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let listen = layers.take("listen", flags.listen.map(|value| ("--listen", value)), Listen::default());
    let hosts = flags.allowed_hosts.clone().map(|value| ("--allowed-hosts", value));
    let AllowedHosts(allowed_hosts) = layers.take("allowed_hosts", hosts, AllowedHosts::default());
    let store =
        layers.take("store", flags.store.clone().map(|value| ("--store", value)), StoreUrl::default());
    if let StoreUrl::Postgres(address) = &store
        && let Err(error) = PostgresLog::check_address(address.expose())
    {
        let hint = "it is postgres://USER:PASSWORD@HOST:PORT/DATABASE, and parameters follow a `?`";
        layers.add_problem("store", error.to_string(), Some(hint.into()));
    }
    let tail = take_tail(&mut layers, flags, &store);
    let settings = Settings {
        listen,
        allowed_hosts,
        store,
        tail,
        lease: layers.take("lease_seconds", flags.lease.map(|value| ("--lease", value)), LEASE).duration(),
        cancel_grace: layers.take("cancel_seconds", None, CANCEL).duration(),
        keep_alive: layers.take("keep_alive_seconds", None, KEEP_ALIVE).duration(),
        connections: layers.take("connections", None, CONNECTIONS).0,
        memory_budget: layers.take("memory_budget", None, MemoryLimit::default()).0,
        agents_at_once: layers.take("agents_at_once", None, AGENTS_AT_ONCE).0,
        agents_open: layers.take("agents_open", None, AGENTS_OPEN).0,
        default_agent: layers.take_default_agent(&names, default.as_deref()),
        console: layers
            .take("console", flags.no_console.then_some(("--no-console", Switch(false))), Switch(true))
            .0,
        log_level: layers.take(
            "log.level",
            flags.log_level.map(|value| ("--log-level", value)),
            LogLevel::Info,
        ),
        log_format: layers.take(
            "log.format",
            flags.log_format.map(|value| ("--log-format", value)),
            LogFormat::Text,
        ),
        retention_age: layers
            .take("retention.age", flags.retention_age.map(|value| ("--retention-age", value)), Age(None))
            .0,
        retention_bytes: layers
            .take(
                "retention.bytes",
                flags.retention_bytes.map(|value| ("--retention-bytes", value)),
                ByteLimit(None),
            )
            .0,
        facades: take_facades(&mut layers),
        agents,
        webhooks: layers.take_webhooks(),
    };
    let (resolved, problems, mut notes) = layers.finish();
    let refused = settings.webhooks.iter().filter(|webhook| webhook.is_refused());
    notes.extend(refused.map(|webhook| {
        let why = "its address is private; `allow_private = true` allows that";
        format!("the webhook {} is told nothing: {why}", webhook.name)
    }));
    if !settings.listen.0.ip().is_loopback() && settings.allowed_hosts.is_empty() {
        notes.push(
            "`allowed_hosts` is not set: a request that names this server by anything but an IP address that it \
             listens on, as one through a proxy may, is refused"
                .to_owned(),
        );
    }
    Ok(Configuration { settings, resolved, problems, notes })
}

fn take_facades(layers: &mut Layers) -> Facades {
    let mut facades = Facades::default();
    for (key, slots) in facades.settings() {
        *slots = layers.take(key, None, ShownSlots(*slots)).0;
    }
    facades
}

fn take_tail(layers: &mut Layers, flags: &Flags, store: &StoreUrl) -> Option<TailSettings> {
    let tail = flags.tail.clone().map(|value| ("--tail", value));
    let TailUrl(address) = layers.take("tail", tail, TailUrl(None));
    let trust = flags.tail_trust.clone().map(|value| ("--tail-trust", value));
    let TrustedCertificates(file) = layers.take("tail_trust", trust, TrustedCertificates(None));
    let trust = file.and_then(|file| {
        let hint = "name a file that this user may read, or `none` to trust what the system trusts";
        let read = fs::read(&file).map_err(|error| {
            layers.add_problem(
                "tail_trust",
                format!("cannot read {}: {error}", file.display()),
                Some(hint.into()),
            );
        });
        read.ok()
    });
    let Some(address) = address else {
        if trust.is_some() {
            let message = "there is no tail whose certificate it could check".to_owned();
            layers.add_problem("tail_trust", message, Some("name one with `tail`, or leave this out".into()));
        }
        return None;
    };
    if matches!(store, StoreUrl::Sqlite(_)) {
        let message =
            "a SQLite store is one server's alone, which needs to tell nobody of new events".to_owned();
        let hint = "leave the tail out, or share a store: `--store postgres://USER:PASSWORD@HOST/DATABASE`";
        layers.add_problem("tail", message, Some(hint.into()));
    }
    if let Err(error) = RedisTail::check(address.expose(), trust.as_deref()) {
        let key = if matches!(error, TailError::Certificates(_)) { "tail_trust" } else { "tail" };
        layers.add_problem(key, error.to_string(), Some(format!("the tail must be {}", TailUrl::ALLOWED)));
    }
    Some(TailSettings { address, trust })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_log_and_the_server() {
        assert_eq!(u64::from(LEASE.0), runwire_log::limits::LEASE_SECONDS);
        assert_eq!(u64::from(CANCEL.0), runwire_log::limits::CANCEL_SECONDS);
        assert_eq!(KEEP_ALIVE.duration(), runwire_server::limits::KEEP_ALIVE_TIME);
        assert_eq!(usize::try_from(CONNECTIONS.0), Ok(runwire_server::limits::CONNECTIONS));
        assert_eq!(usize::try_from(AGENTS_AT_ONCE.0), Ok(runwire_agents::limits::AGENTS_AT_ONCE));
        assert_eq!(usize::try_from(AGENTS_OPEN.0), Ok(runwire_agents::limits::AGENTS_OPEN));
    }
}
