//! What a command looks up in the records of its run costs no more than a few passes over them: all other commands
//! wait for it meanwhile.

use runwire_model::event::Body;

use super::Bed;
use super::fixture::{COMPLETED, Fixture, STARTED, append, run, to_run};
use crate::append::Target;

/// Calls whose arguments arrive in pieces: as many as a run may have open.
const CALLS: usize = 256;

fn pieces_of_calls() -> Vec<String> {
    let started = |call| format!(r#"{{"type":"tool.args_started","call_id":"c{call}","name":"t"}}"#);
    let piece = |call, delta: &str| {
        format!(r#"{{"type":"tool.args_delta","call_id":"c{call}","delta":{}}}"#, serde_json::json!(delta))
    };
    let begins = (0..CALLS).flat_map(|call| [started(call), piece(call, r#"{"n":"#)]);
    begins.chain((0..CALLS).map(|call| piece(call, &format!("{call}}}")))).collect()
}

/// Writes a run with open calls and many other records, some of which are flushed.
async fn open_calls(fixture: &Fixture<'_>, id: &str) {
    fixture.write(to_run(id, &[STARTED])).await;
    fixture.write(to_run(id, &pieces_of_calls())).await;
    let others: Vec<_> =
        (0..2000).map(|at| format!(r#"{{"type":"run.status","state":"working on part {at}"}}"#)).collect();
    for others in others.chunks(500) {
        fixture.write(to_run(id, others)).await;
    }
}

/// Returns the arguments of the calls of a run, by the number of the call.
async fn arguments(fixture: &Fixture<'_>, id: &str) -> Vec<(usize, String)> {
    let records = fixture.records(id).await;
    let bodies = records.iter().flat_map(|stored| &stored.record.entries).map(|entry| &entry.event.body);
    let mut calls: Vec<_> = bodies
        .filter_map(|body| match body {
            Body::ToolCalled(called) => {
                Some((called.call_id[1..].parse().expect("a number"), called.arguments.text().to_owned()))
            }
            _ => None,
        })
        .collect();
    calls.sort();
    calls
}

async fn scanned(fixture: &Fixture<'_>) -> u64 {
    fixture.log.stats().await.expect("statistics").written.scanned
}

/// Ending a run that still gathers the arguments of many calls reads its records once, for all of them.
pub async fn ending_a_run_with_many_open_calls_reads_its_records_once(bed: &dyn Bed) {
    let mut fixture = Fixture::open(bed).await;
    let expected: Vec<_> = (0..CALLS).map(|call| (call, format!(r#"{{"n":{call}}}"#))).collect();
    for (id, reopen) in [("cached", false), ("loaded", true)] {
        open_calls(&fixture, id).await;
        if reopen {
            fixture = fixture.reopen().await;
        }
        let before = scanned(&fixture).await;
        fixture.write(to_run(id, &[COMPLETED])).await;
        let read = scanned(&fixture).await - before;
        let records = fixture.info(id).await.last_seq;
        assert!(read <= 2 * records, "{read} records were read for a run of {records}");
        assert_eq!(arguments(&fixture, id).await, expected, "{id}");
    }
}

/// Calls that go on one by one, in the reverse order, read each record a few times, and not once for each call.
pub async fn calls_that_go_on_one_by_one_read_their_records_a_few_times(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    open_calls(&fixture, "r").await;
    let before = scanned(&fixture).await;
    for call in (0..CALLS).rev() {
        let started = format!(r#"{{"type":"tool.started","call_id":"c{call}"}}"#);
        fixture.write(to_run("r", &[started])).await;
    }
    let read = scanned(&fixture).await - before;
    let records = fixture.info("r").await.last_seq;
    assert!(read <= 4 * records, "{read} records were read for a run of {records}");
    let expected: Vec<_> = (0..CALLS).map(|call| (call, format!(r#"{{"n":{call}}}"#))).collect();
    assert_eq!(arguments(&fixture, "r").await, expected);
}

/// Whole texts that nothing was told of are compared with what the run has told; its records are read once for all.
pub async fn whole_texts_read_the_records_of_their_run_once(bed: &dyn Bed) {
    let fixture = Fixture::open(bed).await;
    let frame = |kind: &str, content: &str, sequence: usize| {
        format!(
            r#"{{"type":"{kind}","data":{{"content":"{content}"}},"metadata":{{"request_id":"q","timestamp":1,"sequence":{sequence}}}}}"#
        )
    };
    let start = r#"{"type":"session_start","data":{"session_id":"s","request_id":"q"},"metadata":{"request_id":"q","timestamp":1,"sequence":0}}"#;
    let wholes: Vec<_> =
        (1..=400).map(|at| frame("final_answer", &format!("Answer {at} is this."), at)).collect();
    let frames: Vec<_> = [start.to_owned()].into_iter().chain(wholes).collect();
    for frames in frames.chunks(50) {
        fixture.write(append(Target::Run(run("r")), frames)).await;
    }
    let records = fixture.info("r").await.last_seq;
    let read = scanned(&fixture).await;
    assert!(records >= 400 && read <= 3 * records, "{read} records were read for a run of {records}");
}
