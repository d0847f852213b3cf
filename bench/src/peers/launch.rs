//! The servers that are compared, and how each is started.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::REDIS_RELAY;
use crate::Failure;
use crate::wire::process::{ServerKind, ServerProcess};

/// A server that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerKind {
    Runwire,
    DurableStreams,
    DurableStreamsNode,
    Nchan,
    RedisRelay,
}

impl PeerKind {
    const ALL: [Self; 5] =
        [Self::Runwire, Self::DurableStreams, Self::DurableStreamsNode, Self::Nchan, Self::RedisRelay];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Runwire => "Runwire",
            Self::DurableStreams => "durable-streams (Rust, fsync)",
            Self::DurableStreamsNode => "durable-streams (Node.js, file)",
            Self::Nchan => "nchan (memory)",
            Self::RedisRelay => "a relay before Redis (fsync)",
        }
    }

    /// Returns whether one request can write several events.
    pub(super) fn takes_batches(self) -> bool {
        matches!(self, Self::Runwire | Self::DurableStreams | Self::DurableStreamsNode)
    }

    fn kind(self) -> ServerKind {
        match self {
            Self::Runwire => ServerKind::Runwire,
            Self::DurableStreams | Self::DurableStreamsNode => ServerKind::DurableStreams,
            Self::Nchan | Self::RedisRelay => ServerKind::PubSub,
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Runwire => "build it",
            Self::DurableStreams => {
                "`cargo install --locked durable-streams` puts `durable-streams-server` on the path; \
                 `--tools DIR` names another folder to look in"
            }
            Self::DurableStreamsNode => {
                "`npm install @durable-streams/server` in a folder, and `--tools DIR` with that folder"
            }
            Self::Nchan => "Debian's packages `nginx-light` and `libnginx-mod-nchan`",
            Self::RedisRelay => "Debian's package `redis-server`",
        }
    }
}

/// The servers that are installed.
pub(super) struct Peers {
    found: Vec<(PeerKind, PathBuf)>,
    folder: PathBuf,
}

/// Where nginx keeps the module.
const NCHAN: &str = "/usr/lib/nginx/modules/ngx_nchan_module.so";
/// The reference server, in the folder that `--tools` names.
const NODE_SERVER: &str = "node_modules/@durable-streams/server/package.json";

impl Peers {
    /// Looks for the programs: in `tools` and its `bin`, then on the path.
    pub(super) fn find(runwire: PathBuf, tools: Option<PathBuf>, folder: &Path) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let given = tools.iter().flat_map(|tools| [tools.join("bin"), tools.clone()]);
        let usual = ["/usr/sbin", "/usr/bin"].map(PathBuf::from);
        let places: Vec<PathBuf> = given.chain(std::env::split_paths(&path)).chain(usual).collect();
        let program = |name: &str| places.iter().map(|place| place.join(name)).find(|path| path.is_file());
        let find = |peer| match peer {
            PeerKind::Runwire => Some(runwire.clone()),
            PeerKind::DurableStreams => program("durable-streams-server"),
            PeerKind::DurableStreamsNode => {
                tools.as_ref().filter(|tools| tools.join(NODE_SERVER).is_file()).cloned()
            }
            PeerKind::Nchan => program("nginx").filter(|_| Path::new(NCHAN).is_file()),
            PeerKind::RedisRelay => program("redis-server"),
        };
        let found = PeerKind::ALL.into_iter().filter_map(|peer| Some((peer, find(peer)?))).collect();
        Self { found, folder: folder.to_owned() }
    }

    /// Lists the servers that are there.
    pub(super) fn found(&self) -> Vec<PeerKind> {
        self.found.iter().map(|(peer, _)| *peer).collect()
    }

    /// Lists the others, and how to get each.
    pub(super) fn missing(&self) -> impl Iterator<Item = (PeerKind, &'static str)> {
        let found = self.found();
        PeerKind::ALL.into_iter().filter(move |peer| !found.contains(peer)).map(|peer| (peer, peer.help()))
    }

    /// Starts all servers, each on an empty store.
    pub(super) fn start_all(&self, label: &str) -> Result<Vec<(PeerKind, ServerProcess)>, Failure> {
        let started = self.found().into_iter().map(|peer| Ok((peer, self.start(peer, label)?)));
        started.collect()
    }

    /// Starts a server on an empty store.
    pub(super) fn start(&self, peer: PeerKind, label: &str) -> Result<ServerProcess, Failure> {
        let Some((_, program)) = self.found.iter().find(|(found, _)| *found == peer) else {
            return Err(peer.help().into());
        };
        let folder = self.folder.join(format!("{label}-{peer:?}"));
        std::fs::create_dir_all(&folder)?;
        let address = free_address()?;
        let port = address.port().to_string();
        let mut command = Command::new(program);
        command.current_dir(&folder);
        match peer {
            PeerKind::Runwire => {
                command.args(["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:store.db"]);
                return ServerProcess::start(peer.kind(), &mut command);
            }
            PeerKind::DurableStreams => {
                command.args(["--port", &port, "--data-dir", "data"]);
            }
            PeerKind::DurableStreamsNode => {
                command = Command::new("node");
                command.current_dir(program).args(["--input-type=module", "--eval", NODE_PROGRAM]);
                command.env("PORT", &port).env("DATA", folder.join("data"));
            }
            PeerKind::Nchan => {
                let configuration = folder.join("nginx.conf");
                std::fs::write(&configuration, nginx_configuration(address))?;
                command.arg("-p").arg(&folder).arg("-c").arg(&configuration);
            }
            PeerKind::RedisRelay => {
                command = Command::new(std::env::current_exe()?);
                command.current_dir(&folder).arg(REDIS_RELAY).arg(program).arg(&port);
            }
        }
        ServerProcess::start_at(peer.kind(), &mut command, Some(address))
    }
}

/// Finds an address that nobody listens at.
pub(super) fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

const NODE_PROGRAM: &str = "\
import { DurableStreamTestServer } from '@durable-streams/server';
await new DurableStreamTestServer({ host: '127.0.0.1', port: Number(process.env.PORT), dataDir: process.env.DATA }).start();
";

fn nginx_configuration(address: SocketAddr) -> String {
    format!(
        "load_module {NCHAN};
daemon off;
pid nginx.pid;
error_log stderr error;
worker_processes auto;
worker_rlimit_nofile 65536;
events {{ worker_connections 30000; }}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests 100000000;
  nchan_shared_memory_size 512M;
  server {{
    listen {address} backlog=4096;
    location = /pub {{ nchan_publisher; nchan_channel_id $arg_id; nchan_message_buffer_length 1000; nchan_message_timeout 1m; }}
    location = /sub {{ nchan_subscriber eventsource; nchan_channel_id $arg_id; nchan_subscriber_first_message newest; }}
  }}
}}
"
    )
}
