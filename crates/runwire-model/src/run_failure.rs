//! The codes of runs that fail without a word of their producer's.

use std::fmt;

use crate::event::ErrorInfo;

macro_rules! run_failures {
    ($($(#[doc = $doc:literal])* $name:ident $text:literal;)*) => {
        /// The code of a run that failed, in the error of its `run.failed` (`docs/agents.md`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RunFailureCode {
            $($(#[doc = $doc])* $name,)*
        }

        impl RunFailureCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code as it is stored.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

run_failures! {
    /// The program or script of the agent cannot be run.
    NotStarted "not_started";
    /// The program ended with another exit code than 0.
    ExitStatus "exit_status";
    /// The program was ended by a signal.
    Killed "killed";
    /// There is no connection to the agent.
    AgentUnreachable "agent_unreachable";
    /// The agent answered with another status than 2xx.
    AgentRefused "agent_refused";
    /// The agent's answer is no stream of events.
    AgentNotAStream "agent_not_a_stream";
    /// The agent's answer was empty.
    AgentEmpty "agent_empty";
    /// The connection to the agent broke off.
    AgentBrokenOff "agent_broken_off";
    /// The agent did not answer in time, or its stream fell silent.
    AgentSilent "agent_silent";
    /// Too much of the agent's output cannot be read.
    AgentGarbled "agent_garbled";
    /// A question was answered, and the agent has no address for answers.
    AgentTakesNoAnswer "agent_takes_no_answer";
    /// The server was stopped while the agent was at work.
    ServerStopped "server_stopped";
    /// The run's lease ran out, or its server was killed.
    ProducerLost "producer_lost";
    /// The store cannot hold what the agent says.
    StoreDamaged "store_damaged";
    /// A converted stream ended before its run did.
    StreamEnded "stream_ended";
}

impl RunFailureCode {
    /// Makes an error with this code.
    pub fn error(self, message: impl Into<String>) -> ErrorInfo {
        ErrorInfo::coded(self.as_str(), message)
    }

    /// Returns true if an error has this code.
    pub fn is_of(self, error: &ErrorInfo) -> bool {
        error.code.as_deref() == Some(self.as_str())
    }
}

impl fmt::Display for RunFailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_server_is_documented() {
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
        let document = std::fs::read_to_string(document).unwrap();
        for code in RunFailureCode::ALL.iter().filter(|code| **code != RunFailureCode::StreamEnded) {
            assert!(document.contains(&format!("`{code}`")), "{code}");
        }
    }
}
