//! Moments, in milliseconds since the epoch, and their two written forms.

use std::fmt;

/// A moment, in milliseconds since the Unix epoch.
///
/// ```
/// use runwire_model::Timestamp;
///
/// let at = Timestamp::parse("2026-11-15T02:44:33.123Z").unwrap();
/// assert_eq!(at.to_string(), "2026-11-15T02:44:33.123Z");
/// assert_eq!(Timestamp::parse("2026-11-15T10:44:33.123+08:00"), Some(at));
/// assert_eq!(Timestamp::parse("2026-11-15T02:44:33.123456"), Some(at));
/// ```
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Timestamp(pub u64);

const DAY: u64 = 86_400_000;
/// The first millisecond of the year 10000, which the written form has no room for.
const END: u64 = 253_402_300_800_000;

impl Timestamp {
    /// Takes milliseconds since the epoch, within the years that can be written.
    pub fn from_millis(millis: u64) -> Option<Self> {
        (millis < END).then_some(Self(millis))
    }

    /// Reads ISO 8601; a time without a zone is read as UTC.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| -> Option<u64> {
            let digits = bytes.get(from..to)?;
            digits
                .iter()
                .all(u8::is_ascii_digit)
                .then(|| digits.iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0')))
        };
        let is = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|byte| allowed.contains(byte));
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let marks = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
        let ranges = (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 61;
        if !marks || !ranges || year < 1970 || !(1..=days_in_month(year, month)).contains(&day) {
            return None;
        }
        let mut at = 19;
        let mut millis = 0;
        if is(at, b".,") {
            at += 1;
            let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            for place in 0..3 {
                let digit = if place < digits { u64::from(bytes[at + place] - b'0') } else { 0 };
                millis = millis * 10 + digit;
            }
            at += digits;
        }
        let offset_minutes: i64 = match bytes.get(at) {
            None => 0,
            Some(b'Z' | b'z') if at + 1 == bytes.len() => 0,
            Some(sign @ (b'+' | b'-')) => {
                let colon = usize::from(is(at + 3, b":"));
                if bytes.len() != at + 5 + colon {
                    return None;
                }
                let minutes = number(at + 1, at + 3)? * 60 + number(at + 3 + colon, at + 5 + colon)?;
                if *sign == b'+' { minutes as i64 } else { -(minutes as i64) }
            }
            Some(_) => return None,
        };
        let days = days_from_civil(year, month, day);
        let local = days * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + millis;
        let utc = local as i64 - offset_minutes * 60_000;
        u64::try_from(utc).ok().and_then(Self::from_millis)
    }

    /// Returns the milliseconds from an earlier moment to this one.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Writes ISO 8601 in UTC with milliseconds, 24 bytes.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let (year, month, day) = civil_from_days(self.0 / DAY);
        let rest = self.0 % DAY;
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, width: usize, mut value: u64| {
            for digit in text[at..at + width].iter_mut().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, rest / 3_600_000);
        put(14, 2, rest / 60_000 % 60);
        put(17, 2, rest / 1000 % 60);
        put(20, 3, rest % 1000);
        out.extend_from_slice(&text);
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(24);
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

fn days_in_month(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts the days from the epoch to a date of the Gregorian calendar (Howard Hinnant's algorithm).
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_form_reads_back_for_every_day_of_four_centuries() {
        for day in 0..146_097 {
            let at = Timestamp(day * DAY + 3_723_004);
            assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        }
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026",
            "2026-13-01T00:00:00Z",
            "2026-11-31T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2026-11-15T25:00:00Z",
            "2026-11-15T02:44:33+8",
            "1969-12-31T00:00:00Z",
            "2026-11-15T02:44:33Zx",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
