//! `runwire replay`: plays a stored run at its original or another speed.

use std::time::Duration;

use futures_util::StreamExt;
use runwire_client::{Client, EventStream, FrameStream};
use runwire_model::Timestamp;

use super::interrupt::{Interrupt, SIGNAL_EXIT_BASE};
use super::printer::{PrintFormat, PrintMode, Printer};
use super::tail::print_resume_hint;
use super::watch::Watch;
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::{ReplayArguments, Speed};
use crate::failure::Failure;

/// Plays a run.
pub(crate) fn run(arguments: &ReplayArguments) -> Result<Verdict, Failure> {
    let mode = arguments.output.print_mode()?;
    let client = connect(&arguments.server)?;
    block_on(async {
        let run = client.run(&arguments.run);
        let mut events = run.events().follow(false);
        if let Some(after) = arguments.after {
            events = events.after(after);
        }
        let pace = Pace::new(arguments);
        match mode {
            PrintMode::View { plain } => {
                let watch = Watch::new(&client.url(), plain);
                play_events(arguments, &client, events, pace, watch).await
            }
            PrintMode::Frames(format, dialect) => {
                let mut frames = run.frames(dialect).follow(false);
                if let Some(after) = arguments.after {
                    frames = frames.after(after);
                }
                // Cursors are specific to a dialect; times belong to whole records.
                let events = match arguments.after.and_then(|after| after.seq().checked_sub(1)) {
                    Some(before) => run.events().follow(false).after(runwire_client::Cursor::after(before)),
                    None => run.events().follow(false),
                };
                play_frames(arguments, &client, frames, RecordTimes::new(events), pace, format).await
            }
        }
    })
}

async fn play_events(
    arguments: &ReplayArguments,
    client: &Client,
    mut events: EventStream,
    mut pace: Pace,
    mut watch: Watch,
) -> Result<Verdict, Failure> {
    let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
    let mut cursor = arguments.after;
    loop {
        let next = async {
            let Some(received) = events.next().await.transpose()? else { return Ok(None) };
            let position = pace.position();
            if let Some(pause) = pace.pause_before(received.at) {
                watch.pause(pause, position).await?;
            }
            Ok::<_, Failure>(Some(received))
        };
        let received = tokio::select! {
            biased;
            cause = interrupt.signal_or_closed_output() => {
                let signal = cause?;
                watch.finish()?;
                print_resume_hint("replay", client, &arguments.run, false, "", cursor);
                return Ok(Verdict::Exit(SIGNAL_EXIT_BASE + signal));
            }
            received = next => received?,
        };
        let Some(received) = received else { break };
        watch.event(&received)?;
        cursor = received.cursor.or(cursor);
    }
    watch.finish()?;
    Ok(Verdict::Fine)
}

async fn play_frames(
    arguments: &ReplayArguments,
    client: &Client,
    mut frames: FrameStream,
    mut times: RecordTimes,
    mut pace: Pace,
    format: PrintFormat,
) -> Result<Verdict, Failure> {
    let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
    let mut printer = Printer::new(format);
    let mut cursor = arguments.after;
    loop {
        let next = async {
            let Some(frame) = frames.next().await.transpose()? else { return Ok(None) };
            if pace.is_timed()
                && let Some(cursor) = frame.cursor
                && let Some(at) = times.of(cursor.seq()).await?
                && let Some(pause) = pace.pause_before(at)
            {
                printer.flush()?;
                tokio::time::sleep(pause).await;
            }
            Ok::<_, Failure>(Some(frame))
        };
        let frame = tokio::select! {
            biased;
            cause = interrupt.signal_or_closed_output() => {
                let signal = cause?;
                printer.finish()?;
                print_resume_hint("replay", client, &arguments.run, false, "", cursor);
                return Ok(Verdict::Exit(SIGNAL_EXIT_BASE + signal));
            }
            frame = next => frame?,
        };
        let Some(frame) = frame else { break };
        printer.push(&frame)?;
        cursor = frame.cursor.or(cursor);
    }
    printer.finish()?;
    Ok(Verdict::Fine)
}

/// Computes the pauses between events.
#[derive(Debug)]
struct Pace {
    speed: Speed,
    max_pause: Duration,
    last: Option<Timestamp>,
}

impl Pace {
    fn new(arguments: &ReplayArguments) -> Self {
        Self { speed: arguments.speed, max_pause: arguments.max_pause, last: None }
    }

    fn is_timed(&self) -> bool {
        self.speed != Speed::Max
    }

    /// Returns the time of the last event.
    fn position(&self) -> Timestamp {
        self.last.unwrap_or_default()
    }

    /// Returns the pause before an event of this time.
    fn pause_before(&mut self, at: Timestamp) -> Option<Duration> {
        let last = self.last.replace(at)?;
        let Speed::Times(times) = self.speed else { return None };
        let passed = Duration::from_millis(at.0.saturating_sub(last.0)).as_secs_f64() / times;
        let pause = Duration::try_from_secs_f64(passed).unwrap_or(Duration::MAX).min(self.max_pause);
        (!pause.is_zero()).then_some(pause)
    }
}

/// The times of a run's records, read in parallel to its frames, as few dialects carry them.
struct RecordTimes {
    events: EventStream,
    last: Option<(u64, Timestamp)>,
}

impl RecordTimes {
    fn new(events: EventStream) -> Self {
        Self { events, last: None }
    }

    /// Returns the time of a record; for one without events, that of the next.
    async fn of(&mut self, seq: u64) -> Result<Option<Timestamp>, Failure> {
        while self.last.is_none_or(|(last, _)| last < seq) {
            match self.events.next().await.transpose()? {
                Some(received) => self.last = Some((received.seq, received.at)),
                None => return Ok(None),
            }
        }
        Ok(self.last.map(|(_, at)| at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(speed: Speed, times: &[u64]) -> Vec<Option<u128>> {
        let mut pace = Pace { speed, max_pause: Duration::from_secs(2), last: None };
        let times = times.iter().map(|time| pace.pause_before(Timestamp(*time)));
        times.map(|pause| pause.map(|pause| pause.as_millis())).collect()
    }

    #[test]
    fn pauses_are_those_of_the_run_divided_by_the_speed_and_never_too_long() {
        let times = [1000, 1000, 1500, 9500, 9400];
        assert_eq!(pauses(Speed::Times(1.0), &times), [None, None, Some(500), Some(2000), None]);
        assert_eq!(pauses(Speed::Times(10.0), &times), [None, None, Some(50), Some(800), None]);
        assert_eq!(pauses(Speed::Times(1e-300), &times), [None, None, Some(2000), Some(2000), None]);
        assert_eq!(pauses(Speed::Max, &times), [None; 5]);
    }
}
