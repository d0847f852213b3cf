//! Objects written straight into a buffer.

use super::Json;
use crate::event::Extra;

/// Writes one JSON object, field by field, in the order of the calls.
///
/// ```
/// use runwire_model::json::ObjectWriter;
///
/// let mut bytes = Vec::new();
/// let mut object = ObjectWriter::begin(&mut bytes);
/// object.str("type", "usage");
/// object.u64("total_tokens", 162);
/// object.end();
/// assert_eq!(bytes, br#"{"type":"usage","total_tokens":162}"#);
/// ```
#[must_use = "an object is complete only after `end`"]
pub struct ObjectWriter<'b> {
    out: &'b mut Vec<u8>,
    empty: bool,
    renamed: Option<(&'static str, &'static str)>,
}

impl<'b> ObjectWriter<'b> {
    /// Opens an object at the end of the buffer.
    pub fn begin(out: &'b mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true, renamed: None }
    }

    /// Calls a field by another name from now on, if there is one.
    pub(crate) fn rename(&mut self, from: &'static str, to: Option<&'static str>) {
        self.renamed = to.map(|to| (from, to));
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push(b'}');
    }

    /// Writes a string.
    #[inline]
    pub fn str(&mut self, key: &str, value: &str) {
        write_str(self.key(key), value);
    }

    /// Writes a string, if there is one.
    #[inline]
    pub fn opt_str(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.str(key, value);
        }
    }

    /// Writes a whole number.
    #[inline]
    pub fn u64(&mut self, key: &str, value: u64) {
        write_u64(self.key(key), value);
    }

    /// Writes a whole number, if there is one.
    pub fn opt_u64(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.u64(key, value);
        }
    }

    /// Writes a number; one without a fraction is written as a whole number.
    pub fn f64(&mut self, key: &str, value: f64) {
        write_f64(self.key(key), value);
    }

    /// Writes a number, if there is one.
    pub fn opt_f64(&mut self, key: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.f64(key, value);
        }
    }

    /// Writes `true` or `false`.
    #[inline]
    pub fn bool(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    /// Writes `null`.
    #[inline]
    pub fn null(&mut self, key: &str) {
        self.raw(key, "null");
    }

    /// Writes a value as the text it came in.
    #[inline]
    pub fn json(&mut self, key: &str, value: &Json) {
        self.raw(key, value.text());
    }

    /// Writes a value as the text it came in, if there is one.
    #[inline]
    pub fn opt_json(&mut self, key: &str, value: Option<&Json>) {
        if let Some(value) = value {
            self.json(key, value);
        }
    }

    /// Writes fields that the model does not know.
    pub fn extra(&mut self, extra: &Extra) {
        for (name, value) in extra.iter() {
            self.json(name, value);
        }
    }

    /// Writes a value whose JSON text is known.
    #[inline]
    pub fn raw(&mut self, key: &str, text: &str) {
        self.key(key).extend_from_slice(text.as_bytes());
    }

    /// Opens an object inside this one.
    pub fn object(&mut self, key: &str) -> ObjectWriter<'_> {
        ObjectWriter::begin(self.key(key))
    }

    /// Writes an array, each item by the function.
    pub fn array<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Vec<u8>, T),
    ) {
        let out = self.key(key);
        out.push(b'[');
        for (index, value) in items.into_iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            item(out, value);
        }
        out.push(b']');
    }

    /// Writes the name of a field and hands out the buffer for its value.
    // Names are literals nearly everywhere: inlined, looking for what to escape costs nothing.
    #[inline(always)]
    pub(crate) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.empty { b"\"" } else { b",\"" });
        self.empty = false;
        if self.renamed.is_some() || first_to_escape(key.as_bytes()).is_some() {
            self.unusual_key(key);
        } else {
            self.out.extend_from_slice(key.as_bytes());
        }
        self.out.extend_from_slice(b"\":");
        self.out
    }

    #[cold]
    fn unusual_key(&mut self, key: &str) {
        let key = self.renamed.filter(|(from, _)| *from == key).map_or(key, |(_, to)| to);
        write_escaped(self.out, key);
    }
}

/// Writes a JSON string.
pub(crate) fn write_str(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    write_escaped(out, text);
    out.push(b'"');
}

/// Writes what stands between the quotation marks of a JSON string.
fn write_escaped(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut rest = text.as_bytes();
    while let Some(at) = first_to_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Finds the first byte that a JSON string must escape: a control character, `"` or `\`.
///
/// Eight bytes are looked at in one step: most of what is written has nothing to escape.
#[inline(always)]
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = first_in_word(u64::from_le_bytes(*word)) {
            return Some(index * 8 + at);
        }
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        // What was looked at before has nothing to escape.
        return first_in_word(u64::from_le_bytes(*last)).map(|at| bytes.len() - 8 + at);
    }
    if let (Some(first), Some(last)) = (tail.first_chunk::<4>(), tail.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        let at = first_in_word(u64::from(first) | u64::from(last) << 32)?;
        return Some(if at < 4 { at } else { at + tail.len() - 8 });
    }
    tail.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\'))
}

/// Finds the first byte to escape among eight, the lowest being the first.
#[inline(always)]
fn first_in_word(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let below = |limit: u64, word: u64| word.wrapping_sub(ONES * limit) & !word;
    let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
    // The high bit of each byte tells; the lowest that does is right, because nothing below it borrowed.
    let found = (below(0x20, word) | is(b'"') | is(b'\\')) & (ONES << 7);
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// Writes a whole number.
fn write_u64(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a number; one without a fraction is written as a whole number.
pub(crate) fn write_f64(out: &mut Vec<u8>, value: f64) {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    let text = if value.is_finite() && value.fract() == 0.0 && value.abs() < WHOLE {
        (value as i64).to_string()
    } else {
        serde_json::Number::from_f64(value).map_or_else(|| "null".to_owned(), |number| number.to_string())
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_serde_json_does() {
        for text in ["", "plain", "a\"b\\c", "line\nbreak\r\ttab", "\u{0}\u{1f}\u{7f}", "你好 👋 \u{2028}"]
        {
            let mut out = Vec::new();
            write_str(&mut out, text);
            let back: String = serde_json::from_slice(&out).unwrap();
            assert_eq!(back, text);
        }
    }

    #[test]
    fn what_must_be_escaped_is_found_wherever_it_stands() {
        let plain = "0123456789 你好 👋 \u{80}\u{ff}\u{7f} and a little more";
        assert_eq!(first_to_escape(plain.as_bytes()), None);
        for at in (0..=plain.len()).filter(|at| plain.is_char_boundary(*at)) {
            for escaped in ["\"", "\\", "\0", "\u{1f}", "\n\"", "\u{1}\u{2}"] {
                let text = format!("{}{escaped}{}", &plain[..at], &plain[at..]);
                assert_eq!(first_to_escape(text.as_bytes()), Some(at), "{text:?}");
                let short = format!("{}{escaped}", &plain[..at]);
                assert_eq!(first_to_escape(short.as_bytes()), Some(at), "{short:?}");
            }
        }
    }

    #[test]
    fn numbers_without_a_fraction_are_whole() {
        for (value, text) in
            [(123.0, "123"), (0.5, "0.5"), (-2.0, "-2"), (1e300, "1e300"), (f64::NAN, "null")]
        {
            let mut out = Vec::new();
            write_f64(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap().replace("+", ""), text);
        }
    }
}
