//! Interactive prompt for an interaction: asks for each field, and validates as one types.

use std::io::{self, BufRead, Write};

use anstyle::{AnsiColor, Style};
use runwire_client::{Answer, FieldProblem, Interaction, Json};
use runwire_model::event::InteractionKind;
use serde_json::{Map, Value};

use super::form::{AnswerForm, FormField, put, remove};
use super::shown;
use super::text::{shortened, shown_value};
use crate::failure::Failure;
use crate::screen::{HINT, NOTE, PROBLEM};

const BOLD: Style = Style::new().bold();
const DIM: Style = AnsiColor::BrightBlack.on_default();

/// The prompt of one interaction.
pub(super) struct InteractionPrompt<'a> {
    interaction: &'a Interaction,
    form: AnswerForm,
    values: Map<String, Value>,
    /// Indices of the fields that are still to be asked for.
    remaining: Vec<usize>,
    has_shown_header: bool,
}

/// A typed line; `None` at the end of input.
type Typed = Result<Option<String>, Failure>;

impl<'a> InteractionPrompt<'a> {
    pub(super) fn new(interaction: &'a Interaction) -> Self {
        let form = AnswerForm::of(interaction);
        let remaining = (0..form.fields.len()).collect();
        Self { interaction, form, values: Map::new(), remaining, has_shown_header: false }
    }

    /// Prompts until there is an answer to send; `None` if the person aborts.
    pub(super) fn answer(&mut self) -> Result<Option<Answer>, Failure> {
        if !std::mem::replace(&mut self.has_shown_header, true) {
            self.show_header();
        }
        match self.interaction.kind {
            InteractionKind::Approval => self.decide(),
            InteractionKind::Form if self.form.fields.is_empty() => self.ask_json(),
            InteractionKind::Form => self.fill_in(),
        }
    }

    /// Asks again for the fields that the server refused.
    pub(super) fn correct(&mut self, wrong: Vec<FieldProblem>) {
        self.ask_again(wrong.into_iter().map(|field| (field.pointer, field.message)).collect());
    }

    fn ask_again(&mut self, wrong: Vec<(String, String)>) {
        for (pointer, message) in wrong {
            let place = if pointer.is_empty() { "the answer" } else { &pointer };
            line(format_args!("{PROBLEM}{}: {}{PROBLEM:#}", shown(place), shown(&message)));
            if let Some(field) = self.form.field_at(&pointer).filter(|at| !self.remaining.contains(at)) {
                self.remaining.push(field);
            }
        }
        if self.remaining.is_empty() {
            self.remaining = (0..self.form.fields.len()).collect();
        }
        self.remaining.sort_unstable();
    }

    fn show_header(&self) {
        let interaction = self.interaction;
        let title =
            interaction.title.as_ref().or(interaction.name.as_ref()).unwrap_or(&interaction.interaction_id);
        line(format_args!("{BOLD}{}{BOLD:#}", shown(&shortened(title))));
        for text in [&interaction.description, &interaction.reason].into_iter().flatten() {
            line(format_args!("{}", shown_lines(&shortened(text))));
        }
        if let Some(name) = interaction.name.as_ref().filter(|name| *name != title) {
            line(format_args!("{}", shown(name)));
        }
        let Some(arguments) = &interaction.arguments else { return };
        match arguments.to_value() {
            Ok(Value::Object(arguments)) => {
                for (name, value) in &arguments {
                    line(format_args!("  {DIM}{}:{DIM:#} {}", shown(name), shown(&shown_value(value))));
                }
            }
            Ok(Value::Null) => {}
            Ok(other) => line(format_args!("  {}", shown(&shown_value(&other)))),
            Err(_) => line(format_args!("  {}", shown(arguments.text()))),
        }
    }

    /// Asks for a decision.
    fn decide(&self) -> Result<Option<Answer>, Failure> {
        loop {
            let Some(typed) = prompt("approve, reject or cancel?")? else { return Ok(None) };
            return match typed.to_lowercase().as_str() {
                "approve" | "a" | "yes" | "y" => Ok(Some(Answer::approved())),
                "reject" | "r" | "no" | "n" => {
                    let Some(reason) = prompt("why? (may be left empty)")? else { return Ok(None) };
                    let reason = Some(reason).filter(|reason| !reason.is_empty());
                    Ok(Some(Answer { reason, ..Answer::rejected("") }))
                }
                "cancel" | "c" => Ok(Some(Answer::cancelled())),
                _ => {
                    line(format_args!("{NOTE}type approve, reject or cancel{NOTE:#}"));
                    continue;
                }
            };
        }
    }

    /// Asks for the whole answer as JSON, if the schema lists no fields.
    fn ask_json(&self) -> Result<Option<Answer>, Failure> {
        loop {
            let Some(typed) = prompt("the answer, as JSON:")? else { return Ok(None) };
            match Json::parse(&typed) {
                Ok(values) => {
                    let wrong = match values.to_value() {
                        Ok(tree) => self.form.check(&tree),
                        Err(error) => vec![(error.pointer, error.problem)],
                    };
                    if wrong.is_empty() {
                        return Ok(Some(Answer::submitted(values)));
                    }
                    for (pointer, message) in wrong {
                        line(format_args!("{PROBLEM}{} {}{PROBLEM:#}", shown(&pointer), shown(&message)));
                    }
                }
                Err(error) => line(format_args!("{PROBLEM}that is no JSON: {error}{PROBLEM:#}")),
            }
        }
    }

