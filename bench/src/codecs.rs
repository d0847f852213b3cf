//! Benchmark of decoders and encoders, compared with `serde_json` on the same bytes.
//!
//! Times are CPU times of this thread. Rounds are interleaved, so that a slow machine slows both sides. The report has the
//! medians of each side's times and of the rounds' ratios.

use std::hint::black_box;
use std::time::Duration;

use runwire_model::Timestamp;
use runwire_model::dialect::{Decoder, Dialect, Encoder, Fidelity, Frames, RecordBuilder};
use runwire_model::record::{Entry, Record};
use runwire_model::run::{Authority, RunState};
use runwire_model::window::Window;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::workload::{self, RunShape};
use crate::{Failure, take_option};

const RUNS: u64 = 20;
const ROUNDS: usize = 21;
const DECODE_GOAL: f64 = 1.5;
const ENCODE_GOAL: f64 = 1.0;

/// Prints the figures of the given dialects, or of all.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let rounds = take_option(&mut arguments, "--rounds", ROUNDS)?.max(1);
    let named = arguments.iter().map(|name| {
        let readable = Dialect::from_name(name).filter(|dialect| Dialect::READABLE.contains(dialect));
        readable.ok_or_else(|| format!("`{name}` is no dialect that can be read"))
    });
    let mut dialects = named.collect::<Result<Vec<_>, _>>()?;
    if dialects.is_empty() {
        dialects = Dialect::READABLE.to_vec();
    }

    let runs = (1..=RUNS).map(|number| workload::run(RunShape::TYPICAL, number, number));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let mut benches = Vec::new();
    for dialect in dialects {
        benches.push(Bench::prepare(dialect, &runs)?);
    }
    for _ in 0..rounds {
        for bench in &mut benches {
            bench.round();
        }
    }

    let events: usize = runs.iter().flat_map(|run| &run.records).map(|record| record.entries.len()).sum();
    println!("{RUNS} runs, {events} canonical events, medians of {rounds} interleaved rounds, CPU time");
    println!("floor: serde_json on the same frames, to `Value` and back\n");
    println!(
        "decode (goal: at most {DECODE_GOAL:.1} times the floor's time; `open` is the part before the run)"
    );
    println!("{HEAD} {:>6}", "open");
    for Bench { dialect, size, times, .. } in &benches {
        let goal = Comparison::of(&times.parse, &times.decode, DECODE_GOAL);
        let open = Comparison::of(&times.parse, &times.open, DECODE_GOAL);
        println!("{} {:>6.2} {}", goal.row(*dialect, *size), open.quotient, goal.verdict());
    }
    println!("\nencode (goal: at most {ENCODE_GOAL:.1} times the floor's time)");
    println!("{HEAD}");
    for Bench { dialect, size, times, .. } in &benches {
        let goal = Comparison::of(&times.write, &times.encode, ENCODE_GOAL);
        println!("{} {}", goal.row(*dialect, *size), goal.verdict());
    }
    Ok(())
}

const HEAD: &str =
    "dialect           frames  bytes/frame      frames/s    MB/s   floor: frames/s    MB/s   time/floor";

/// The measurements of one dialect.
struct Bench {
    dialect: Dialect,
    runs: Vec<Prepared>,
    size: Size,
    times: Times,
}

/// A run, prepared for each measurement.
struct Prepared {
    thread_id: String,
    run_id: String,
    frames: Vec<Wire>,
    values: Vec<Value>,
    /// The window of decoding: the run as decoded.
    decoded: Window,
    records: Vec<Record>,
    /// The window of encoding: the run as written.
    written: Window,
}

/// A frame on the wire.
struct Wire {
    name: Option<String>,
    data: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    frames: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Times {
    parse: Vec<Duration>,
    open: Vec<Duration>,
    decode: Vec<Duration>,
    write: Vec<Duration>,
    encode: Vec<Duration>,
}

impl Bench {
    /// Encodes the runs once, and checks that every frame is decoded.
    fn prepare(dialect: Dialect, runs: &[workload::Run]) -> Result<Self, Failure> {
        let runs = runs.iter().map(|run| Prepared::new(dialect, run)).collect::<Result<Vec<_>, _>>()?;
        let frames = || runs.iter().flat_map(|run| &run.frames);
        let size = Size { frames: frames().count(), bytes: frames().map(|frame| frame.data.len()).sum() };
        Ok(Self { dialect, runs, size, times: Times::default() })
    }

    fn round(&mut self) {
        let Self { dialect, runs, times, .. } = self;
        times.parse.push(timed(runs, parse));
        times.open.push(timed(runs, |run| open(*dialect, run)));
        times.decode.push(timed(runs, |run| decode(*dialect, run)));
        times.write.push(timed(runs, write));
        times.encode.push(timed(runs, |run| encode(*dialect, run)));
    }
}

impl Prepared {
    fn new(dialect: Dialect, run: &workload::Run) -> Result<Self, Failure> {
        let mut prepared = Self {
            thread_id: run.thread_id.clone(),
            run_id: run.run_id.clone(),
            frames: Vec::new(),
            values: Vec::new(),
            decoded: Window::default(),
            written: full_window(run.records.iter().flat_map(|record| &record.entries)),
            records: run.records.clone(),
        };
        let mut encoder = prepared.encoder(dialect);
        let mut frames = Frames::default();
        // The window grows record by record, as in a conversion; frames depend on it.
        let mut window = Window::default();
        for record in &run.records {
            window.absorb(record);
            encoder.step(record, &window, &mut frames);
        }
        for (name, data) in frames.iter() {
            prepared.values.push(serde_json::from_slice(data)?);
            prepared.frames.push(Wire { name: name.map(str::to_owned), data: data.to_owned() });
        }
        prepared.decoded = full_window(&decoded(dialect, &prepared)?);
        Ok(prepared)
    }

