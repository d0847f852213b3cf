//! Very many idle readers of one run, and one event for all of them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Launcher, figure, worst};
use crate::Failure;
use crate::report::{Goal, Report};
use crate::wire::append::{self, expect_success};
use crate::wire::client::HttpConnection;
use crate::wire::frame;
use crate::wire::process::ServerProcess;

/// Readers from one address: each has ports of its own.
const READERS_PER_ADDRESS: usize = 20_000;
/// Readers that attach concurrently.
const CONCURRENT_ATTACHES: usize = 64;
/// Files that client and server open beside the readers' sockets.
const OTHER_FILES: u64 = 500;
/// Pause before memory is read.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Time for one event to reach all.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(60);
const RUN: &str = "idle";

/// Measures the memory of idle readers, and how long one event takes to all of them.
pub(super) async fn measure(launcher: &Launcher, wanted: usize, report: &mut Report) -> Result<(), Failure> {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let most = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
    let count = wanted.min(most);
    if count < wanted {
        eprintln!("{count} idle readers instead of {wanted}: a process may open {files} files here");
    }
    let config = launcher.folder.path().join("idle.toml");
    std::fs::write(&config, format!("connections = {}\n", count + 1000))?;
    let config = config.display().to_string();
    let server = launcher.start(&launcher.store("idle"), &["--config", &config])?;
    append::begin(&server, &[RUN.to_owned()]).await?;

    let before = server.resident_kibibytes()?;
    let mut readers = attach(&server, count).await?;
    sleep(SETTLE_TIME).await;
    let each = (server.resident_kibibytes()? - before) / count as f64;
    let mut memory = figure(format!("an idle reader, of {count}"), "KiB resident", each, 0.0);
    memory.beside.clear();
    report.add([memory.with_goal(Goal::ValueAtMost(4.0))]);

    let cpu = server.cpu_time()?;
    let mut writer = HttpConnection::open(server.address).await?;
    let mut body = Vec::new();
    let begun = Instant::now();
    let status = writer.exchange(&server.kind.write_request(RUN, &frame::typical(RUN)), &mut body).await?;
    expect_success(status, &body)?;
    let mut latencies = Vec::with_capacity(count);
    let delivered = timeout(DELIVERY_TIMEOUT, async {
        let mut buffer = [0; 4096];
        for reader in &mut readers {
            if reader.read(&mut buffer).await? == 0 {
                return Err("a reader was cut off".into());
            }
            latencies.push(begun.elapsed().as_micros() as u32);
        }
        Ok::<_, Failure>(())
    });
    delivered.await.map_err(|_| "not every reader has had the event in a minute")??;
    let cpu = server.cpu_time()?.saturating_sub(cpu);
    let mut last = figure("  one event until 99 % have it".into(), "ms", worst(&mut latencies), 0.0);
    last.beside.clear();
    last.cpu[0].push(cpu.as_secs_f64() * 1e6 / count as f64);
    report.add([last]);
    Ok(())
}

/// Attaches readers from as many loopback addresses as their ports need.
async fn attach(server: &ServerProcess, count: usize) -> Result<Vec<TcpStream>, Failure> {
    let request = server.kind.read_request(RUN);
    let mut attached = Vec::with_capacity(count);
    while attached.len() < count {
        let mut attaching = JoinSet::new();
        for number in attached.len()..count.min(attached.len() + CONCURRENT_ATTACHES) {
            let (address, request) = (server.address, request.clone());
            let from = Ipv4Addr::new(127, 0, 0, 2 + (number / READERS_PER_ADDRESS) as u8);
            attaching.spawn(async move {
                let socket = TcpSocket::new_v4()?;
                socket.bind(SocketAddr::new(IpAddr::V4(from), 0))?;
                let mut reader = socket.connect(address).await?;
                reader.write_all(&request).await?;
                // The head, what was written before, and that it has caught up.
                let (mut buffer, mut received) = ([0; 4096], Vec::new());
                while memchr::memmem::find(&received, b": caught-up").is_none() {
                    let count = reader.read(&mut buffer).await?;
                    if count == 0 {
                        return Err(format!("no stream: {}", String::from_utf8_lossy(&received)).into());
                    }
                    received.extend_from_slice(&buffer[..count]);
                }
                Ok::<_, Failure>(reader)
            });
        }
        while let Some(reader) = attaching.join_next().await {
            attached.push(reader??);
        }
    }
    Ok(attached)
}
