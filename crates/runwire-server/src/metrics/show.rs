//! The handler of `GET /metrics`. `docs/operating.md` documents every family; a test compares the two.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use axum::extract::State;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, StatusCode};
use runwire_log::stats::COMMIT_TIME_BUCKETS;
use runwire_log::{LogStats, NodeStats};

use super::text::{MEDIA_TYPE, PrometheusText};
use super::{LoopRole, Metrics, ReaderTransport, RouteClass};
use crate::{AppState, limits};

/// Shows how the server stands, in the text format of Prometheus.
///
/// If the store does not answer, its families are left out and `runwire_store_up` is 0.
#[utoipa::path(
    get, path = "/metrics", operation_id = "getMetrics", tag = "server",
    responses((
        status = 200, body = String, content_type = "text/plain",
        description = "The figures; `docs/operating.md` names them.",
    )),
)]
pub(crate) async fn show(State(state): State<Arc<AppState>>) -> ([(HeaderName, &'static str); 2], String) {
    // Scrapers have short timeouts.
    let stats = tokio::time::timeout(limits::FIGURES_TIME, state.log.stats()).await;
    let stats = stats.ok().and_then(Result::ok);
    let mut text = PrometheusText::default();
    state.metrics.write(&mut text);
    text.gauge("runwire_store_up", "Whether the store answers.", u8::from(stats.is_some()));
    if let Some(stats) = &stats {
        write_log_metrics(&mut text, stats);
    }
    write_cluster_metrics(&mut text, &state.log.node_stats());
    let agents = state.agents.load();
    text.gauge(
        "runwire_agent_runs_open",
        "Runs of agents of this server that are open: under way, waiting for their turn or for a person.",
        agents.open,
    );
    text.gauge("runwire_agents_running", "Agents of this server that are at work.", agents.running);
    state.webhooks.write_metrics(&mut text, stats.as_ref());
    ([(CONTENT_TYPE, MEDIA_TYPE), (CACHE_CONTROL, "no-store")], text.finish())
}

impl Metrics {
    fn write(&self, text: &mut PrometheusText) {
        let version = env!("CARGO_PKG_VERSION");
        text.family("runwire_build_info", "gauge", "The version that runs; always 1.");
        text.sample("runwire_build_info", &[("version", version)], 1);
        let started = self.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        text.gauge("process_start_time_seconds", "When the server started, in seconds since 1970.", started);
        let uptime = self.started.elapsed().as_secs_f64();
        text.gauge("runwire_uptime_seconds", "For how long the server has been running.", uptime);

        let name = "runwire_http_requests_total";
        text.family(name, "counter", "Requests that were answered, by what they are about and status.");
        for (class, class_name) in RouteClass::ALL {
            for (at, count) in self.requests[class as usize].iter().enumerate() {
                let count = count.load(Ordering::Relaxed);
                if let Some(status) = u16::try_from(at + 100)
                    .ok()
                    .and_then(|status| StatusCode::from_u16(status).ok())
                    .filter(|_| count > 0)
                {
                    text.sample(name, &[("class", class_name), ("status", status.as_str())], count);
                }
            }
        }
        let name = "runwire_readers_open";
        text.family(name, "gauge", "Streams that are being read, by framing.");
        for (transport, transport_name) in ReaderTransport::ALL {
            let open = self.readers[transport as usize].load(Ordering::Relaxed);
            text.sample(name, &[("framing", transport_name)], open);
        }
        let name = "runwire_socket_loop_connections";
        text.family(name, "gauge", "Connections that socket loops serve, by what they do.");
        for (role, role_name) in LoopRole::ALL {
            let connections = self.loop_connections[role as usize].load(Ordering::Relaxed);
            text.sample(name, &[("role", role_name)], connections);
        }
        let name = "runwire_socket_loop_requests_total";
        text.family(
            name,
            "counter",
            "Appends that socket loops have answered, and streams that they have taken over.",
        );
        for (role, role_name) in LoopRole::ALL {
            let requests = self.loop_requests[role as usize].load(Ordering::Relaxed);
            text.sample(name, &[("role", role_name)], requests);
        }
    }
}

fn write_log_metrics(text: &mut PrometheusText, stats: &LogStats) {
    let name = "runwire_runs_open";
    text.family(name, "gauge", "Runs that have not ended, by status.");
    let open = [("pending", stats.pending), ("running", stats.running), ("suspended", stats.suspended)];
    for (status, count) in open {
        text.sample(name, &[("status", status)], count);
    }
    text.gauge("runwire_interactions_open", "Questions that wait for a person.", stats.interactions);
    text.gauge("runwire_store_bytes", "Bytes that the store takes on disk.", stats.store_bytes);

    let written = &stats.written;
    text.counter("runwire_records_written_total", "Records that were written.", written.records);
    text.counter("runwire_events_written_total", "Events that those records mean.", written.events);
    let help = "Bytes of the frames that those records keep.";
    text.counter("runwire_frame_bytes_written_total", help, written.bytes);

    let name = "runwire_commit_seconds";
    text.family(name, "histogram", "Time that the store took for a commit; many writes may share one.");
    let (bucket, mut cumulative) = (format!("{name}_bucket"), 0);
    for (longest, count) in COMMIT_TIME_BUCKETS.iter().zip(written.commit_buckets) {
        cumulative += count;
        text.sample(&bucket, &[("le", &longest.as_secs_f64().to_string())], cumulative);
    }
    text.sample(&bucket, &[("le", "+Inf")], written.commits);
    text.sample(&format!("{name}_sum"), &[], written.commit_time.as_secs_f64());
    text.sample(&format!("{name}_count"), &[], written.commits);
}

/// Writes the metrics of a cluster node. Families without a sample are written, too.
fn write_cluster_metrics(text: &mut PrometheusText, node_stats: &NodeStats) {
    let NodeStats { link, cluster, nodes } = node_stats;
    let link = link.as_ref();
    let help = "Connections to the store that are open.";
    text.gauge_of("runwire_store_connections", help, link.map(|link| link.connections));
    let help = "Connections to the store that broke, or were given up because no answer came.";
    text.counter_of("runwire_store_connections_lost_total", help, link.map(|link| link.lost));
    let help = "Tries to commit that failed: another node was faster, or the store was away.";
    text.counter_of("runwire_store_retries_total", help, link.map(|link| link.retries));

    let tail = cluster.as_ref().and_then(|cluster| cluster.tail.as_ref());
    let help = "Whether the tail can be written and followed.";
    text.gauge_of("runwire_tail_up", help, tail.map(|tail| u8::from(tail.links.up())));
    let help = "How long an entry of this node took last to come back to it over the tail.";
    let lag = tail.and_then(|tail| tail.lag).map(|lag| lag.as_secs_f64());
    text.gauge_of("runwire_tail_lag_seconds", help, lag);
    let help = "Entries that were sent over the tail.";
    text.counter_of("runwire_tail_entries_published_total", help, tail.map(|tail| tail.published));
    let help = "Entries that were not sent, because the tail was away or slow.";
    text.counter_of("runwire_tail_entries_dropped_total", help, tail.map(|tail| tail.dropped));
    let help = "Entries that arrived faster than they were taken.";
    text.counter_of("runwire_tail_entries_missed_total", help, tail.map(|tail| tail.missed));

    let cluster = cluster.as_ref();
    let help = "Threads that are followed because they are being read.";
    text.gauge_of("runwire_threads_followed", help, cluster.map(|cluster| cluster.followed));
    let help = "Times that the store was asked how far those threads are.";
    text.counter_of("runwire_head_checks_total", help, cluster.map(|cluster| cluster.head_checks));
    let help = "Reads from the store because a thread was further than what had arrived.";
    text.counter_of("runwire_heals_total", help, cluster.map(|cluster| cluster.heals));

    let name = "runwire_node_info";
    text.family(name, "gauge", "The id of this node, until it stops; always 1.");
    if let Some(nodes) = nodes {
        text.sample(name, &[("node", &nodes.id)], 1);
    }
    let nodes = nodes.as_ref();
    let help = "Nodes that share the store and have shown a sign of life.";
    text.gauge_of("runwire_nodes_alive", help, nodes.map(|nodes| nodes.alive));
    let help = "Whether this node keeps house for all: webhooks and retention.";
    text.gauge_of("runwire_on_duty", help, nodes.map(|nodes| u8::from(nodes.is_leader)));
}
