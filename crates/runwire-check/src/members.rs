//! Members of a frame down to three levels, found in one pass over its bytes.
//!
//! The order rules look up their few fields here, so that a valid frame is never built as a tree of values.

use std::borrow::Cow;

use runwire_model::dialect::document::FieldLookup;
use runwire_model::json::Object;

/// Levels that are kept: `Custom.runwire.type` is the deepest field that a rule asks for.
const LEVELS: usize = 3;

/// Limits the nesting; frames are checked for less before.
const MOST_LEVELS: usize = 256;

/// The members of a frame.
#[derive(Debug, Default)]
pub(crate) struct FrameMembers<'a> {
    all: Vec<Member<'a>>,
}

#[derive(Debug)]
struct Member<'a> {
    /// Member around this one.
    parent: Option<usize>,
    key: Cow<'a, str>,
    /// The value's JSON text.
    value: &'a str,
}

impl<'a> FrameMembers<'a> {
    /// Allocates for the members of a usual frame.
    pub(crate) fn new() -> Self {
        Self { all: Vec::with_capacity(16) }
    }

    pub(super) fn push(&mut self, parent: Option<usize>, key: Cow<'a, str>) -> usize {
        self.all.push(Member { parent, key, value: "" });
        self.all.len() - 1
    }
}

impl FieldLookup for FrameMembers<'_> {
    /// Returns the JSON text of a value; of a duplicate key the last counts.
    fn json(&self, pointer: &str) -> Option<&str> {
        let mut parent = None;
        let mut rest = pointer.strip_prefix('/')?;
        loop {
            let end = memchr::memchr(b'/', rest.as_bytes());
            let key = &rest[..end.unwrap_or(rest.len())];
            let at = self.all.iter().rposition(|member| member.parent == parent && member.key == key)?;
            match end {
                Some(end) => (parent, rest) = (Some(at), &rest[end + 1..]),
                None => return Some(self.all[at].value),
            }
        }
    }

    fn first_key(&self) -> Option<&str> {
        self.all.iter().find(|member| member.parent.is_none()).map(|member| &*member.key)
    }
}

