//! Ids in URLs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// What is encoded: all but RFC 3986's unreserved characters, the colon and the at sign.
const ENCODED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');
const ENCODED_DOTS: AsciiSet = ENCODED.add(b'.');

/// Percent-encodes an id, or the name or value of a parameter, for a URL.
pub fn percent_encoded(text: &str) -> PercentEncode<'_> {
    // `..` is a valid id: it must not be normalised away as a path segment.
    let encoded = if text.bytes().all(|byte| byte == b'.') { &ENCODED_DOTS } else { &ENCODED };
    utf8_percent_encode(text, encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_path_is_encoded() {
        assert_eq!(percent_encoded("a/b?c=d&天 %").to_string(), "a%2Fb%3Fc%3Dd%26%E5%A4%A9%20%25");
        assert_eq!(percent_encoded("user@host:1~2.3_4-5").to_string(), "user@host:1~2.3_4-5");
        assert_eq!(percent_encoded("..").to_string(), "%2E%2E");
    }
}
