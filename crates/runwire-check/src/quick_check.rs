//! Quick check: recognises frames that are certainly valid.
//!
//! Most frames are valid, and each of them passes here on its way into the log. So each kind of event has its part of
//! the schema as a small table, which is compared with the frame's bytes as they are walked, without building values.
//! What the table cannot express, or rejects, is unsure: the whole schema then decides and explains. So the quick check
//! only saves time, and never changes a finding.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::keys::escaped;
use crate::members::Visitor;
use crate::schema::{IN_CALENDAR, is_in_calendar};
use crate::{limits, typo};

/// The tables of one dialect.
pub(crate) struct QuickTables {
    nodes: Vec<Node>,
    /// Kinds of event, each with the node of its whole frame.
    kinds: Vec<(String, usize)>,
}

/// A key that is likely a typo.
pub(crate) struct LikelyTypo<'v> {
    /// JSON pointer to the object around it.
    object: String,
    key: &'v str,
    /// The key of the document that was meant.
    pub(crate) meant: &'v str,
}

impl LikelyTypo<'_> {
    pub(crate) fn pointer(&self) -> String {
        format!("{}/{}", self.object, escaped(self.key))
    }

    pub(crate) fn meant_pointer(&self) -> String {
        format!("{}/{}", self.object, escaped(self.meant))
    }
}

/// Node that accepts anything.
const ANY: usize = 0;
/// Node that is always unsure.
const UNSURE: usize = 1;

#[derive(Default)]
struct Node {
    /// Allowed types; `None` allows all.
    types: Option<Types>,
    unsure: bool,
    properties: Vec<(String, usize)>,
    /// Required properties, as bits.
    required: u64,
    /// Sets of properties of which at least, or exactly, one is required.
    choices: Vec<Choice>,
    /// Node of an array's elements.
    items: usize,
    /// Allowed strings.
    options: Option<Vec<String>>,
    /// Forbidden strings.
    forbidden: Vec<String>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    /// Pattern of a string.
    pattern: Option<Fits>,
    not_empty: bool,
}

/// Returns true if a string certainly matches a pattern.
type Fits = fn(&str) -> bool;

#[derive(Clone, Copy)]
struct Choice {
    properties: u64,
    exactly_one: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const OBJECT: u8 = 1;
    const ARRAY: u8 = 2;
    const STRING: u8 = 4;
    const INTEGER: u8 = 8;
    const NUMBER: u8 = 16;
    const BOOLEAN: u8 = 32;
    const NULL: u8 = 64;

    fn of(value: &Value) -> Option<Self> {
        let bit = |name: &Value| {
            Some(match name.as_str()? {
                "object" => Self::OBJECT,
                "array" => Self::ARRAY,
                "string" => Self::STRING,
                "integer" => Self::INTEGER,
                "number" => Self::NUMBER,
                "boolean" => Self::BOOLEAN,
                "null" => Self::NULL,
                _ => return None,
            })
        };
        match value {
            Value::Array(names) => names.iter().try_fold(0, |types, name| Some(types | bit(name)?)).map(Self),
            name => bit(name).map(Self),
        }
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// Keywords that do not constrain a value.
const NOTES: &[&str] =
    &["$schema", "$defs", "title", "description", "x-section", "$comment", "format", "default"];

impl QuickTables {
    /// Makes the tables of a schema: the part of all frames, merged with each kind's own part.
    pub(crate) fn of(document: &Value) -> Self {
        let mut tables = Self {
            nodes: vec![Node::default(), Node { unsure: true, ..Node::default() }],
            kinds: Vec::new(),
        };
        let mut common = document.as_object().cloned().unwrap_or_default();
        let cases = common.shift_remove("allOf");
        for case in cases.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let Some(kind) = crate::schema::kind_of_case(case) else { continue };
            let own = case.get("then").and_then(|then| resolved(document, then));
            let merged = own.and_then(|own| merge(document, &common, own.as_object()?));
            let node = match merged {
                Some(merged) => tables.compile(document, &Value::Object(merged), 0),
                None => UNSURE,
            };
            tables.kinds.push((kind, node));
        }
        tables
    }

    /// Begins the check of a frame of a kind; `None` if none of them can be certain.
    pub(crate) fn check<'a>(&self, kind: &str) -> Option<QuickCheck<'_, 'a>> {
        let root = self.root(kind).filter(|root| *root != UNSURE)?;
        Some(QuickCheck {
            tables: self,
            root,
            open: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
            unsure: false,
        })
    }

    fn root(&self, kind: &str) -> Option<usize> {
        self.kinds.iter().find(|(known, _)| known == kind).map(|(_, root)| *root)
    }

