//! Races of cancel, end, answer and lease: a run ends once, and nothing acknowledged is lost.

use std::time::Duration;

use runwire_log::sqlite::SqliteOptions;
use runwire_model::Timestamp;
use serde_json::Value;

use super::open_forms::{BEGIN, Clock};
use super::{FORM, of_type, submit, write};
use crate::agents::fake_agents::RunAssertions;
use crate::harness::{Answer, COMPLETED, Served};

const ROUNDS: usize = 40;
const ENDS: [&str; 3] = ["run.completed", "run.failed", "run.cancelled"];

/// A server whose leases run out in the middle of things.
async fn hasty(clock: &Clock) -> Served {
    let (lease, cancel_grace) = (Duration::from_millis(8), Duration::from_millis(4));
    Served::with_store(SqliteOptions { lease, cancel_grace, ..clock.options() }, |_| {}).await
}

/// Moments that differ from round to round, so that everyone comes first sometimes.
async fn a_moment(round: usize, who: usize) {
    let micros = (round * 2_654_435_761 + who * 40_503) % 12_000;
    tokio::time::sleep(Duration::from_micros(micros as u64)).await;
}

/// Sweeps as often as it can, while something else happens.
async fn swept<T>(served: &Served, work: impl Future<Output = T>) -> T {
    let sweeping = async {
        loop {
            served.log.sweep().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = sweeping => unreachable!(),
    }
}

/// Somebody who comes to a run in one of its moments.
struct Visit<'a> {
    served: &'a Served,
    round: usize,
    run: &'a str,
}

impl Visit<'_> {
    async fn cancels(&self, who: usize) -> Answer {
        a_moment(self.round, who).await;
        self.served.post(&format!("/v1/runs/{}/cancel", self.run), "{}").await
    }

    async fn completes(&self, who: usize) -> Answer {
        a_moment(self.round, who).await;
        self.served.post(&format!("/v1/runs/{}/events?dialect=runwire", self.run), COMPLETED).await
    }

    async fn answers(&self, who: usize) -> Answer {
        a_moment(self.round, who).await;
        submit(self.served, self.run, who).await
    }
}

fn end_of(events: &[Value]) -> &str {
    let ends = events.iter().filter(|event| ENDS.contains(&event["type"].as_str().unwrap()));
    assert_eq!(ends.count(), 1, "{events:#?}");
    events.last().unwrap()["type"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_the_end_and_the_lease_race_to_one_end() {
    let served = hasty(&Clock::new()).await;
    let mut completions = 0;
    for round in 0..ROUNDS {
        let run = format!("r{round}");
        write(&served, &run, &[r#"{"type":"run.started"}"#]).await;
        let visit = Visit { served: &served, round, run: &run };
        let race = async {
            // Sometimes the producer has vanished, and sometimes the server looks late, so that each can win.
            let completes = async {
                match round % 5 {
                    0 => None,
                    _ => Some(visit.completes(2).await),
                }
            };
            tokio::join!(visit.cancels(1), completes)
        };
        let (cancelled, completed) = match round % 2 {
            0 => swept(&served, race).await,
            _ => race.await,
        };
        assert_eq!(cancelled.status.as_u16(), 200, "{cancelled:?}");
        let closed = swept(&served, served.closed(&run)).await;
        let events = served.happened(&run).await;
        let end = end_of(&events);
        // Who was told that it ended the run has done so, and who has not was told.
        match completed {
            Some(completed) if completed.status.as_u16() != 200 => {
                completed.problem(409, "run_closed");
                assert_ne!(end, "run.completed");
            }
            completed => assert_eq!(completed.is_some(), end == "run.completed", "{events:#?}"),
        }
        assert!(of_type(&events, "run.cancel_requested").len() <= 1);
        assert_eq!(format!("run.{}", closed["status"].as_str().unwrap()), end);
        completions += usize::from(end == "run.completed");
    }
    assert!((1..ROUNDS).contains(&completions), "always the same won: {completions}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_cancel_the_end_and_expiry_race_to_one_end() {
    let clock = Clock::new();
    let served = hasty(&clock).await;
    let mut answers = 0;
    for round in 0..ROUNDS {
        let run = format!("r{round}");
        let hour = 3_600_000;
        let expiry = Timestamp(BEGIN + (round as u64 + 1) * hour);
        let asks = FORM.replace("\"kind\"", &format!("\"expires_at\":\"{expiry}\",\"kind\""));
        write(&served, &run, &[r#"{"type":"run.started"}"#, &asks]).await;
        let visit = Visit { served: &served, round, run: &run };
        let expires = async {
            a_moment(round, 9).await;
            clock.pass(hour);
        };
        let race = async {
            // People or the clock come first sometimes, so that each can win.
            match round % 4 {
                0 => {
                    let (one, two) = tokio::join!(visit.answers(1), visit.answers(3));
                    let (cancelled, completed, ()) =
                        tokio::join!(visit.cancels(5), visit.completes(7), expires);
                    (one, two, cancelled, completed)
                }
                1 => {
                    expires.await;
                    tokio::join!(visit.answers(1), visit.answers(3), visit.cancels(5), visit.completes(7))
                }
                _ => {
                    let (one, two, cancelled, completed, ()) = tokio::join!(
                        visit.answers(1),
                        visit.answers(3),
                        visit.cancels(5),
                        visit.completes(7),
                        expires
                    );
                    (one, two, cancelled, completed)
                }
            }
        };
        let (one, two, cancelled, completed) = swept(&served, race).await;
        assert_eq!(cancelled.status.as_u16(), 200, "{cancelled:?}");
        swept(&served, served.closed(&run)).await;
        let events = served.happened(&run).await;
        let end = end_of(&events);
        assert_eq!(completed.status.as_u16() == 200, end == "run.completed", "{completed:?} {events:#?}");
        let resolved = of_type(&events, "interaction.resolved");
        assert_eq!(resolved.len(), 1, "{events:#?}");
        let taken: Vec<_> = [&one, &two].into_iter().filter(|said| said.status.as_u16() == 200).collect();
        assert!(taken.len() <= 1, "{taken:?}");
        assert_eq!(taken.len() == 1, resolved[0]["decision"] == "submitted", "{events:#?}");
        for said in [&one, &two] {
            match said.status.as_u16() {
                200 => assert_eq!(said.json()["answer"]["values"], resolved[0]["values"]),
                // Whoever lost is told what the question has got instead.
                _ => assert_eq!(said.json()["answer"]["decision"], resolved[0]["decision"], "{said:?}"),
            }
        }
        answers += taken.len();
    }
    assert!((1..ROUNDS).contains(&answers), "always the same won: {answers}");
}
