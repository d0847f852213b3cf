//! Output of findings, as text or JSON.

use std::io::{self, Write};

use runwire_check::{Finding, Severity};
use runwire_model::dialect::Dialect;
use serde_json::json;

use crate::failure::Failure;
use crate::screen::{HINT, NOTE, PROBLEM};

/// Writes findings to standard output, for a person or for a program.
pub(super) struct FindingWriter {
    json: bool,
    pub(super) problems: u64,
    pub(super) notes: u64,
}

impl FindingWriter {
    pub(super) fn new(json: bool) -> Self {
        Self { json, problems: 0, notes: 0 }
    }

    pub(super) fn write(
        &mut self,
        line: u64,
        dialect: Option<Dialect>,
        finding: &Finding,
    ) -> Result<(), Failure> {
        match finding.severity {
            Severity::Problem => self.problems += 1,
            Severity::Note => self.notes += 1,
        }
        let written = if self.json {
            write_json(&mut io::stdout().lock(), line, dialect, finding)
        } else {
            write_text(&mut anstream::stdout().lock(), line, dialect, finding)
        };
        written.map_err(Failure::Write)
    }

    /// Flushes standard output.
    pub(super) fn flush(&self) -> Result<(), Failure> {
        io::stdout().lock().flush().map_err(Failure::Write)
    }
}

fn write_text(
    out: &mut impl Write,
    line: u64,
    dialect: Option<Dialect>,
    finding: &Finding,
) -> io::Result<()> {
    let Finding { severity, rule, field, section, message, hint, .. } = finding;
    match severity {
        Severity::Problem => write!(out, "{PROBLEM}line {line}:{PROBLEM:#} ")?,
        Severity::Note => write!(out, "{NOTE}note: line {line}:{NOTE:#} ")?,
    }
    if let Some(field) = field {
        write!(out, "field `{field}`: ")?;
    }
    write!(out, "{message}")?;
    if let (Some(dialect), Some(section)) = (dialect, section) {
        write!(out, " ({dialect} {section})")?;
    }
    writeln!(out, " [{rule}]")?;
    match hint {
        Some(hint) => writeln!(out, "  {HINT}hint:{HINT:#} {hint}"),
        None => Ok(()),
    }
}

fn write_json(
    out: &mut impl Write,
    line: u64,
    dialect: Option<Dialect>,
    finding: &Finding,
) -> io::Result<()> {
    let Finding { severity, rule, field, section, message, hint, .. } = finding;
    let severity = match severity {
        Severity::Problem => "problem",
        Severity::Note => "note",
    };
    let mut object = json!({
        "line": line, "field": field, "code": rule.as_str(), "section": section, "message": message,
    });
    if let Some(hint) = hint {
        object["hint"] = json!(hint);
    }
    object["dialect"] = json!(dialect.map(Dialect::name));
    object["severity"] = json!(severity);
    writeln!(out, "{object}")
}