    /// Lists the keys of a frame that are likely typos of properties that it lacks.
    pub(crate) fn typos<'v>(&'v self, kind: &str, frame: &'v Value) -> Vec<LikelyTypo<'v>> {
        let mut typos = Vec::new();
        if let Some(root) = self.root(kind) {
            let mut left = limits::EXPLAINED_ERRORS;
            self.find_typos(root, frame, &mut String::new(), &mut left, &mut typos);
        }
        typos
    }

    /// Compares up to `left` unknown keys with the properties that are absent.
    fn find_typos<'v>(
        &'v self,
        node: usize,
        value: &'v Value,
        at: &mut String,
        left: &mut usize,
        typos: &mut Vec<LikelyTypo<'v>>,
    ) {
        let node = &self.nodes[node];
        let length = at.len();
        match value {
            Value::Object(object) if !node.properties.is_empty() => {
                for (key, value) in object {
                    if *left == 0 {
                        return;
                    }
                    if let Some((_, inner)) = node.properties.iter().find(|(known, _)| known == key) {
                        at.push('/');
                        at.push_str(&escaped(key));
                        self.find_typos(*inner, value, at, left, typos);
                        at.truncate(length);
                        continue;
                    }
                    *left -= 1;
                    let absent = node.properties.iter().filter(|(known, _)| !object.contains_key(known));
                    if let Some((meant, _)) =
                        absent.into_iter().find(|(known, _)| typo::is_likely(key, known))
                    {
                        typos.push(LikelyTypo { object: at.clone(), key, meant });
                    }
                }
            }
            Value::Array(items) if node.items != ANY => {
                for (index, item) in items.iter().enumerate() {
                    at.push_str(&format!("/{index}"));
                    self.find_typos(node.items, item, at, left, typos);
                    at.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn compile(&mut self, document: &Value, schema: &Value, depth: usize) -> usize {
        let Some(schema) = schema.as_object() else {
            return if *schema == Value::Bool(true) { ANY } else { UNSURE };
        };
        // References may go round in a circle.
        if depth > 16 {
            return UNSURE;
        }
        if let Some(target) = schema.get("$ref") {
            let alone = schema.keys().all(|key| key == "$ref" || NOTES.contains(&key.as_str()));
            let target = target.as_str().and_then(|target| document.pointer(target.strip_prefix('#')?));
            return match target.filter(|_| alone) {
                Some(target) => self.compile(document, target, depth + 1),
                None => UNSURE,
            };
        }
        let node = self.node(document, schema, depth);
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Makes the node of a schema; an unknown keyword makes it unsure.
    fn node(&mut self, document: &Value, schema: &Map<String, Value>, depth: usize) -> Node {
        let mut node = Node { items: ANY, ..Node::default() };
        for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let property = self.compile(document, property, depth + 1);
            node.properties.push((key.clone(), property));
        }
        // A property that must be there and is not described may be anything.
        for key in named(schema.get("required")).unwrap_or_default() {
            if !node.properties.iter().any(|(known, _)| known == key) {
                node.properties.push((key.to_owned(), ANY));
            }
        }
        node.unsure = node.properties.len() > 64;
        for (keyword, value) in schema {
            let known = match keyword.as_str() {
                "items" => {
                    node.items = self.compile(document, value, depth + 1);
                    true
                }
                _ => node.take_keyword(keyword, value).is_some(),
            };
            node.unsure |= !known;
        }
        node
    }
}

impl Node {
    /// Adds a keyword to the node, if it is known.
    fn take_keyword(&mut self, keyword: &str, value: &Value) -> Option<()> {
        match keyword {
            "properties" => {}
            "required" => self.required = self.bits(&named(Some(value))?)?,
            "type" => self.types = Some(Types::of(value)?),
            "enum" => self.options = Some(named(Some(value))?.into_iter().map(str::to_owned).collect()),
            "const" => self.options = Some(vec![value.as_str()?.to_owned()]),
            "minimum" => self.minimum = Some(value.as_f64()?),
            "maximum" => self.maximum = Some(value.as_f64()?),
            "minLength" if *value == 1 => self.not_empty = true,
            "pattern" => {
                let pattern = value.as_str()?;
                self.pattern = Some(PATTERNS.iter().find(|(known, _)| *known == pattern)?.1);
            }
            "anyOf" | "oneOf" => {
                let mut properties = 0;
                for form in value.as_array()? {
                    let form = form.as_object().filter(|form| form.len() == 1)?;
                    let names = named(Some(form.get("required")?))?;
                    let [name] = names[..] else { return None };
                    properties |= self.bits(&[name])?;
                }
                self.choices.push(Choice { properties, exactly_one: keyword == "oneOf" });
            }
            "not" => {
                let not = value.as_object().filter(|not| not.len() == 1)?;
                self.forbidden = named(Some(not.get("enum")?))?.into_iter().map(str::to_owned).collect();
            }
            "format" if *value == IN_CALENDAR => {
                self.pattern.get_or_insert(is_in_calendar);
            }
            note if NOTES.contains(&note) => {}
            _ => return None,
        }
        Some(())
    }

    fn bits(&self, names: &[&str]) -> Option<u64> {
        names.iter().try_fold(0, |bits, name| {
            let at = self.properties.iter().position(|(known, _)| known == name)?;
            Some(bits | 1 << at)
        })
    }

    fn allows(&self, bit: u8) -> bool {
        self.types.is_none_or(|types| types.has(bit))
    }

    fn allows_string(&self, json: &str) -> bool {
        if !self.allows(Types::STRING) {
            return false;
        }
        let inner = json.get(1..json.len() - 1).unwrap_or_default();
        if self.not_empty && inner.is_empty() {
            return false;
        }
        if self.options.is_none() && self.forbidden.is_empty() && self.pattern.is_none() {
            return true;
        }
        // An escape may stand for any letter.
        !inner.contains('\\')
            && self.options.as_ref().is_none_or(|options| options.iter().any(|option| option == inner))
            && self.forbidden.iter().all(|forbidden| forbidden != inner)
            && self.pattern.is_none_or(|fits| fits(inner))
    }

    fn allows_number(&self, json: &str) -> bool {
        let is_whole = json.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let type_fits = self.types.is_none_or(|types| {
            types.has(Types::NUMBER) || (types.has(Types::INTEGER) && is_whole && json != "-")
        });
        if !type_fits || self.options.is_some() {
            return false;
        }
        if self.minimum.is_none() && self.maximum.is_none() {
            return true;
        }
        // More digits than a double holds are left to the schema.
        json.len() <= 15
            && json.parse::<f64>().is_ok_and(|number| {
                self.minimum.is_none_or(|minimum| number >= minimum)
                    && self.maximum.is_none_or(|maximum| number <= maximum)
            })
    }
}

/// Reads a list of strings; no list is an empty one.
fn named(list: Option<&Value>) -> Option<Vec<&str>> {
    match list {
        None => Some(Vec::new()),
        Some(list) => list.as_array()?.iter().map(Value::as_str).collect(),
    }
}

fn resolved<'s>(document: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(target) => document.pointer(target.strip_prefix('#')?),
        None => Some(schema),
    }
}

/// Merges two schemas that both apply; `None` if that takes more than adding their keywords.
fn merge(
    document: &Value,
    one: &Map<String, Value>,
    other: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut merged = one.clone();
    for (keyword, value) in other {
        let Some(known) = merged.get(keyword) else {
            merged.insert(keyword.clone(), value.clone());
            continue;
        };
        let both = match keyword.as_str() {
            note if NOTES.contains(&note) => continue,
            _ if known == value => continue,
            "properties" => {
                let mut properties = known.as_object()?.clone();
                for (key, property) in value.as_object()? {
                    let merged = match properties.get(key) {
                        Some(known) => {
                            let known = resolved(document, known)?.as_object()?;
                            Value::Object(merge(document, known, resolved(document, property)?.as_object()?)?)
                        }
                        None => property.clone(),
                    };
                    properties.insert(key.clone(), merged);
                }
                Value::Object(properties)
            }
            "required" => {
                let mut all = known.as_array()?.clone();
                all.extend(value.as_array()?.iter().cloned());
                Value::Array(all)
            }
            _ => return None,
        };
        merged.insert(keyword.clone(), both);
    }
    Some(merged)
}

/// Known patterns, and functions that match them.
const PATTERNS: &[(&str, Fits)] = &[
    (
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z$",
        is_time,
    ),
    (
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)\.[0-9]{3}Z$",
        is_time,
    ),
    (r"^1\.[0-9]+$", is_version),
];

