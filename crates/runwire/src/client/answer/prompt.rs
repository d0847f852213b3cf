//! Asks a person at the terminal, field by field, and checks as one types.

use std::io::{self, BufRead, Write};

use anstyle::{AnsiColor, Style};
use runwire_client::{Answer, FieldProblem, Interaction, Json};
use runwire_model::event::InteractionKind;
use serde_json::{Map, Value};

use super::field::{Field, Form, put, remove};
use super::shown;
use super::words::{shortened, typed};
use crate::failure::Failure;
use crate::screen::{HINT, NOTE, PROBLEM};

const STRONG: Style = Style::new().bold();
const QUIET: Style = AnsiColor::BrightBlack.on_default();

/// A conversation about one question.
pub(super) struct Asking<'a> {
    asked: &'a Interaction,
    form: Form,
    values: Map<String, Value>,
    /// The fields that are still to be asked for.
    left: Vec<usize>,
    greeted: bool,
}

/// What a person said to a prompt; nothing at the end of input.
type Said = Result<Option<String>, Failure>;

impl<'a> Asking<'a> {
    pub(super) fn new(asked: &'a Interaction) -> Self {
        let form = Form::of(asked);
        let left = (0..form.fields.len()).collect();
        Self { asked, form, values: Map::new(), left, greeted: false }
    }

    /// Asks until there is an answer to send; nothing where the person leaves.
    pub(super) fn answer(&mut self) -> Result<Option<Answer>, Failure> {
        if !std::mem::replace(&mut self.greeted, true) {
            self.greet();
        }
        match self.asked.kind {
            InteractionKind::Approval => self.decide(),
            InteractionKind::Form if self.form.fields.is_empty() => self.whole(),
            InteractionKind::Form => self.fill_in(),
        }
    }

    /// Takes what the server finds wrong: those fields are asked for again.
    pub(super) fn correct(&mut self, wrong: Vec<FieldProblem>) {
        self.ask_again(wrong.into_iter().map(|field| (field.pointer, field.message)).collect());
    }

    fn ask_again(&mut self, wrong: Vec<(String, String)>) {
        for (pointer, message) in wrong {
            let place = if pointer.is_empty() { "the answer" } else { &pointer };
            line(format_args!("{PROBLEM}{}: {}{PROBLEM:#}", shown(place), shown(&message)));
            if let Some(field) = self.form.field_at(&pointer).filter(|at| !self.left.contains(at)) {
                self.left.push(field);
            }
        }
        if self.left.is_empty() {
            self.left = (0..self.form.fields.len()).collect();
        }
        self.left.sort_unstable();
    }

    fn greet(&self) {
        let asked = self.asked;
        let title = asked.title.as_ref().or(asked.name.as_ref()).unwrap_or(&asked.interaction_id);
        line(format_args!("{STRONG}{}{STRONG:#}", shown(&shortened(title))));
        for text in [&asked.description, &asked.reason].into_iter().flatten() {
            line(format_args!("{}", shown_lines(&shortened(text))));
        }
        if let Some(name) = asked.name.as_ref().filter(|name| *name != title) {
            line(format_args!("{}", shown(name)));
        }
        let Some(arguments) = &asked.arguments else { return };
        match arguments.to_value() {
            Ok(Value::Object(arguments)) => {
                for (name, value) in &arguments {
                    line(format_args!("  {QUIET}{}:{QUIET:#} {}", shown(name), shown(&typed(value))));
                }
            }
            Ok(Value::Null) => {}
            Ok(other) => line(format_args!("  {}", shown(&typed(&other)))),
            Err(_) => line(format_args!("  {}", shown(arguments.text()))),
        }
    }

