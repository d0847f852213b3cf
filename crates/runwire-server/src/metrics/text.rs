//! Writer for the Prometheus text format: families of samples with a help text.

use std::fmt::{Display, Write};

/// Media type of the format.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics text under construction.
#[derive(Default)]
pub(crate) struct PrometheusText(String);

/// A label of a sample.
pub(crate) type Label<'a> = (&'static str, &'a str);

impl PrometheusText {
    /// Writes a counter.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    /// Writes a gauge.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// Writes a counter; without a value only its family.
    pub(super) fn counter_of(&mut self, name: &str, help: &str, value: Option<impl Display>) {
        self.family(name, "counter", help);
        value.into_iter().for_each(|value| self.sample(name, &[], value));
    }

    /// Writes a gauge; without a value only its family.
    pub(super) fn gauge_of(&mut self, name: &str, help: &str, value: Option<impl Display>) {
        self.family(name, "gauge", help);
        value.into_iter().for_each(|value| self.sample(name, &[], value));
    }

    /// Writes the header of a family; its samples follow.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a sample.
    pub(crate) fn sample(&mut self, name: &str, labels: &[Label<'_>], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", Escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{after} {value}");
    }

    /// Returns the text.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A label value, escaped for quotes.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => formatter.write_str("\\\\")?,
                '"' => formatter.write_str("\\\"")?,
                '\n' => formatter.write_str("\\n")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_written_as_prometheus_reads_it() {
        let mut text = PrometheusText::default();
        text.counter("a_total", "All of it.", 3);
        text.family("b", "gauge", "Some.");
        text.sample("b", &[("x", "1"), ("y", "a \"b\" \\ \n")], 0.5);
        let expected = "# HELP a_total All of it.\n# TYPE a_total counter\na_total 3\n\
                        # HELP b Some.\n# TYPE b gauge\nb{x=\"1\",y=\"a \\\"b\\\" \\\\ \\n\"} 0.5\n";
        assert_eq!(text.finish(), expected);
    }
}