fn is_version(text: &str) -> bool {
    text.strip_prefix("1.")
        .is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true for a time in UTC with milliseconds; a leap second is left to the schema.
fn is_time(text: &str) -> bool {
    let form = b"0000-00-00T00:00:00.000Z";
    let fits = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    if text.len() != form.len() || !text.bytes().zip(form).all(fits) {
        return false;
    }
    let number = |at: usize| text[at..at + 2].parse::<u8>().unwrap_or(u8::MAX);
    number(11) < 24 && number(14) < 60 && number(17) < 60 && is_in_calendar(text)
}

/// Quick check of one frame.
pub(crate) struct QuickCheck<'q, 'a> {
    tables: &'q QuickTables,
    root: usize,
    /// Properties seen, of each open object.
    open: Vec<u64>,
    /// Unknown keys of the open objects one after the other, and where those of each begin.
    keys: Vec<&'a str>,
    ends: Vec<usize>,
    unsure: bool,
}

impl QuickCheck<'_, '_> {
    /// Returns the node of the whole frame.
    pub(crate) fn root(&self) -> usize {
        self.root
    }

    /// Returns true if everything that was visited is certainly valid.
    pub(crate) fn is_sure(&self) -> bool {
        !self.unsure
    }
}

impl<'a> Visitor<'a> for QuickCheck<'_, 'a> {
    type Node = usize;

    fn scalar(&mut self, index: usize, json: &str) {
        let node = &self.tables.nodes[index];
        let fits = match json.as_bytes()[0] {
            b'"' => node.allows_string(json),
            b't' | b'f' => node.allows(Types::BOOLEAN) && node.options.is_none(),
            b'n' => node.allows(Types::NULL) && node.options.is_none(),
            _ => node.allows_number(json),
        };
        self.unsure |= node.unsure || !fits;
    }

    fn object(&mut self, index: usize) {
        let node = &self.tables.nodes[index];
        self.unsure |= node.unsure || !node.allows(Types::OBJECT) || node.options.is_some();
        self.open.push(0);
        self.ends.push(self.keys.len());
    }

    fn key(&mut self, index: usize, key: &Cow<'a, str>) -> usize {
        let node = &self.tables.nodes[index];
        if let Some(at) = node.properties.iter().position(|(known, _)| known == key) {
            if let Some(seen) = self.open.last_mut() {
                self.unsure |= *seen & 1 << at != 0;
                *seen |= 1 << at;
            }
            // Nobody escapes a key that needs no escape.
            self.unsure |= matches!(key, Cow::Owned(_));
            return node.properties[at].1;
        }
        match key {
            Cow::Borrowed(key) => self.keys.push(key),
            Cow::Owned(_) => self.unsure = true,
        }
        self.unsure |= node.properties.iter().any(|(known, _)| typo::is_likely(key, known));
        ANY
    }

    fn end(&mut self, index: usize) {
        let node = &self.tables.nodes[index];
        let seen = self.open.pop().unwrap_or(0);
        self.unsure |= seen & node.required != node.required;
        for Choice { properties, exactly_one } in &node.choices {
            let count = (seen & properties).count_ones();
            self.unsure |= count == 0 || (*exactly_one && count > 1);
        }
        let from = self.ends.pop().unwrap_or(0);
        let own = &mut self.keys[from..];
        if own.len() > 1 {
            own.sort_unstable();
            self.unsure |= own.windows(2).any(|pair| pair[0] == pair[1]);
        }
        self.keys.truncate(from);
    }

    fn array(&mut self, index: usize) -> usize {
        let node = &self.tables.nodes[index];
        self.unsure |= node.unsure || !node.allows(Types::ARRAY) || node.options.is_some();
        node.items
    }
}

#[cfg(test)]
mod tests {
    use runwire_model::dialect::Dialect;

    use crate::Side;
    use crate::members::{self, FrameMembers};
    use crate::schema::Schema;

    #[test]
    fn the_usual_frames_of_every_dialect_need_no_more_than_a_quick_look() {
        let frames = [
            (
                Dialect::Loom,
                "message_chunk",
                r#"{"type":"message_chunk","content":"x","id":"think","event_id":2}"#,
            ),
            (
                Dialect::StreamingEngine,
                "content",
                r#"{"type":"content","data":{"content":"x","format":"text"},"metadata":{"request_id":"q","timestamp":1,"sequence":1}}"#,
            ),
            (
                Dialect::Agio,
                "text_delta",
                r#"{"type":"text_delta","run_id":"r","timestamp":"2026-11-12T08:15:00.120Z","data":{"content":"x","step":1}}"#,
            ),
            (
                Dialect::AgUi,
                "TEXT_MESSAGE_CONTENT",
                r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","timestamp":1}"#,
            ),
            (
                Dialect::SocialApp,
                "STEP_STARTED",
                r#"{"type":"STEP_STARTED","threadId":"t","runId":"r","stepName":"worker","model":"m"}"#,
            ),
            (
                Dialect::EasyflowChat,
                "llm/message",
                r#"{"protocol":"easyflow-chat","version":"1.1","domain":"llm","type":"message","conversation_id":"c","message_id":"m","index":0,"payload":{"delta":"x"}}"#,
            ),
            (Dialect::Runwire, "text.delta", r#"{"type":"text.delta","message_id":"m","content":"x"}"#),
        ];
        for (dialect, kind, frame) in frames {
            let mut check = Schema::of(dialect, Side::Producer).quick_check(kind).unwrap();
            let root = check.root();
            assert!(members::walk(frame, &mut FrameMembers::default(), &mut check, root));
            assert!(check.is_sure(), "{frame}");
        }
    }
}
