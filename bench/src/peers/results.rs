//! The results of a comparison: a table for people, JSON, and a plot of each work.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::launch::PeerKind;
use crate::Failure;
use crate::report::readable;
use crate::statistics::median;

/// What a figure measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    EventsPerSecond,
    P50,
    P99,
    CpuPerEvent,
    DeliveredPerCpuSecond,
    WrittenPerSecond,
    KibibytesPerReader,
}

impl Measured {
    fn unit(self) -> &'static str {
        match self {
            Self::EventsPerSecond => "events/s",
            Self::P50 => "p50 ms",
            Self::P99 => "p99 ms",
            Self::CpuPerEvent => "CPU µs an event",
            Self::DeliveredPerCpuSecond => "delivered per CPU s",
            Self::WrittenPerSecond => "written/s, each after the answer before",
            Self::KibibytesPerReader => "KiB resident a reader",
        }
    }
}

/// One figure of one server, with the value of each round.
struct PeerFigure {
    work: String,
    measured: Measured,
    peer: PeerKind,
    rounds: Vec<f64>,
}

/// All figures.
pub(super) struct Results {
    peers: Vec<PeerKind>,
    rounds: usize,
    figures: Vec<PeerFigure>,
}

impl Results {
    pub(super) fn new(peers: Vec<PeerKind>, rounds: usize) -> Self {
        Self { peers, rounds, figures: Vec::new() }
    }

    /// Adds the value of a round.
    pub(super) fn add(&mut self, work: &str, measured: Measured, peer: PeerKind, value: f64) {
        let same = |figure: &&mut PeerFigure| {
            (figure.work.as_str(), figure.measured, figure.peer) == (work, measured, peer)
        };
        match self.figures.iter_mut().find(same) {
            Some(figure) => figure.rounds.push(value),
            None => {
                self.figures.push(PeerFigure { work: work.to_owned(), measured, peer, rounds: vec![value] });
            }
        }
    }

    /// Lists the rows of the table: a work and what is measured of it.
    fn rows(&self) -> Vec<(&str, Measured)> {
        let mut rows = Vec::new();
        for figure in &self.figures {
            let row = (figure.work.as_str(), figure.measured);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }

    fn rounds_of(&self, (work, measured): (&str, Measured), peer: PeerKind) -> Option<&[f64]> {
        let is_it = |figure: &&PeerFigure| {
            (figure.work.as_str(), figure.measured, figure.peer) == (work, measured, peer)
        };
        self.figures.iter().find(is_it).map(|figure| &figure.rounds[..])
    }

    /// Renders the table in Markdown: medians, with the least and the greatest round.
    fn table(&self) -> String {
        let names: Vec<&str> = self.peers.iter().map(|peer| peer.name()).collect();
        let mut table = format!("| work | measured | {} |\n|---|---|", names.join(" | "));
        table.push_str(&"---|".repeat(names.len()));
        for row in self.rows() {
            let cells = self.peers.iter().map(|peer| match self.rounds_of(row, *peer) {
                None => "–".to_owned(),
                Some(rounds) => {
                    let value = |value| readable(Some(value));
                    let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let median = median(rounds.to_vec()).unwrap_or_default();
                    format!("{} ({}–{})", value(median), value(least), value(most))
                }
            });
            let cells: Vec<String> = cells.collect();
            let _ = write!(table, "\n| {} | {} | {} |", row.0, row.1.unit(), cells.join(" | "));
        }
        table + "\n"
    }

    /// Prints the table.
    pub(super) fn print(&self) {
        println!("{}", self.table());
    }

    /// Writes the table, the rounds and the plots to `bench/results`, and the table into `docs/performance.md`.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("results");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("peers.json"), format!("{:#}\n", self.json()))?;
        std::fs::write(folder.join("peers.md"), self.table())?;
        for (number, row) in self.rows().into_iter().enumerate() {
            std::fs::write(folder.join(format!("peers-{:02}.svg", number + 1)), self.plot(row))?;
        }
        let page = root.join("../docs/performance.md");
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(page, with_section(&text, &self.table())?)?;
        Ok(())
    }

    fn json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({
                "work": figure.work,
                "unit": figure.measured.unit(),
                "server": figure.peer.name(),
                "median": median(figure.rounds.clone()),
                "rounds": figure.rounds,
            })
        });
        json!({ "rounds": self.rounds, "figures": figures.collect::<Vec<_>>() })
    }

    /// Draws a bar for each server, with a line from its least to its greatest round.
    fn plot(&self, row: (&str, Measured)) -> String {
        const LEFT: f64 = 250.0;
        const WIDTH: f64 = 420.0;
        let values: Vec<(PeerKind, &[f64])> =
            self.peers.iter().filter_map(|peer| Some((*peer, self.rounds_of(row, *peer)?))).collect();
        let most = values.iter().flat_map(|(_, rounds)| *rounds).copied().fold(f64::MIN_POSITIVE, f64::max);
        let height = 48 + 30 * values.len();
        let mut plot = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"760\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text x=\"10\" y=\"22\" font-weight=\"bold\">{}: {}</text>\n",
            row.0,
            row.1.unit()
        );
        for (number, (peer, rounds)) in values.iter().enumerate() {
            let (top, scale) = (38 + 30 * number, WIDTH / most);
            let middle = median(rounds.to_vec()).unwrap_or_default();
            let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = rounds.iter().copied().fold(0.0, f64::max);
            let color = if *peer == PeerKind::Runwire { "#2563eb" } else { "#94a3b8" };
            let (text, line) = (top + 15, top + 10);
            let _ = write!(
                plot,
                "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n\
                 <rect x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"20\" fill=\"{color}\"/>\n\
                 <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{line}\" y2=\"{line}\" stroke=\"#0f172a\"/>\n\
                 <text x=\"{:.1}\" y=\"{text}\">{}</text>\n",
                LEFT - 8.0,
                peer.name(),
                middle * scale,
                LEFT + least * scale,
                LEFT + greatest * scale,
                LEFT + greatest * scale + 6.0,
                readable(Some(middle)),
            );
        }
        plot + "</svg>\n"
    }
}

const SECTION_BEGINS: &str = "<!-- peers: written by `cargo xtask bench peers --write` -->\n";
const SECTION_ENDS: &str = "<!-- end of peers -->\n";

/// Replaces the table between the two marks of a page.
fn with_section(page: &str, table: &str) -> Result<String, Failure> {
    let parts = page.split_once(SECTION_BEGINS).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(SECTION_ENDS)?;
        Some(format!("{before}{SECTION_BEGINS}\n{table}\n{SECTION_ENDS}{after}"))
    });
    Ok(parts.ok_or("docs/performance.md has lost the marks of the table of peers")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_median_and_the_spread() {
        let mut results = Results::new(vec![PeerKind::Runwire, PeerKind::Nchan], 3);
        for value in [3.0, 1.0, 2.0] {
            results.add("appends", Measured::P99, PeerKind::Runwire, value);
        }
        let table = results.table();
        assert!(table.ends_with("| appends | p99 ms | 2.00 (1.00–3.00) | – |\n"), "{table}");
        assert!(results.plot(("appends", Measured::P99)).contains("2.00"));
    }

    #[test]
    fn the_table_of_a_page_is_replaced() -> Result<(), Failure> {
        let page = format!("a\n{SECTION_BEGINS}old\n{SECTION_ENDS}b\n");
        let page = with_section(&page, "new\n")?;
        assert_eq!(page, format!("a\n{SECTION_BEGINS}\nnew\n\n{SECTION_ENDS}b\n"));
        assert!(with_section("a", "new").is_err());
        Ok(())
    }
}
