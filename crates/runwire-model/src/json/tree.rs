//! A JSON value as a tree whose numbers and strings stay text.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Json, write_str};
use crate::limits;

/// A JSON value that can be changed. Unlike `serde_json::Value` it keeps every number with all of its digits.
#[derive(Debug, Clone)]
pub(crate) enum Tree<'a> {
    /// A string, a number, `true`, `false` or `null`, as it was written.
    Leaf(&'a str),
    /// An array.
    Array(Vec<Tree<'a>>),
    /// An object.
    Object(Members<'a>),
}

/// The members of an object, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members<'a> {
    /// Members, each with the number that orders it.
    members: HashMap<Cow<'a, str>, (u64, Tree<'a>)>,
    next: u64,
}

impl<'a> Members<'a> {
    /// Looks up a member.
    pub(crate) fn get(&self, name: &str) -> Option<&Tree<'a>> {
        self.members.get(name).map(|(_, value)| value)
    }

    /// Looks up a member to change it.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Tree<'a>> {
        self.members.get_mut(name).map(|(_, value)| value)
    }

    /// Sets a member; a known one keeps its position, a new one comes last.
    pub(crate) fn insert(&mut self, name: Cow<'a, str>, value: Tree<'a>) {
        match self.get_mut(&name) {
            Some(known) => *known = value,
            None => {
                self.members.insert(name, (self.next, value));
                self.next += 1;
            }
        }
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Tree<'a>> {
        self.members.remove(name).map(|(_, value)| value)
    }

    /// Lists the members in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Tree<'a>)> {
        self.members.iter().map(|(name, (_, value))| (&**name, value))
    }
}

impl<'a> Tree<'a> {
    /// Parses a value; returns `None` if it is nested too deep or has half a surrogate pair.
    pub(crate) fn of(json: &'a Json) -> Option<Self> {
        Parser { text: json.text(), at: 0 }.value(0)
    }

    /// Returns the value of a string, and nothing for any other value.
    pub(crate) fn as_str(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Leaf(text) => unquoted(text),
            _ => None,
        }
    }

    /// Looks up a member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// Returns true if two values are equal, in any order of their members.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(one), Self::Leaf(other)) => one == other || is_same_leaf(one, other),
            (Self::Array(one), Self::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_same(other))
            }
            (Self::Object(one), Self::Object(another)) => {
                let is_in_other = |(name, value): (&str, &Self)| {
                    another.get(name).is_some_and(|other| value.is_same(other))
                };
                one.members.len() == another.members.len() && one.iter().all(is_in_other)
            }
            _ => false,
        }
    }

    /// Writes the value without white space.
    pub(crate) fn to_json(&self) -> Json {
        let mut out = Vec::new();
        self.write(&mut out);
        Json::from_written(out)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Leaf(text) => out.extend_from_slice(text.as_bytes()),
            Self::Array(items) => {
                out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(Members { members, .. }) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(_, (order, _))| *order);
                out.push(b'{');
                for (at, (name, (_, value))) in members.into_iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_str(out, name);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Compares two strings or numbers that are written differently; numbers by their value (RFC 6902, 4.6).
fn is_same_leaf(one: &str, other: &str) -> bool {
    match (unquoted(one), unquoted(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => Decimal::of(one).is_some_and(|one| Decimal::of(other) == Some(one)),
        _ => false,
    }
}

/// The exact value of a number, in the one form that every way to write it comes to.
#[derive(PartialEq)]
struct Decimal<'a> {
    is_negative: bool,
    /// Its digits, without zeros at either end; none means zero.
    digits: Vec<u8>,
    /// The power of ten of the last digit.
    exponent: Exponent<'a>,
}

#[derive(PartialEq)]
enum Exponent<'a> {
    Number(i128),
    /// One of more digits: as it is written, and what the other digits add to it.
    Text(bool, &'a str, i128),
}

impl<'a> Decimal<'a> {
    /// Reads a number; gives nothing for `true`, `false` and `null`.
    fn of(text: &'a str) -> Option<Self> {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        text.bytes().next().filter(u8::is_ascii_digit)?;
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).skip_while(|b| *b == b'0').collect();
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        digits.truncate(digits.len() - zeros);
        if digits.is_empty() {
            return Some(Self { is_negative: false, digits, exponent: Exponent::Number(0) });
        }
        let shift = zeros as i128 - fraction.len() as i128;
        let (falls, power) = match power.strip_prefix('-') {
            Some(power) => (true, power),
            None => (false, power.strip_prefix('+').unwrap_or(power)),
        };
        let power = power.trim_start_matches('0');
        let number = if power.is_empty() { Some(0) } else { power.parse::<i64>().ok().map(i128::from) };
        let exponent = match number {
            Some(number) => Exponent::Number(if falls { -number } else { number } + shift),
            None => Exponent::Text(falls, power, shift),
        };
        Some(Self { is_negative, digits, exponent })
    }
}

