//! Draws interactions: forms and approvals, with how to answer them.

use runwire_model::event::{Decision, InteractionKind, InteractionRequested, InteractionResolved};
use serde_json::Value;

use super::answer;
use super::line::PaintedLine;
use super::measure::max_width;
use super::sanitize::cut;
use super::style::{Paint, ServerHint};
use super::value::{arguments, first_text, short, short_value};
use super::wrap::wrap;

/// Limits the fields shown.
const MAX_FIELDS: usize = 40;

/// Limits the lines of one text.
const TEXT_LINES: usize = 12;

/// Limits the choices shown.
const MAX_CHOICES: usize = 20;

/// Draws an interaction within a width, with how to answer it.
pub(super) fn lines(
    run: &str,
    requested: &InteractionRequested,
    server: Option<&ServerHint>,
    width: usize,
) -> Vec<PaintedLine> {
    let mut drawn = Drawn { lines: Vec::new(), width: width.saturating_sub(2) };
    let kind = match requested.kind {
        InteractionKind::Form => "form",
        InteractionKind::Approval => "approval",
    };
    let title = requested.title.as_deref().or(requested.name.as_deref());
    let mut head = PaintedLine::of(Paint::Warn, "╭ ");
    match title {
        Some(title) => {
            head.push(Paint::Bold, cut(title, 400));
            head.push(Paint::Dim, &format!("  {kind} {}", requested.interaction_id));
        }
        None => head.push(Paint::Bold, &format!("{kind} {}", requested.interaction_id)),
    }
    drawn.lines.push(head.fitted(width));
    if let Some(text) = &requested.description {
        drawn.text(Paint::Plain, text, 0);
    }
    if let Some(text) = &requested.reason {
        drawn.text(Paint::Plain, text, 0);
    }
    if let Some(name) = requested.name.as_deref().filter(|name| Some(*name) != title) {
        drawn.text(Paint::Bold, name, 0);
    }
    drawn.call(requested);
    let fields = requested.schema.as_ref().map(fields).unwrap_or_default();
    drawn.fields(&fields);
    let mut end = PaintedLine::of(Paint::Warn, "╰");
    if let Some(moment) = &requested.expires_at {
        end.push(Paint::Dim, &format!(" until {}", moment_of(moment)));
    }
    drawn.lines.push(end.fitted(width));
    let names: Vec<(String, Value)> =
        fields.into_iter().filter(|field| field.required).map(|field| (field.name, field.sample)).collect();
    drawn.lines.extend(answer::lines(run, requested, &names, server));
    drawn.lines
}

/// Draws the outcome of an interaction.
pub(super) fn settled(resolved: &InteractionResolved, title: Option<&str>, width: usize) -> PaintedLine {
    let (paint, sign) = match resolved.decision {
        Decision::Submitted | Decision::Approved => (Paint::Good, "✓ "),
        Decision::Rejected => (Paint::Bad, "✗ "),
        Decision::Cancelled | Decision::Expired => (Paint::Dim, "■ "),
    };
    let mut line =
        PaintedLine::of(paint, sign).and(Paint::Plain, cut(title.unwrap_or(&resolved.interaction_id), 400));
    line.push(paint, &format!("  {}", resolved.decision.as_str()));
    if let Some(by) = &resolved.by {
        line.push(Paint::Dim, &format!(" by {by}"));
    }
    if let Some(reason) = &resolved.reason {
        line.push(Paint::Plain, &format!(": {}", cut(reason, 400)));
    }
    if let Some(values) = resolved.values.as_ref().filter(|values| !values.is_null()) {
        line.push(Paint::Dim, &format!("  {}", arguments(values)));
    }
    line.fitted(width)
}

/// A field of a form.
struct Field {
    name: String,
    required: bool,
    kind: String,
    title: Option<String>,
    description: Option<String>,
    choices: Vec<String>,
    default: Option<String>,
    /// A sample value for the lines that show how to answer.
    sample: Value,
}

/// Reads the fields of a form from the schema of its answer.
fn fields(schema: &runwire_model::Json) -> Vec<Field> {
    let schema = schema.to_value().unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get("properties") else { return Vec::new() };
    let field = |(name, schema): (&String, &Value)| Field {
        name: cut(name, 200).to_owned(),
        required: required.iter().any(|required| required.as_str() == Some(name)),
        kind: kind(schema),
        title: first_text(schema, &["title"]).map(|title| cut(title, 400).to_owned()),
        description: first_text(schema, &["description"]).map(str::to_owned),
        choices: choices(schema),
        default: schema.get("default").map(|default| cut(&short_value(default), 200).to_owned()),
        sample: sample(schema),
    };
    properties.iter().take(MAX_FIELDS).map(field).collect()
}

/// Formats the type of a field and its bounds.
fn kind(schema: &Value) -> String {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    };
    let mut words = match schema.get("items").map(kind).filter(|_| named == "array") {
        Some(items) if !items.is_empty() => format!("list of {}", cut(&items, 60)),
        _ => cut(&named, 60).to_owned(),
    };
    if let Some(format) = first_text(schema, &["format"]) {
        words = format!("{words} {}", cut(format, 60)).trim().to_owned();
    }
    let bound = |name: &str| schema.get(name).filter(|bound| bound.is_number());
    let range = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(max)) => format!(" {least} to {max}"),
        (Some(least), None) => format!(" from {least}"),
        (None, Some(max)) => format!(" up to {max}"),
        (None, None) => String::new(),
    };
    let long = match (bound("minLength"), bound("maxLength")) {
        (Some(least), Some(max)) => format!(", {least} to {max} characters"),
        (Some(least), None) => format!(", at least {least} characters"),
        (None, Some(max)) => format!(", at most {max} characters"),
        (None, None) => String::new(),
    };
    format!("{words}{range}{long}").trim_start_matches([' ', ',']).to_owned()
}