/// Reads the text of a JSON string.
pub(crate) fn unquoted(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Visitor of a frame's values, as they are walked. A node is what its parent knows of a value.
pub(crate) trait Visitor<'a> {
    /// What is known of a value by its path.
    type Node: Copy;

    /// Visits a string, a number or a literal, given as its JSON text.
    fn scalar(&mut self, node: Self::Node, json: &str);

    /// Begins an object.
    fn object(&mut self, node: Self::Node);

    /// Visits a key of the innermost object, and returns the node of its value.
    fn key(&mut self, node: Self::Node, key: &Cow<'a, str>) -> Self::Node;

    /// Ends the innermost object.
    fn end(&mut self, node: Self::Node);

    /// Begins an array, and returns the node of its elements.
    fn array(&mut self, node: Self::Node) -> Self::Node;
}

/// Visitor that ignores everything.
pub(crate) struct NoVisitor;

impl<'a> Visitor<'a> for NoVisitor {
    type Node = ();

    fn scalar(&mut self, (): (), _: &str) {}

    fn object(&mut self, (): ()) {}

    fn key(&mut self, (): (), _: &Cow<'a, str>) {}

    fn end(&mut self, (): ()) {}

    fn array(&mut self, (): ()) {}
}

/// Walks a frame that is valid JSON, and collects its members; `false` if it could not be walked.
pub(crate) fn walk<'a, V: Visitor<'a>>(
    text: &'a str,
    members: &mut FrameMembers<'a>,
    visitor: &mut V,
    node: V::Node,
) -> bool {
    let mut walker = Walker { text, bytes: text.as_bytes(), at: 0, members, visitor };
    walker.value(node, None, 0).is_some()
}

/// Walks a parsed frame: only the objects and arrays in it are still text.
pub(crate) fn walk_object<'a, V: Visitor<'a>>(
    object: &Object<'a>,
    members: &mut FrameMembers<'a>,
    visitor: &mut V,
    node: V::Node,
) -> bool {
    visitor.object(node);
    for (key, value) in object.members() {
        let text = value.get();
        let inner = visitor.key(node, key);
        let member = members.push(None, key.clone());
        members.all[member].value = text;
        if text.starts_with(['{', '[']) {
            let mut walker = Walker { text, bytes: text.as_bytes(), at: 0, members, visitor };
            if walker.value(inner, Some(member), 1).is_none() {
                return false;
            }
        } else {
            visitor.scalar(inner, text);
        }
    }
    visitor.end(node);
    true
}

/// Returns two members of the frame itself without a look at the others, and stops at the second.
pub(crate) fn peek<'a>(text: &'a str, keys: [&str; 2]) -> [Option<&'a str>; 2] {
    let mut found = [None; 2];
    let mut walker = Walker {
        text,
        bytes: text.as_bytes(),
        at: 0,
        members: &mut FrameMembers::default(),
        visitor: &mut NoVisitor,
    };
    let mut next = || {
        if !matches!(walker.skip_space()?, b'{' | b',') {
            return None;
        }
        walker.at += 1;
        if walker.skip_space()? != b'"' {
            return None;
        }
        let (key, _) = walker.string()?;
        if walker.skip_space()? != b':' {
            return None;
        }
        walker.at += 1;
        Some((key, walker.skip()?))
    };
    while let Some((key, value)) = next() {
        for (wanted, found) in keys.iter().zip(&mut found) {
            if key.get(1..key.len() - 1) == Some(wanted) {
                *found = Some(value);
            }
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found
}

struct Walker<'a, 'w, V: Visitor<'a>> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    members: &'w mut FrameMembers<'a>,
    visitor: &'w mut V,
}

impl<'a, V: Visitor<'a>> Walker<'a, '_, V> {
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Walks a value and returns its text; the frame itself has level 0.
    fn value(&mut self, node: V::Node, parent: Option<usize>, level: usize) -> Option<&'a str> {
        let first = self.skip_space()?;
        let from = self.at;
        match first {
            b'{' => self.object(node, parent, level)?,
            b'[' => self.array(node, level)?,
            _ => {
                let json = if first == b'"' { self.string()?.0 } else { self.literal()? };
                self.visitor.scalar(node, json);
                return Some(json);
            }
        }
        self.text.get(from..self.at)
    }

    /// Skips a value, and returns its text.
    fn skip(&mut self) -> Option<&'a str> {
        self.skip_space()?;
        let from = self.at;
        let mut depth = 0;
        loop {
            match self.skip_space()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => drop(self.literal()?),
            }
            if depth <= 0 {
                return self.text.get(from..self.at);
            }
        }
    }

    /// Skips a string, and returns its text with the quotes, and whether it has escapes.
    fn string(&mut self) -> Option<(&'a str, bool)> {
        let from = self.at;
        self.at += 1;
        let mut has_escapes = false;
        loop {
            self.at += memchr::memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            if self.bytes[self.at] == b'"' {
                break;
            }
            has_escapes = true;
            self.at += 2;
        }
        self.at += 1;
        Some((self.text.get(from..self.at)?, has_escapes))
    }

    fn literal(&mut self) -> Option<&'a str> {
        let rest = self.bytes.get(self.at..)?;
        let is_end = |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        let from = self.at;
        self.at += length;
        self.text.get(from..self.at).filter(|text| !text.is_empty())
    }

    fn object(&mut self, node: V::Node, parent: Option<usize>, level: usize) -> Option<()> {
        if level > MOST_LEVELS {
            return None;
        }
        self.at += 1;
        self.visitor.object(node);
        if self.skip_space()? == b'}' {
            self.at += 1;
            self.visitor.end(node);
            return Some(());
        }
        loop {
            if self.skip_space()? != b'"' {
                return None;
            }
            let key = match self.string()? {
                (json, true) => unquoted(json)?,
                (json, false) => Cow::Borrowed(&json[1..json.len() - 1]),
            };
            if self.skip_space()? != b':' {
                return None;
            }
            self.at += 1;
            let inner = self.visitor.key(node, &key);
            if level < LEVELS {
                let member = self.members.push(parent, key);
                let value = self.value(inner, Some(member), level + 1)?;
                self.members.all[member].value = value;
            } else {
                self.value(inner, None, level + 1)?;
            }
            match self.skip_space()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        self.at += 1;
        self.visitor.end(node);
        Some(())
    }

    fn array(&mut self, node: V::Node, level: usize) -> Option<()> {
        if level > MOST_LEVELS {
            return None;
        }
        self.at += 1;
        let inner = self.visitor.array(node);
        if self.skip_space()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            // FrameMembers of elements are not looked up by any rule: they are beyond the levels that are remembered.
            self.value(inner, None, level.max(LEVELS) + 1)?;
            match self.skip_space()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> FrameMembers<'_> {
        let mut members = FrameMembers::default();
        assert!(walk(text, &mut members, &mut NoVisitor, ()), "{text}");
        members
    }

    #[test]
    fn members_are_found_by_their_path() {
        let text = r#" { "a" : {"b":{"c":"x\n","d":[{"e":1}]}, "n":-1.5e3} ,"\u0061b": true, "a ":[] } "#;
        let members = members(text);
        assert_eq!(members.text("/a/b/c").as_deref(), Some("x\n"));
        assert_eq!(members.json("/a/b/d"), Some(r#"[{"e":1}]"#));
        assert_eq!(members.json("/a/n"), Some("-1.5e3"));
        assert_eq!(members.json("/ab"), Some("true"));
        assert_eq!(members.json("/e"), None);
        assert_eq!(members.first_key(), Some("a"));
    }

    #[test]
    fn of_a_doubled_key_the_last_counts() {
        assert_eq!(members(r#"{"a":1,"a":{"b":2}}"#).json("/a/b"), Some("2"));
    }

    #[test]
    fn what_is_no_json_is_given_up_and_not_guessed() {
        for text in ["", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":1"#, r#"{"a" 1}"#, r#"{a:1}"#, "[1", r#"{"a":"\"#]
        {
            assert!(!walk(text, &mut FrameMembers::default(), &mut NoVisitor, ()), "{text}");
        }
    }
}