/// Reads the text of a JSON string.
fn unquoted(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    match memchr::memchr(b'\\', inner.as_bytes()) {
        None => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}

/// Walks over a text that is known to be JSON.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Option<Tree<'a>> {
        let begins = self.peek()?;
        if matches!(begins, b'{' | b'[') && depth == limits::JSON_DEPTH {
            return None;
        }
        match begins {
            b'{' => {
                let mut members = Members::default();
                self.at += 1;
                while self.peek()? != b'}' {
                    let name = unquoted(self.string()?)?;
                    self.skip(b':')?;
                    members.insert(name, self.value(depth + 1)?);
                    self.separator()?;
                }
                self.at += 1;
                Some(Tree::Object(members))
            }
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                while self.peek()? != b']' {
                    items.push(self.value(depth + 1)?);
                    self.separator()?;
                }
                self.at += 1;
                Some(Tree::Array(items))
            }
            b'"' => {
                let text = self.string()?;
                // What cannot be read is found here, rather than where it is compared.
                unquoted(text).map(|_| Tree::Leaf(text))
            }
            _ => {
                let rest = self.rest();
                let ends = |byte: u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
                let len = rest.bytes().position(ends).unwrap_or(rest.len());
                self.at += len;
                Some(Tree::Leaf(rest.get(..len)?))
            }
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next byte that is no white space, and goes there.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.rest().as_bytes();
        let blank = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.at += blank;
        rest.get(blank).copied()
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Passes over the comma between two values, if there is one.
    fn separator(&mut self) -> Option<()> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        Some(())
    }

    /// Takes a string with its quotes.
    fn string(&mut self) -> Option<&'a str> {
        self.peek().filter(|byte| *byte == b'"')?;
        let rest = self.rest();
        let mut end = 1;
        loop {
            end += memchr::memchr2(b'"', b'\\', rest.as_bytes().get(end..)?)?;
            if rest.as_bytes()[end] == b'"' {
                break;
            }
            end += 2;
        }
        self.at += end + 1;
        rest.get(..=end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_without_its_white_space() {
        for (text, wanted) in [
            (" { \"a\" : [ 1 , 1.10 , 1e999 , -0 ] , \"b\" : { } } ", r#"{"a":[1,1.10,1e999,-0],"b":{}}"#),
            (r#"[[],{"":""},"a\"],\\",true,false,null]"#, r#"[[],{"":""},"a\"],\\",true,false,null]"#),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
            (r#"{"\u0061\n":"\u0061"}"#, r#"{"a\n":"\u0061"}"#),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            let json = Json::parse(text).unwrap();
            assert_eq!(Tree::of(&json).unwrap().to_json().text(), wanted);
        }
    }

    #[test]
    fn the_same_value_may_be_written_differently() {
        let same = |one: &str, other: &str| {
            let (one, other) = (Json::parse(one).unwrap(), Json::parse(other).unwrap());
            Tree::of(&one).unwrap().is_same(&Tree::of(&other).unwrap())
        };
        assert!(same(r#"{"a":[1,"\u0061"],"b":1.10}"#, r#"{"b":1.1,"a":[1,"a"]}"#));
        assert!(same("1e999", "1e999") && !same("1e999", "1e998") && !same("1", "2"));
        for (one, other) in [
            ("1.0", "1"),
            ("-0.0", "0"),
            ("1.5e1", "15"),
            ("0e999", "0"),
            ("1e999", "10e998"),
            ("120E-1", "12"),
            ("9007199254740993", "9007199254740993.0"),
            (r#"{"a":[1.0,{"b":-0}]}"#, r#"{"a":[1,{"b":0}]}"#),
            ("1e99999999999999999999", "1e+099999999999999999999"),
        ] {
            assert!(same(one, other) && same(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("1", "-1"),
            ("9007199254740993", "9007199254740992"),
            ("9007199254740993", "9007199254740992.0"),
            ("1e99999999999999999999", "1e-99999999999999999999"),
            ("1", r#""1""#),
            ("0", "null"),
            ("0", "false"),
            ("true", "false"),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} {other}");
        }
        assert!(!same(r#"{"a":1}"#, r#"{"a":1,"b":1}"#) && !same("[1]", "[1,1]") && !same("[]", "{}"));
    }

    #[test]
    fn what_is_nested_too_deep_or_holds_half_a_character_is_no_tree() {
        let nested =
            |depth: usize| Json::parse(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).unwrap();
        assert!(Tree::of(&nested(limits::JSON_DEPTH)).is_some());
        assert!(Tree::of(&nested(limits::JSON_DEPTH + 1)).is_none());
        assert!(Tree::of(&Json::parse(r#""\ud800""#).unwrap()).is_none());
        assert!(Tree::of(&Json::parse(r#"{"\ud800":1}"#).unwrap()).is_none());
    }
}
