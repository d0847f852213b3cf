//! Memory of `runwire convert` is bounded, whatever the input's size.

use std::io::Write;
use std::process::Stdio;

use crate::command::runwire;

/// Bytes of input; the peak does not depend on them, so more would only take longer.
const INPUT: usize = 200 << 20;

#[test]
fn convert_stays_under_64_mib_on_an_input_of_many_runs() {
    for to in ["ag-ui", "runwire"] {
        let mut child =
            runwire(&["convert", "--from", "loom", "--to", to]).stdout(Stdio::null()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (mut written, mut runs) = (0, 0);
        while written < INPUT / 2 {
            let run = one_run(runs);
            stdin.write_all(run.as_bytes()).unwrap();
            written += run.len();
            runs += 1;
        }
        let peak = peak_kib(child.id());
        drop(stdin);
        assert!(child.wait().unwrap().success());
        assert!(peak < 64 * 1024, "{to}: {peak} KiB");
    }
}

/// Writes a run with long pieces of text, so that much input takes few frames.
fn one_run(number: usize) -> String {
    let piece = "字".repeat(20_000);
    let mut run = format!("{{\"type\":\"run_start\",\"run_id\":\"run-{number}\",\"message\":\"go\"}}\n");
    for _ in 0..40 {
        run.push_str(&format!("{{\"type\":\"message_chunk\",\"content\":\"{piece}\",\"id\":\"think\"}}\n"));
    }
    run.push_str("{\"type\":\"tool_call\",\"call_id\":\"c\",\"name\":\"look\",\"arguments\":{}}\n");
    run.push_str(
        "{\"type\":\"tool_end\",\"call_id\":\"c\",\"name\":\"look\",\"result\":\"ok\",\"is_error\":false}\n",
    );
    run.push_str("{\"reply\":\"\"}\n");
    run
}

fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