    /// Asks for a decision.
    fn decide(&self) -> Result<Option<Answer>, Failure> {
        loop {
            let Some(said) = prompt("approve, reject or cancel?")? else { return Ok(None) };
            return match said.to_lowercase().as_str() {
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

    /// Asks for everything at once, where the form does not say what its fields are.
    fn whole(&self) -> Result<Option<Answer>, Failure> {
        loop {
            let Some(said) = prompt("the answer, as JSON:")? else { return Ok(None) };
            match Json::parse(&said) {
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

    /// Asks for each field, shows what was said, and asks whether to send it.
    fn fill_in(&mut self) -> Result<Option<Answer>, Failure> {
        loop {
            while let Some(at) = self.left.first().copied() {
                if !self.ask(at)? {
                    return Ok(None);
                }
                self.left.remove(0);
            }
            let values = Value::Object(self.values.clone());
            let wrong = self.form.check(&values);
            if !wrong.is_empty() {
                self.ask_again(wrong);
                continue;
            }
            self.sum_up();
            loop {
                let Some(said) = prompt("send it? yes, no, or a field to change")? else { return Ok(None) };
                match said.to_lowercase().as_str() {
                    "" | "yes" | "y" => return Ok(Some(Answer::submitted(Json::from_value(&values)))),
                    "no" | "n" => return Ok(None),
                    _ => match self.form.fields.iter().position(|field| field.name() == said) {
                        Some(field) => self.left.push(field),
                        None => {
                            line(format_args!("{NOTE}there is no field `{}`{NOTE:#}", shown(&said)));
                            continue;
                        }
                    },
                }
                break;
            }
        }
    }

    /// Asks for a field until what is typed fits; false at the end of input.
    fn ask(&mut self, at: usize) -> Result<bool, Failure> {
        let field = &self.form.fields[at];
        let choices = field.choices();
        introduce(field, &choices);
        loop {
            let Some(said) = prompt(&hint(field))? else { return Ok(false) };
            let value = match (said.as_str(), field.default()) {
                ("", Some(default)) => default.clone(),
                ("", None) if field.required => {
                    line(format_args!("{PROBLEM}is required{PROBLEM:#}"));
                    continue;
                }
                ("", None) => {
                    remove(&mut self.values, &field.path);
                    return Ok(true);
                }
                (said, _) => match field.read_typed(said) {
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

    fn sum_up(&self) {
        line(format_args!(""));
        for field in &self.form.fields {
            let pointer = field.path.iter().fold(String::new(), |pointer, name| {
                format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
            });
            let value = Value::Object(self.values.clone()).pointer(&pointer).map(typed);
            let value = value.unwrap_or_else(|| "-".to_owned());
            line(format_args!("  {QUIET}{}:{QUIET:#} {}", shown(&field.name()), shown(&value)));
        }
    }
}

/// Shows what a field is about.
fn introduce(field: &Field, choices: &[(Value, String)]) {
    let name = field.name();
    let title = field.text("title").filter(|title| *title != name);
    let star = if field.required { " *" } else { "" };
    let title = title.map(|title| format!("  {}", shown(title))).unwrap_or_default();
    let expects = if choices.is_empty() {
        format!("  {QUIET}{}{QUIET:#}", shown(&field.expects()))
    } else {
        String::new()
    };
    line(format_args!(""));
    line(format_args!("{STRONG}{}{STRONG:#}{NOTE}{star}{NOTE:#}{title}{expects}", shown(&name)));
    if let Some(text) = field.text("description") {
        line(format_args!("  {}", shown_lines(&shortened(text))));
    }
    for (at, (_, title)) in choices.iter().enumerate() {
        line(format_args!("  {HINT}{}{HINT:#} {}", at + 1, shown(title)));
    }
}

/// Says what an empty line means.
fn hint(field: &Field) -> String {
    match field.default() {
        Some(default) => format!("[{}]", shown(&typed(default))),
        None if field.required => String::new(),
        None => "(may be left empty)".to_owned(),
    }
}

fn prompt(text: &str) -> Said {
    let mut stderr = anstream::stderr().lock();
    let space = if text.is_empty() { "" } else { " " };
    let _ = write!(stderr, "{QUIET}{text}{QUIET:#}{space}> ");
    let _ = stderr.flush();
    // Others may have to say something while the person thinks.
    drop(stderr);
    let mut said = String::new();
    let read = io::stdin().lock().read_line(&mut said);
    match read.map_err(|error| Failure::Read { name: "standard input".to_owned(), error })? {
        0 => {
            line(format_args!(""));
            Ok(None)
        }
        _ => Ok(Some(said.trim().to_owned())),
    }
}

fn line(text: std::fmt::Arguments<'_>) {
    // Where even standard error is gone, there is nobody left to ask.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Shows a text of several lines.
fn shown_lines(text: &str) -> String {
    text.lines().map(shown).collect::<Vec<_>>().join("\n  ")
}
