//! `runwire serve` and `runwire dev`: open the configured store and run the server.

mod idle_memory;
mod logging;
mod machine_memory;
mod open_files;
mod open_store;
mod signals;

use std::io::{self, Write};
use std::net::SocketAddr;

use runwire_agents::demos;
use runwire_log::Migrated;
use runwire_server::{Config, RetentionConfig, Server};

use crate::Verdict;
use crate::arguments::{DevArguments, ServeArguments};
use crate::check_config;
use crate::config::{self, Configuration, Listen, Settings};
use crate::failure::Failure;
use crate::screen;

/// Exit code after a store failure: acknowledged events are safe; the outcome of others is unknown until the store is
/// opened again.
const STORE_FAILED: i32 = 70;

/// Runs the server until a signal.
pub(crate) fn run(arguments: &ServeArguments) -> Result<Verdict, Failure> {
    let configuration = config::read(&arguments.flags, Vec::new())?;
    start(&configuration, arguments.insecure, Greeting::Line)
}

/// Runs a server for this machine only until a signal, and prints examples.
pub(crate) fn dev(arguments: &DevArguments) -> Result<Verdict, Failure> {
    let configuration = config::read(&arguments.flags, demos(false))?;
    start(&configuration, false, Greeting::Banner)
}

/// What is printed once connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    Line,
    Banner,
}

fn start(configuration: &Configuration, insecure: bool, greeting: Greeting) -> Result<Verdict, Failure> {
    let Configuration { settings, problems, notes, .. } = configuration;
    if !problems.is_empty() {
        return Ok(check_config::report(problems));
    }
    if !insecure && !settings.listen.0.ip().is_loopback() {
        return Err(exposed(configuration, greeting));
    }
    logging::start(settings.log_level, settings.log_format);
    for note in notes {
        tracing::warn!("{note}");
    }
    open_files::allow_as_many_as_possible();
    wait_for(serve(settings, greeting))?;
    Ok(Verdict::Fine)
}

/// Creates or migrates the tables of a store.
pub(crate) fn migrate(settings: &Settings) -> Result<Migrated, Failure> {
    logging::start(settings.log_level, settings.log_format);
    wait_for(open_store::migrate(&settings.store))
}

fn wait_for<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Start)?;
    let done = runtime.block_on(work);
    // Do not wait for a store that does not answer.
    runtime.shutdown_background();
    done
}

async fn serve(settings: &Settings, greeting: Greeting) -> Result<(), Failure> {
    // Before the store is opened: from here on a signal stops the server gracefully.
    let stop = signals::stop().map_err(Failure::Start)?;
    let mut stop = std::pin::pin!(stop);
    let log = tokio::select! {
        log = open_store::open(settings) => log?,
        () = &mut stop => return Ok(()),
    };
    let default_budget = Config::default().memory_budget;
    let config = Config {
        listen: settings.listen.0,
        allowed_hosts: settings.allowed_hosts.clone(),
        keep_alive: settings.keep_alive,
        body_idle: Config::default().body_idle.min(settings.lease),
        heartbeat: Config::default().heartbeat.min(settings.lease / 4),
        connections: usize::try_from(settings.connections).unwrap_or(usize::MAX),
        memory_budget: settings.memory_budget.or_else(machine_memory::budget).unwrap_or(default_budget),
        retention: RetentionConfig { age: settings.retention_age, bytes: settings.retention_bytes },
        agents: settings.agents.clone(),
        default_agent: settings.default_agent.clone(),
        facades: settings.facades,
        agents_at_once: usize::try_from(settings.agents_at_once).unwrap_or(usize::MAX),
        agents_open: usize::try_from(settings.agents_open).unwrap_or(usize::MAX),
        webhooks: settings.webhooks.clone(),
        console: settings.console,
        agent_grace: Config::default().agent_grace.min(settings.cancel_grace),
        ..Config::default()
    };
    let server =
        Server::bind(config, log).map_err(|error| Failure::Listen { address: settings.listen.0, error })?;
    let address = server.address();
    let tail = settings.tail.as_ref().map(|tail| tracing::field::display(&tail.address));
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(%address, store = %settings.store, tail, version, "listening");
    greet(address, settings, greeting).map_err(Failure::Write)?;
    let returning_memory = tokio::spawn(idle_memory::return_memory());
    let served = server.run(stop).await;
    returning_memory.abort();
    served.map_err(Failure::Serve)?;
    tracing::info!("stopped");
    Ok(())
}

/// Exits after a commit with an unknown outcome: a restart finds out what is stored.
fn exit_on_store_failure(reason: &str) {
    tracing::error!(reason, "ending; a restart recovers everything that was acknowledged");
    std::process::exit(STORE_FAILED);
}

/// Exits if the store was replaced or restored: cached state may no longer be stored.
fn exit_on_store_change(reason: &str) {
    tracing::error!(reason, "ending, since what this node has read may be gone; starting it again is enough");
    std::process::exit(STORE_FAILED);
}

/// Prints the server's URL. Programs read the first line.
fn greet(address: SocketAddr, settings: &Settings, greeting: Greeting) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "runwire listening on http://{address}")?;
    stdout.flush()?;
    if greeting == Greeting::Banner {
        screen::say_plainly(banner(address, settings));
    }
    Ok(())
}

fn banner(address: SocketAddr, settings: &Settings) -> String {
    let url = format!("http://{address}");
    let hello = r#"{"type":"run_start","message":"Hello?"}"#;
    let reply = r#"{"reply":"Hello!"}"#;
    let console = if settings.console { format!("\n  The console is at {url}\n") } else { String::new() };
    format!(
        "{console}
  Events are kept in {store}. Control-C stops the server. Try, in another terminal:

    runwire run demo 天气怎么样{at}

    curl {url}/v1/runs/r1/events -H 'content-type: application/x-ndjson' --data-binary $'{hello}\\n{reply}\\n'
    curl -N '{url}/v1/runs/r1/events?dialect=ag-ui'
    curl {url}/v1/runs/r1
",
        store = settings.store,
        at = if settings.listen == Listen::default() { String::new() } else { format!(" --url {url}") },
    )
}

fn exposed(configuration: &Configuration, greeting: Greeting) -> Failure {
    let address = configuration.settings.listen.0;
    let origin =
        configuration.resolved.iter().find(|setting| setting.key == "listen").map(|setting| &setting.origin);
    let from = origin.map(|origin| format!(" (from {origin})")).unwrap_or_default();
    match greeting {
        Greeting::Line => Failure::Usage {
            message: format!(
                "{address}{from} can be reached by others, and there are no tokens yet: anyone who reaches it \
                 may read and write everything"
            ),
            hint: "listen on 127.0.0.1, or say --insecure if something else guards the address",
        },
        Greeting::Banner => Failure::Usage {
            message: format!(
                "{address}{from} can be reached by others; `runwire dev` is for this machine alone"
            ),
            hint: "listen on 127.0.0.1, or use `runwire serve`",
        },
    }
}