/// Returns the choices, with titles.
fn choices(schema: &Value) -> Vec<String> {
    let listed = schema.get("enum").or_else(|| schema.pointer("/items/enum")).and_then(Value::as_array);
    if let Some(listed) = listed {
        return listed.iter().map(|choice| cut(&short_value(choice), 200).to_owned()).collect();
    }
    let titled = ["oneOf", "anyOf"].iter().find_map(|name| schema.get(name)?.as_array());
    let choice = |choice: &Value| {
        let value = cut(&short_value(choice.get("const")?), 200).to_owned();
        let title = first_text(choice, &["title"]).filter(|title| *title != value);
        Some(title.map_or_else(|| value.clone(), |title| format!("{value} ({})", cut(title, 200))))
    };
    titled.map(|titled| titled.iter().filter_map(choice).collect()).unwrap_or_default()
}

fn sample(schema: &Value) -> Value {
    let first = schema.get("enum").and_then(|listed| listed.get(0));
    let first = first.or_else(|| schema.pointer("/oneOf/0/const")).or_else(|| schema.get("default"));
    if let Some(first) = first.filter(|first| first.to_string().len() <= 60) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(serde_json::Map::new()),
        _ => "…".into(),
    }
}

fn moment_of(time: &str) -> String {
    match runwire_model::Timestamp::parse(time) {
        Some(moment) => format!("{} UTC", moment.to_string().replace('T', " ").get(..16).unwrap_or_default()),
        None => cut(time, 60).to_owned(),
    }
}

struct Drawn {
    lines: Vec<PaintedLine>,
    width: usize,
}

impl Drawn {
    fn add(&mut self, line: PaintedLine) {
        self.lines.push(PaintedLine::of(Paint::Warn, "│ ").join(line));
    }

    fn text(&mut self, paint: Paint, text: &str, indent: usize) {
        let spaces = " ".repeat(indent);
        for line in wrap(text, self.width.saturating_sub(indent), TEXT_LINES) {
            self.add(PaintedLine::of(Paint::Plain, &spaces).and(paint, &line));
        }
    }

    /// Draws the tool's arguments, one per line.
    fn call(&mut self, requested: &InteractionRequested) {
        let Some(given) = requested.arguments.as_ref().filter(|given| !given.is_null()) else { return };
        let Ok(Value::Object(members)) = given.to_value() else {
            return self.text(Paint::Plain, &short(given), 2);
        };
        for (name, value) in members.iter().take(MAX_FIELDS) {
            let pretty = match value {
                Value::String(text) => text.clone(),
                value if value.to_string().len() + name.len() + 4 <= self.width => value.to_string(),
                value => format!("{value:#}"),
            };
            let name = format!("{}:", cut(name, 200));
            let texts = wrap(cut(&pretty, 4000), self.width.saturating_sub(4), TEXT_LINES);
            let beside = PaintedLine::of(Paint::Plain, "  ").and(Paint::Dim, &name);
            match texts.as_slice() {
                [text] if beside.max_width() + 1 + max_width(text) <= self.width => {
                    self.add(beside.and(Paint::Plain, " ").and(Paint::Plain, text));
                }
                texts => {
                    self.add(beside.fitted(self.width));
                    for text in texts {
                        self.add(PaintedLine::of(Paint::Plain, "    ").and(Paint::Plain, text));
                    }
                }
            }
        }
        if members.len() > MAX_FIELDS {
            self.add(PaintedLine::of(Paint::Dim, &format!("  … {} more", members.len() - MAX_FIELDS)));
        }
    }

    fn fields(&mut self, fields: &[Field]) {
        if !fields.is_empty() && self.lines.len() > 1 {
            self.lines.push(PaintedLine::of(Paint::Warn, "│"));
        }
        for field in fields {
            let mut line = PaintedLine::of(Paint::Bold, &field.name);
            line.push(Paint::Warn, if field.required { " *" } else { "" });
            if let Some(title) = field.title.as_deref().filter(|title| *title != field.name) {
                line.push(Paint::Plain, &format!("  {title}"));
            }
            if line.max_width() + 2 + max_width(&field.kind) <= self.width {
                self.add(line.and(Paint::Dim, "  ").and(Paint::Dim, &field.kind).fitted(self.width));
            } else {
                self.add(line.fitted(self.width));
                self.text(Paint::Dim, &field.kind, 2);
            }
            if let Some(description) = &field.description {
                self.text(Paint::Dim, description, 2);
            }
            if !field.choices.is_empty() {
                let mut shown = field.choices[..field.choices.len().min(MAX_CHOICES)].join(" · ");
                if field.choices.len() > MAX_CHOICES {
                    shown.push_str(" · …");
                }
                self.text(Paint::Plain, &format!("one of {shown}"), 2);
            }
            if let Some(default) = &field.default {
                self.text(Paint::Dim, &format!("default {default}"), 2);
            }
        }
        if fields.iter().any(|field| field.required) {
            self.add(PaintedLine::of(Paint::Warn, "*").and(Paint::Dim, " required"));
        }
    }
}
