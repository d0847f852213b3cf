//! `runwire replay`: a stored run at its own pace, or another.

use std::time::Duration;

use futures_util::StreamExt;
use runwire_client::{Client, EventStream, FrameStream};
use runwire_model::Timestamp;

use super::interrupt::{BY_SIGNAL, Interrupt};
use super::printer::{Form, Printed, Printer};
use super::tail::say_left;
use super::watch::Watch;
use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::{ReplayArguments, Speed};
use crate::failure::Failure;

/// Plays a run.
pub(crate) fn run(arguments: &ReplayArguments) -> Result<Verdict, Failure> {
    let printed = arguments.output.printed()?;
    let client = connect(&arguments.server)?;
    block_on(async {
        let run = client.run(&arguments.run);
        let mut events = run.events().follow(false);
        if let Some(after) = arguments.after {
            events = events.after(after);
        }
        let pace = Pace::new(arguments);
        match printed {
            Printed::View { plain } => {
                let watch = Watch::new(&client.url(), plain);
                play_events(arguments, &client, events, pace, watch).await
            }
            Printed::Frames(form, dialect) => {
                let mut frames = run.frames(dialect).follow(false);
                if let Some(after) = arguments.after {
                    frames = frames.after(after);
                }
                // A cursor is of its dialect; the times are of whole records.
                let events = match arguments.after.and_then(|after| after.seq().checked_sub(1)) {
                    Some(before) => run.events().follow(false).after(runwire_client::Cursor::after(before)),
                    None => run.events().follow(false),
                };
                play_frames(arguments, &client, frames, Times::new(events), pace, form).await
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
            let place = pace.place();
            if let Some(pause) = pace.pause_before(received.at) {
                watch.pause(pause, place).await?;
            }
            Ok::<_, Failure>(Some(received))
        };
        let received = tokio::select! {
            biased;
            cause = interrupt.come_or_no_reader() => {
                let update = cause?;
                watch.finish()?;
                say_left("replay", client, &arguments.run, false, "", cursor);
                return Ok(Verdict::Exit(BY_SIGNAL + update));
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
    mut times: Times,
    mut pace: Pace,
    form: Form,
) -> Result<Verdict, Failure> {
    let mut interrupt = Interrupt::listen().map_err(Failure::Start)?;
    let mut printer = Printer::new(form);
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
            cause = interrupt.come_or_no_reader() => {
                let update = cause?;
                printer.finish()?;
                say_left("replay", client, &arguments.run, false, "", cursor);
                return Ok(Verdict::Exit(BY_SIGNAL + update));
            }
            frame = next => frame?,
        };
        let Some(frame) = frame else { break };
        printer.gather(&frame)?;
        cursor = frame.cursor.or(cursor);
    }
    printer.finish()?;
    Ok(Verdict::Fine)
}

/// How long it is between two events.
#[derive(Debug)]
struct Pace {
    speed: Speed,
    longest: Duration,
    last: Option<Timestamp>,
}

impl Pace {
    fn new(arguments: &ReplayArguments) -> Self {
        Self { speed: arguments.speed, longest: arguments.max_pause, last: None }
    }

    fn is_timed(&self) -> bool {
        self.speed != Speed::Max
    }

    /// Tells the time of the run that is being played.
    fn place(&self) -> Timestamp {
        self.last.unwrap_or_default()
    }

    /// Tells how long to wait before what happened at this time.
    fn pause_before(&mut self, at: Timestamp) -> Option<Duration> {
        let last = self.last.replace(at)?;
        let Speed::Times(times) = self.speed else { return None };
        let passed = Duration::from_millis(at.0.saturating_sub(last.0)).as_secs_f64() / times;
        let pause = Duration::try_from_secs_f64(passed).unwrap_or(Duration::MAX).min(self.longest);
        (!pause.is_zero()).then_some(pause)
    }
}

/// The times of a run's records, read beside its frames: few dialects tell them.
struct Times {
    events: EventStream,
    last: Option<(u64, Timestamp)>,
}

impl Times {
    fn new(events: EventStream) -> Self {
        Self { events, last: None }
    }

    /// Tells when a record was written; of one without events, when the next was.
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
        let mut pace = Pace { speed, longest: Duration::from_secs(2), last: None };
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
