//! Golden files of drawn runs, readable as text.
//!
//! `RUNWIRE_WRITE_GOLDEN=1 cargo nextest run -p runwire view` rewrites them.

use super::fixtures::{FakeTerminal, ScriptLine, golden, plain, recorded, terminal, vector};
use crate::View;

#[track_caller]
fn compare(name: &str, shown: &str) {
    let path = golden(name);
    if std::env::var_os("RUNWIRE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == expected, "{} differs; what is shown now:\n{shown}", path.display());
}

/// Draws a run on a terminal, and records the screen at each marked moment.
fn screens(script: &[ScriptLine], columns: u16) -> String {
    let mut shown = String::new();
    let screen = FakeTerminal::new(200, columns);
    let mut view = View::new(terminal(columns.into()), screen.clone());
    for cue in script {
        match cue {
            ScriptLine::Event(run, at, event) => view.event(run, *at, event).unwrap(),
            ScriptLine::Look(name) => {
                if name == "at the end" {
                    view.finish().unwrap();
                }
                view.flush().unwrap();
                shown.push_str(&format!("=== {name}\n{}\n", screen.text()));
            }
        }
        view.flush().unwrap();
    }
    shown
}

#[test]
fn runs_of_every_dialect_read_well_without_a_terminal() {
    for name in [
        "agio/every-event",
        "ag-ui/every-event",
        "ag-ui/form",
        "ag-ui/two-runs",
        "easyflow-chat/business-error",
        "easyflow-chat/form",
        "loom/got",
        "loom/tot",
        "runwire/approval",
        "runwire/cancelled",
        "runwire/chinese",
        "runwire/dies",
        "runwire/every-event",
        "runwire/every-event-failed",
        "social-app/every-event",
        "streaming-engine/every-event",
        "streaming-engine/legacy",
    ] {
        compare(&format!("{}.txt", name.replace('/', ".")), &plain(&vector(name)));
    }
}

#[test]
fn a_rich_run_reads_well_without_a_terminal() {
    compare("trip.txt", &plain(&recorded("trip")));
}

#[test]
fn a_rich_run_reads_well_on_a_terminal_of_40_and_of_100_columns() {
    for columns in [40, 100] {
        compare(&format!("trip.{columns}.txt"), &screens(&recorded("trip"), columns));
    }
}

#[test]
fn a_run_cannot_drive_the_terminal() {
    let shown = plain(&recorded("hostile"));
    assert!(!shown.contains(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t')));
    compare("hostile.txt", &shown);
    compare("hostile.60.txt", &screens(&recorded("hostile"), 60));
}
