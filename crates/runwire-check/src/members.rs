//! The members of a frame, down to three levels, found in one pass over its bytes.
//!
//! The order rules look their few fields up here, so that a frame that is fine is never built as a tree of values.

use std::borrow::Cow;

/// Levels that are remembered: `Custom.runwire.type` is the deepest field that a rule asks for.
const LEVELS: usize = 3;

/// Nesting that is walked; frames are checked for less before.
const MOST_LEVELS: usize = 256;

/// The members of a frame.
#[derive(Debug, Default)]
pub(crate) struct FrameMembers<'a> {
    all: Vec<Member<'a>>,
}

#[derive(Debug)]
struct Member<'a> {
    /// The member that this one is inside of.
    parent: Option<usize>,
    key: Cow<'a, str>,
    /// The value's JSON text.
    value: &'a str,
}

impl<'a> FrameMembers<'a> {
    /// Makes room for the members of a usual frame.
    pub(crate) fn new() -> Self {
        Self { all: Vec::with_capacity(16) }
    }

    /// Looks up a value's JSON text by the names on the way to it; of a doubled key the last counts.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&'a str> {
        let mut parent = None;
        let mut found = None;
        for key in path {
            let at = self.all.iter().rposition(|member| member.parent == parent && member.key == *key)?;
            (parent, found) = (Some(at), Some(self.all[at].value));
        }
        found
    }

    /// Looks up a string by the names on the way to it.
    pub(crate) fn text(&self, path: &[&str]) -> Option<Cow<'a, str>> {
        unquoted(self.at(path)?)
    }

    /// Lists the keys of the frame itself.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter(|member| member.parent.is_none()).map(|member| &*member.key)
    }

    pub(super) fn push(&mut self, parent: Option<usize>, key: Cow<'a, str>) -> usize {
        self.all.push(Member { parent, key, value: "" });
        self.all.len() - 1
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

/// What looks at a frame while it is walked: the values, and what their object or array says of them.
pub(crate) trait Visit<'a> {
    /// What is known of a place.
    type Place: Copy;

    /// Looks at a string, a number or a literal, given as its JSON text.
    fn scalar(&mut self, place: Self::Place, json: &str);

    /// Begins an object.
    fn object(&mut self, place: Self::Place);

    /// Looks at a key of the object that began last, and tells the place of its value.
    fn key(&mut self, place: Self::Place, key: &Cow<'a, str>) -> Self::Place;

    /// Ends the object that began last.
    fn end(&mut self, place: Self::Place);

    /// Begins an array, and tells the place of its elements.
    fn array(&mut self, place: Self::Place) -> Self::Place;
}

/// Sees nothing.
pub(crate) struct Blind;

impl<'a> Visit<'a> for Blind {
    type Place = ();

    fn scalar(&mut self, (): (), _: &str) {}

    fn object(&mut self, (): ()) {}

    fn key(&mut self, (): (), _: &Cow<'a, str>) {}

    fn end(&mut self, (): ()) {}

    fn array(&mut self, (): ()) {}
}

/// Walks a frame that is known to be JSON, and gathers its members; `false` means that it could not be walked.
pub(crate) fn walk<'a, V: Visit<'a>>(
    text: &'a str,
    members: &mut FrameMembers<'a>,
    visit: &mut V,
    place: V::Place,
) -> bool {
    let mut walk = Walk { text, bytes: text.as_bytes(), at: 0, members, visit };
    walk.value(place, None, 0).is_some()
}

/// Finds two members of the frame itself without a look at the others, and stops as soon as both are found.
pub(crate) fn peek<'a>(text: &'a str, keys: [&str; 2]) -> [Option<&'a str>; 2] {
    let mut found = [None; 2];
    let mut walk = Walk {
        text,
        bytes: text.as_bytes(),
        at: 0,
        members: &mut FrameMembers::default(),
        visit: &mut Blind,
    };
    let mut next = || {
        if !matches!(walk.skip_space()?, b'{' | b',') {
            return None;
        }
        walk.at += 1;
        if walk.skip_space()? != b'"' {
            return None;
        }
        let key = walk.string()?;
        if walk.skip_space()? != b':' {
            return None;
        }
        walk.at += 1;
        Some((key, walk.skip()?))
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

struct Walk<'a, 'w, V: Visit<'a>> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    members: &'w mut FrameMembers<'a>,
    visit: &'w mut V,
}

impl<'a, V: Visit<'a>> Walk<'a, '_, V> {
    fn skip_space(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Walks a value and tells its text; the frame itself has level 0.
    fn value(&mut self, place: V::Place, parent: Option<usize>, level: usize) -> Option<&'a str> {
        let first = self.skip_space()?;
        let from = self.at;
        match first {
            b'{' => self.object(place, parent, level)?,
            b'[' => self.array(place, level)?,
            _ => {
                let json = if first == b'"' { self.string()? } else { self.literal()? };
                self.visit.scalar(place, json);
                return Some(json);
            }
        }
        self.text.get(from..self.at)
    }

    /// Passes over a value, and tells its text.
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

    /// Passes over a string, and tells its text with the quotes.
    fn string(&mut self) -> Option<&'a str> {
        let from = self.at;
        self.at += 1;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.text.get(from..self.at)
    }

    fn literal(&mut self) -> Option<&'a str> {
        let rest = self.bytes.get(self.at..)?;
        let is_end = |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        let from = self.at;
        self.at += length;
        self.text.get(from..self.at).filter(|text| !text.is_empty())
    }

    fn object(&mut self, place: V::Place, parent: Option<usize>, level: usize) -> Option<()> {
        if level > MOST_LEVELS {
            return None;
        }
        self.at += 1;
        self.visit.object(place);
        if self.skip_space()? == b'}' {
            self.at += 1;
            self.visit.end(place);
            return Some(());
        }
        loop {
            if self.skip_space()? != b'"' {
                return None;
            }
            let key = unquoted(self.string()?)?;
            if self.skip_space()? != b':' {
                return None;
            }
            self.at += 1;
            let inner = self.visit.key(place, &key);
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
        self.visit.end(place);
        Some(())
    }

    fn array(&mut self, place: V::Place, level: usize) -> Option<()> {
        if level > MOST_LEVELS {
            return None;
        }
        self.at += 1;
        let inner = self.visit.array(place);
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
        assert!(walk(text, &mut members, &mut Blind, ()), "{text}");
        members
    }

    #[test]
    fn members_are_found_by_their_path() {
        let text = r#" { "a" : {"b":{"c":"x\n","d":[{"e":1}]}, "n":-1.5e3} ,"\u0061b": true, "a ":[] } "#;
        let members = members(text);
        assert_eq!(members.text(&["a", "b", "c"]).as_deref(), Some("x\n"));
        assert_eq!(members.at(&["a", "b", "d"]), Some(r#"[{"e":1}]"#));
        assert_eq!(members.at(&["a", "n"]), Some("-1.5e3"));
        assert_eq!(members.at(&["ab"]), Some("true"));
        assert_eq!(members.at(&["e"]), None);
        assert_eq!(members.keys().collect::<Vec<_>>(), ["a", "ab", "a "]);
    }

    #[test]
    fn of_a_doubled_key_the_last_counts() {
        assert_eq!(members(r#"{"a":1,"a":{"b":2}}"#).at(&["a", "b"]), Some("2"));
    }

    #[test]
    fn what_is_no_json_is_given_up_and_not_guessed() {
        for text in ["", "{", r#"{"a"#, r#"{"a":"#, r#"{"a":1"#, r#"{"a" 1}"#, r#"{a:1}"#, "[1", r#"{"a":"\"#]
        {
            assert!(!walk(text, &mut FrameMembers::default(), &mut Blind, ()), "{text}");
        }
    }
}
