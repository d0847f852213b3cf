//! Benchmark of the peak memory of `runwire convert` on long inputs.
//!
//! The input is generated while it is converted; the measured process is the `runwire` program.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runwire_model::dialect::{Dialect, Encoder, Fidelity, Frames};
use runwire_model::framing::{Framing, write_frame};
use runwire_model::window::Window;

use crate::program::build_runwire;
use crate::workload::{self, RunShape};
use crate::{Failure, take_option};

const MEBIBYTES: usize = 1024;
/// Bytes written at once; the peak is read after each chunk.
const CHUNK_BYTES: usize = 1 << 20;
/// The promised limit of `convert`.
const BOUND_MEBIBYTES: f64 = 64.0;

/// A kind of input.
#[derive(Clone, Copy)]
struct Input {
    name: &'static str,
    shape: RunShape,
    /// Runs per thread.
    runs_of_thread: u64,
}

const INPUTS: [Input; 5] = [
    Input { name: "one thread of usual runs", shape: RunShape::TYPICAL, runs_of_thread: u64::MAX },
    Input { name: "a thread for each run", shape: RunShape::TYPICAL, runs_of_thread: 1 },
    Input { name: "few runs of much text", shape: MUCH_TEXT, runs_of_thread: 8 },
    Input { name: "very many short runs", shape: SHORT, runs_of_thread: 1 },
    Input { name: "the same with long ids", shape: LONG_IDS, runs_of_thread: 1 },
];

/// A conversion to measure.
struct Conversion {
    input: Input,
    from: Dialect,
    to: Dialect,
}

/// Lists conversions: each dialect is read once and written once, and the kinds of input take turns.
fn conversions() -> impl Iterator<Item = Conversion> {
    let targets = Dialect::READABLE.into_iter().cycle().skip(1);
    let inputs = INPUTS.into_iter().cycle();
    let pairs = Dialect::READABLE.into_iter().zip(targets);
    pairs.zip(inputs).map(|((from, to), input)| Conversion { input, from, to })
}

/// Near the limit of a run's text: about seven mebibytes.
const MUCH_TEXT: RunShape = RunShape { turns: 100, repeat: 26, id_bytes: 0 };
const SHORT: RunShape = RunShape { turns: 0, repeat: 1, id_bytes: 0 };
/// Ids of maximum length.
const LONG_IDS: RunShape = RunShape { turns: 0, repeat: 1, id_bytes: 512 };

/// Prints the peak memory of a conversion for each kind of input.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut arguments = arguments.to_vec();
    let mebibytes = take_option(&mut arguments, "--mebibytes", MEBIBYTES)?;
    let program = build_runwire()?;
    println!(
        "peak memory (VmHWM) of `runwire convert` on {mebibytes} MiB of input; bound: {BOUND_MEBIBYTES:.0} MiB\n"
    );
    println!("{:<26} {:<34} {:>9} {:>8} {:>9}", "input", "from and to", "runs", "MB/s", "peak MiB");
    for conversion in conversions() {
        let measured = measure(&program, &conversion, mebibytes << 20)?;
        println!(
            "{:<26} {:<34} {:>9} {:>8.0} {:>9.1} {}",
            conversion.input.name,
            format!("{} to {}", conversion.from, conversion.to),
            measured.runs,
            measured.bytes as f64 / 1e6 / measured.took.as_secs_f64(),
            measured.peak_mebibytes,
            if measured.peak_mebibytes <= BOUND_MEBIBYTES { "within the bound" } else { "OVER the bound" }
        );
    }
    Ok(())
}

struct Measured {
    runs: u64,
    bytes: usize,
    took: Duration,
    peak_mebibytes: f64,
}

fn measure(program: &Path, conversion: &Conversion, bytes: usize) -> Result<Measured, Failure> {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(["convert", "--from", conversion.from.name(), "--to", conversion.to.name()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(mut stdout)) = (stdin, stdout) else { return Err("no pipe".into()) };
    let drain = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while stdout.read(&mut buffer).is_ok_and(|read| read > 0) {}
    });

    let mut measured = Measured { runs: 0, bytes: 0, took: Duration::ZERO, peak_mebibytes: 0.0 };
    let template = Template::new(conversion)?;
    let mut stream = Vec::new();
    while measured.bytes < bytes {
        stream.clear();
        while stream.len() < CHUNK_BYTES {
            measured.runs += 1;
            template.write(measured.runs, measured.runs / conversion.input.runs_of_thread, &mut stream);
        }
        measured.bytes += stream.len();
        if stdin.write_all(&stream).is_err() {
            break;
        }
        measured.peak_mebibytes = peak_mebibytes(&child).unwrap_or(measured.peak_mebibytes);
    }
    // The program still reads the last bytes: sample until it has exited.
    drop(stdin);
    let ended = loop {
        measured.peak_mebibytes = peak_mebibytes(&child).unwrap_or(measured.peak_mebibytes);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    measured.took = begun.elapsed();
    drain.join().map_err(|_| "the output could not be read")?;
    if ended.success() { Ok(measured) } else { Err(format!("`runwire convert` ended with {ended}").into()) }
}

/// Reads the peak resident memory of a running process.
fn peak_mebibytes(child: &Child) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

/// The stream of one run, to be written repeatedly with other ids.
struct Template {
    stream: String,
    thread_id: String,
    run_id: String,
}

impl Template {
    fn new(conversion: &Conversion) -> Result<Self, Failure> {
        let run = workload::run(conversion.input.shape, 0, 0)?;
        let mut encoder = Encoder::new(conversion.from, &run.thread_id, &run.run_id, Fidelity::Native);
        let (mut window, mut frames, mut stream) = (Window::default(), Frames::default(), Vec::new());
        for record in &run.records {
            window.absorb(record);
            frames.clear();
            encoder.step(record, &window, &mut frames);
            for (name, data) in frames.iter() {
                write_frame(Framing::Ndjson, &mut stream, None, name, data);
            }
        }
        Ok(Self { stream: String::from_utf8(stream)?, thread_id: run.thread_id, run_id: run.run_id })
    }

    /// Appends the run with the ids of these numbers.
    fn write(&self, run: u64, thread: u64, out: &mut Vec<u8>) {
        let (run_id, thread_id) = (same_length(&self.run_id, run), same_length(&self.thread_id, thread));
        out.extend_from_slice(
            self.stream.replace(&self.run_id, &run_id).replace(&self.thread_id, &thread_id).as_bytes(),
        );
    }
}

/// Replaces the number of an id like `run-000000`.
fn same_length(id: &str, number: u64) -> String {
    let digits = id.find('0').map_or(0, |from| id[from..].bytes().take_while(|byte| *byte == b'0').count());
    id.replacen(&"0".repeat(digits), &format!("{number:0digits$}"), 1)
}