    /// Asks for each field, shows a summary, and asks whether to send it.
    fn fill_in(&mut self) -> Result<Option<Answer>, Failure> {
        loop {
            while let Some(at) = self.remaining.first().copied() {
                if !self.ask(at)? {
                    return Ok(None);
                }
                self.remaining.remove(0);
            }
            let values = Value::Object(self.values.clone());
            let wrong = self.form.check(&values);
            if !wrong.is_empty() {
                self.ask_again(wrong);
                continue;
            }
            self.show_summary();
            loop {
                let Some(typed) = prompt("send it? yes, no, or a field to change")? else { return Ok(None) };
                match typed.to_lowercase().as_str() {
                    "" | "yes" | "y" => return Ok(Some(Answer::submitted(Json::from_value(&values)))),
                    "no" | "n" => return Ok(None),
                    _ => match self.form.fields.iter().position(|field| field.name() == typed) {
                        Some(field) => self.remaining.push(field),
                        None => {
                            line(format_args!("{NOTE}there is no field `{}`{NOTE:#}", shown(&typed)));
                            continue;
                        }
                    },
                }
                break;
            }
        }
    }

    /// Asks for a field until the value is valid; false at the end of input.
    fn ask(&mut self, at: usize) -> Result<bool, Failure> {
        let field = &self.form.fields[at];
        let choices = field.choices();
        introduce(field, &choices);
        loop {
            let Some(typed) = prompt(&hint(field))? else { return Ok(false) };
            let value = match (typed.as_str(), field.default()) {
                ("", Some(default)) => default.clone(),
                ("", None) if field.required => {
                    line(format_args!("{PROBLEM}is required{PROBLEM:#}"));
                    continue;
                }
                ("", None) => {
                    remove(&mut self.values, &field.path);
                    return Ok(true);
                }
                (typed, _) => match field.read_typed(typed) {
                    Ok(value) => value,
                    Err(wrong) => {
                        line(format_args!("{PROBLEM}{wrong}{PROBLEM:#}"));
                        continue;
                    }
                },
            };
            if let Some(wrong) = self.form.wrong(field, &value) {
                line(format_args!("{PROBLEM}{}{PROBLEM:#}", shown(&wrong)));
                continue;
            }
            let path = field.path.clone();
            put(&mut self.values, &path, value);
            return Ok(true);
        }
    }

    fn show_summary(&self) {
        line(format_args!(""));
        for field in &self.form.fields {
            let pointer = field.path.iter().fold(String::new(), |pointer, name| {
                format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
            });
            let value = Value::Object(self.values.clone()).pointer(&pointer).map(shown_value);
            let value = value.unwrap_or_else(|| "-".to_owned());
            line(format_args!("  {DIM}{}:{DIM:#} {}", shown(&field.name()), shown(&value)));
        }
    }
}

/// Prints a field's name, title, description and choices.
fn introduce(field: &FormField, choices: &[(Value, String)]) {
    let name = field.name();
    let title = field.text("title").filter(|title| *title != name);
    let star = if field.required { " *" } else { "" };
    let title = title.map(|title| format!("  {}", shown(title))).unwrap_or_default();
    let expects =
        if choices.is_empty() { format!("  {DIM}{}{DIM:#}", shown(&field.expects())) } else { String::new() };
    line(format_args!(""));
    line(format_args!("{BOLD}{}{BOLD:#}{NOTE}{star}{NOTE:#}{title}{expects}", shown(&name)));
    if let Some(text) = field.text("description") {
        line(format_args!("  {}", shown_lines(&shortened(text))));
    }
    for (at, (_, title)) in choices.iter().enumerate() {
        line(format_args!("  {HINT}{}{HINT:#} {}", at + 1, shown(title)));
    }
}

/// Returns the meaning of an empty line.
fn hint(field: &FormField) -> String {
    match field.default() {
        Some(default) => format!("[{}]", shown(&shown_value(default))),
        None if field.required => String::new(),
        None => "(may be left empty)".to_owned(),
    }
}

fn prompt(text: &str) -> Typed {
    let mut stderr = anstream::stderr().lock();
    let space = if text.is_empty() { "" } else { " " };
    let _ = write!(stderr, "{DIM}{text}{DIM:#}{space}> ");
    let _ = stderr.flush();
    // Unlock standard error while waiting.
    drop(stderr);
    let mut typed = String::new();
    let read = io::stdin().lock().read_line(&mut typed);
    match read.map_err(|error| Failure::Read { name: "standard input".to_owned(), error })? {
        0 => {
            line(format_args!(""));
            Ok(None)
        }
        _ => Ok(Some(typed.trim().to_owned())),
    }
}

fn line(text: std::fmt::Arguments<'_>) {
    // A closed standard error is ignored.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Sanitizes a text of several lines.
fn shown_lines(text: &str) -> String {
    text.lines().map(shown).collect::<Vec<_>>().join("\n  ")
}
