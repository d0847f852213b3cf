//! Maps a program's exit status to the end of its run and to this command's exit code.

use std::process::ExitStatus;

use runwire_agents::programs::exit_signal;
use runwire_model::RunFailureCode;
use serde_json::json;

use crate::client::interrupt::SIGNAL_EXIT_BASE;

/// How a run ends if the program's frames did not end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProgramOutcome {
    Completed,
    Failed { code: RunFailureCode, message: String, exit_code: Option<i32>, signal: Option<i32> },
    Cancelled { reason: Option<String> },
}

impl ProgramOutcome {
    /// Returns the outcome of an exit status. A program that exits after a cancel request was cancelled.
    pub(super) fn of(status: ExitStatus, cancelled: Option<Option<String>>) -> Self {
        if let Some(reason) = cancelled {
            return Self::Cancelled { reason };
        }
        if status.success() {
            return Self::Completed;
        }
        let (exit_code, signal) = (status.code(), exit_signal(status));
        let (code, message) = match (exit_code, signal) {
            (Some(exit_code), _) => {
                (RunFailureCode::ExitStatus, format!("the program ended with exit code {exit_code}"))
            }
            (None, Some(signal)) => {
                (RunFailureCode::Killed, format!("the program was ended by {}", name_of(signal)))
            }
            (None, None) => (RunFailureCode::ExitStatus, format!("the program failed: {status}")),
        };
        Self::Failed { code, message, exit_code, signal }
    }

    /// Returns the outcome of a program that could not be started.
    pub(super) fn not_started(message: String) -> Self {
        Self::Failed { code: RunFailureCode::NotStarted, message, exit_code: None, signal: None }
    }

    /// Returns the terminal event. `None` for a run that completes: the server ends it, as it knows the last fatal notice.
    pub(super) fn frame(&self) -> Option<String> {
        let frame = match self {
            Self::Completed => return None,
            Self::Cancelled { reason: None } => json!({"type": "run.cancelled"}),
            Self::Cancelled { reason: Some(reason) } => json!({"type": "run.cancelled", "reason": reason}),
            Self::Failed { code, message, exit_code, signal } => {
                let mut error = json!({"code": code.as_str(), "message": message});
                if let Some(exit_code) = exit_code {
                    error["details"] = json!({"exit_code": exit_code});
                } else if let Some(signal) = signal {
                    error["details"] = json!({"signal": signal});
                }
                json!({"type": "run.failed", "error": error})
            }
        };
        Some(frame.to_string())
    }
}

/// Returns the exit code of a shell for an exit status.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let by_signal = || exit_signal(status).and_then(|signal| u8::try_from(signal).ok());
    match status.code() {
        Some(code) => u8::try_from(code & 0xff).unwrap_or(1),
        None => by_signal().map_or(1, |signal| SIGNAL_EXIT_BASE.saturating_add(signal)),
    }
}

fn name_of(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn an_exit_status_ends_the_run_and_sets_the_exit_code() {
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(ProgramOutcome::of(exited(0), None), ProgramOutcome::Completed);
        assert_eq!((exit_code(exited(0)), exit_code(exited(3)), exit_code(exited(255))), (0, 3, 255));
        let failed = ProgramOutcome::of(exited(3), None).frame().unwrap();
        let expected = r#"{"type":"run.failed","error":{"code":"exit_status","message":"the program ended with exit code 3","details":{"exit_code":3}}}"#;
        assert_eq!(failed, expected);
        let killed = ExitStatus::from_raw(9);
        assert_eq!(exit_code(killed), 137);
        let frame = ProgramOutcome::of(killed, None).frame().unwrap();
        assert!(
            frame.contains("signal 9 (SIGKILL)") && frame.contains(r#""details":{"signal":9}"#),
            "{frame}"
        );
    }

    #[test]
    fn a_program_that_exits_after_a_cancel_was_cancelled() {
        let reason = Some("no longer needed".to_owned());
        let frame = ProgramOutcome::of(ExitStatus::from_raw(15), Some(reason)).frame().unwrap();
        assert_eq!(frame, r#"{"type":"run.cancelled","reason":"no longer needed"}"#);
        assert_eq!(
            ProgramOutcome::of(ExitStatus::from_raw(0), Some(None)).frame().unwrap(),
            r#"{"type":"run.cancelled"}"#
        );
    }
}