    fn encoder(&self, dialect: Dialect) -> Encoder {
        Encoder::new(dialect, &self.thread_id, &self.run_id, Fidelity::Native)
    }
}

/// Returns a window with the whole run.
///
/// A log has earlier records too; collecting them is not part of decoding or encoding.
fn full_window<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Window {
    let entries = entries.into_iter().cloned().collect();
    let mut window = Window::default();
    window.absorb(&Record { seq: 1, at: Timestamp(0), source_time: None, dialect: None, entries });
    window
}

/// Decodes a run with a window that grows, as a conversion does.
fn decoded(dialect: Dialect, run: &Prepared) -> Result<Vec<Entry>, Failure> {
    let mut decoder = Decoder::new(dialect);
    let mut state = RunState::new(&run.thread_id, &run.run_id);
    let mut window = Window::default();
    let mut all = Vec::new();
    for (seq, frame) in (1..).zip(&run.frames) {
        let mut entries = Vec::new();
        let opened = decoder.open(frame.name.as_deref(), &frame.data)?;
        let mut builder =
            RecordBuilder::new(&mut state, &window, Authority::Producer, dialect, seq, &mut entries);
        decoder.decode(opened, &mut builder)?;
        let record = Record { seq, at: Timestamp(0), source_time: None, dialect: None, entries };
        window.absorb(&record);
        all.extend(record.entries);
    }
    Ok(all)
}

// Measured functions: never inlined, so that a profiler can tell them apart

#[inline(never)]
fn parse(run: &Prepared) {
    for frame in &run.frames {
        let _ = black_box(serde_json::from_slice::<Value>(&frame.data));
    }
}

#[inline(never)]
fn open(dialect: Dialect, run: &Prepared) {
    let decoder = Decoder::new(dialect);
    for frame in &run.frames {
        let _ = black_box(decoder.open(frame.name.as_deref(), &frame.data));
    }
}

#[inline(never)]
fn decode(dialect: Dialect, run: &Prepared) {
    let mut decoder = Decoder::new(dialect);
    let mut state = RunState::new(&run.thread_id, &run.run_id);
    let mut entries = Vec::new();
    for (seq, frame) in (1..).zip(&run.frames) {
        entries.clear();
        let mut builder =
            RecordBuilder::new(&mut state, &run.decoded, Authority::Producer, dialect, seq, &mut entries);
        if let Ok(opened) = decoder.open(frame.name.as_deref(), &frame.data) {
            let _ = black_box(decoder.decode(opened, &mut builder));
        }
        black_box(&entries);
    }
}

#[inline(never)]
fn write(run: &Prepared) {
    let mut out = Vec::new();
    for value in &run.values {
        out.clear();
        let _ = serde_json::to_writer(&mut out, value);
        black_box(&out);
    }
}

#[inline(never)]
fn encode(dialect: Dialect, run: &Prepared) {
    let mut encoder = run.encoder(dialect);
    let mut frames = Frames::default();
    for record in &run.records {
        frames.clear();
        encoder.step(record, &run.written, &mut frames);
        black_box(&frames);
    }
}

// Figures

/// Sums the times of the runs, after a warm-up of each.
///
/// A run fits into the cache, as a frame that was just received does.
fn timed(runs: &[Prepared], work: impl Fn(&Prepared)) -> Duration {
    let cpu = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    };
    let one = |run| {
        work(run);
        let before = cpu();
        work(run);
        cpu() - before
    };
    runs.iter().map(one).sum()
}

/// The times of a codec compared with its floor.
struct Comparison {
    floor: f64,
    ours: f64,
    quotient: f64,
    goal: f64,
}

impl Comparison {
    fn of(floor: &[Duration], ours: &[Duration], goal: f64) -> Self {
        let seconds = |times: &[Duration]| median(times.iter().map(Duration::as_secs_f64).collect());
        let quotients = ours.iter().zip(floor).map(|(ours, floor)| ours.as_secs_f64() / floor.as_secs_f64());
        Self { floor: seconds(floor), ours: seconds(ours), quotient: median(quotients.collect()), goal }
    }

    fn row(&self, dialect: Dialect, size: Size) -> String {
        let (frames, bytes) = (size.frames as f64, size.bytes as f64);
        format!(
            "{:<16} {:>7} {:>12.0} {:>13.0} {:>7.0} {:>17.0} {:>7.0} {:>12.2}",
            dialect.name(),
            size.frames,
            bytes / frames,
            frames / self.ours,
            bytes / self.ours / 1e6,
            frames / self.floor,
            bytes / self.floor / 1e6,
            self.quotient
        )
    }

    fn verdict(&self) -> String {
        if self.quotient <= self.goal {
            return "within its goal".to_owned();
        }
        format!("MISSES its goal by {:.0} %", (self.quotient / self.goal - 1.0) * 100.0)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
