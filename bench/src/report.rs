//! The report of a benchmark: a table for people, or JSON.

use serde_json::{Value, json};

use crate::statistics::median;

/// Prints each figure at once as a row, or all of them at the end as JSON.
pub(crate) struct Report {
    json: bool,
    figures: Vec<Figure>,
}

impl Report {
    /// Starts a report; prints the heading of the table.
    pub(crate) fn begin(json: bool) -> Self {
        if !json {
            println!(
                "{:<46} {:>11} {:<12} {:>11} {:>6} {:>8} {:>8}  goal",
                "figure", "measured", "", "beside", "ratio", "CPU µs", "beside"
            );
        }
        Self { json, figures: Vec::new() }
    }

    /// Adds figures.
    pub(crate) fn add(&mut self, figures: impl IntoIterator<Item = Figure>) {
        for figure in figures {
            let measured = !figure.server.is_empty() || !figure.beside.is_empty();
            if measured && !self.json {
                println!("{}", figure.row());
            }
            self.figures.push(figure);
        }
    }

    /// Ends the report; prints all figures as one JSON document.
    pub(crate) fn end(self) {
        if self.json {
            let figures: Vec<Value> = self.figures.iter().map(Figure::json).collect();
            println!("{:#}", json!({ "figures": figures }));
        }
    }
}

/// One line of the report.
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    /// The measured value of each round.
    pub(crate) server: Vec<f64>,
    /// The reference value of each round; empty if there is none.
    pub(crate) beside: Vec<f64>,
    /// Microseconds of CPU time per event or delivery, of the server and of the reference.
    pub(crate) cpu: [Vec<f64>; 2],
    pub(crate) goal: Option<Goal>,
}

/// The goal of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    /// Minimum ratio of the figure to its reference.
    RatioAtLeast(f64),
    /// Maximum ratio.
    RatioAtMost(f64),
    /// Maximum value.
    ValueAtMost(f64),
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, unit: &'static str) -> Self {
        let [server, beside, own_cpu, other_cpu] = [const { Vec::new() }; 4];
        Self { name: name.into(), unit, server, beside, cpu: [own_cpu, other_cpu], goal: None }
    }

    pub(crate) fn with_goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn value(&self) -> Option<f64> {
        median(self.server.clone())
    }

    /// Returns the median of the rounds' ratios, which are stable when both sides of a round vary.
    fn ratio(&self) -> Option<f64> {
        median(self.server.iter().zip(&self.beside).map(|(server, beside)| server / beside).collect())
    }

    fn meets_goal(&self) -> Option<bool> {
        match self.goal? {
            Goal::RatioAtLeast(least) => Some(self.ratio()? >= least),
            Goal::RatioAtMost(most) => Some(self.ratio()? <= most),
            Goal::ValueAtMost(most) => Some(self.value()? <= most),
        }
    }

    fn row(&self) -> String {
        let goal = match (self.goal, self.meets_goal()) {
            (Some(goal), Some(true)) => format!("{} met", goal.words()),
            (Some(goal), Some(false)) => format!("{} MISSED", goal.words()),
            _ => String::new(),
        };
        format!(
            "{:<46} {:>11} {:<12} {:>11} {:>6} {:>8} {:>8}  {goal}",
            self.name,
            readable(self.value()),
            self.unit,
            readable(median(self.beside.clone())),
            self.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            readable(median(self.cpu[0].clone())),
            readable(median(self.cpu[1].clone())),
        )
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "unit": self.unit,
            "value": self.value(),
            "beside": median(self.beside.clone()),
            "ratio": self.ratio(),
            "cpu_us": median(self.cpu[0].clone()),
            "beside_cpu_us": median(self.cpu[1].clone()),
            "goal": self.goal.map(Goal::words),
            "goal_met": self.meets_goal(),
            "rounds": self.server,
            "beside_rounds": self.beside,
        })
    }
}

impl Goal {
    fn words(self) -> String {
        match self {
            Self::RatioAtLeast(least) => format!("ratio ≥ {least}"),
            Self::RatioAtMost(most) => format!("ratio ≤ {most}"),
            Self::ValueAtMost(most) => format!("≤ {most}"),
        }
    }
}

/// Formats a number with few digits.
pub(crate) fn readable(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value.abs() >= 1000.0 => thousands(value.round() as i64),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn thousands(value: i64) -> String {
    let digits = value.abs().to_string();
    let mut written = if value < 0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (value, written) in
            [(0.123, "0.12"), (12.34, "12.3"), (123.4, "123"), (1234.0, "1,234"), (1e6, "1,000,000")]
        {
            assert_eq!(readable(Some(value)), written);
        }
    }

    #[test]
    fn a_goal_compares_the_ratio_of_each_round() {
        let mut figure = Figure::new("appends", "events/s").with_goal(Goal::RatioAtLeast(0.6));
        assert_eq!(figure.meets_goal(), None);
        figure.server = vec![60.0, 600.0, 50.0];
        figure.beside = vec![100.0, 1000.0, 100.0];
        assert_eq!((figure.ratio(), figure.meets_goal()), (Some(0.6), Some(true)));
    }
}
