use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A second of UTC from 1970 to 9999, with one spelling: `2026-11-29T21:00:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

/// Seconds of a day.
const DAY: u64 = 86_400;
/// The last second of the year 9999.
const LAST: u64 = 253_402_300_799;
/// Days of 400 years, after which the calendar repeats.
const ERA: u32 = 146_097;
/// Days from the first of March of the year 0 to the first of January 1970.
const EPOCH: u32 = 719_468;

impl Moment {
    /// The moment so many seconds after the start of 1970; the last one there is, beyond it.
    pub fn from_unix(seconds: u64) -> Self {
        Self(seconds.min(LAST))
    }

    /// Seconds since the start of 1970.
    pub fn unix(self) -> u64 {
        self.0
    }

    /// The moment so many days later.
    #[must_use]
    pub fn after_days(self, days: u64) -> Self {
        Self::from_unix(self.0.saturating_add(days.saturating_mul(DAY)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = u32::try_from(self.0 / DAY).unwrap_or(u32::MAX);
        let (hour, minute, second) = (self.0 % DAY / 3600, self.0 % 3600 / 60, self.0 % 60);
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}Z", day_text(day))
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "not a moment such as 2026-11-29T21:00:00Z";
        let day = text.get(..10).and_then(parse_day).ok_or(WRONG)?;
        let part = |at: usize| {
            let digits = text.get(at..at + 2).unwrap_or_default();
            digits.parse::<u64>().map_err(|_| WRONG)
        };
        let seconds = part(11)? * 3600 + part(14)? * 60 + part(17)?;
        let moment = Self(u64::from(day) * DAY + seconds);
        // Anything that is spelt otherwise is some other moment, or none.
        if moment.to_string() == text {
            Ok(moment)
        } else {
            Err(WRONG)
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The number since 1970 of a day of the proleptic Gregorian calendar, such as `2026-11-29`.
pub fn parse_day(text: &str) -> Option<u32> {
    let part = |range: std::ops::Range<usize>| {
        let digits = text
            .get(range)
            .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
        digits.parse::<u32>().ok()
    };
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let dashes = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    if !dashes || text.len() != 10 || year < 1970 || !(1..=12).contains(&month) || day == 0 {
        return None;
    }
    // Years that begin in March end in the day that may be missing.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + of_year;
    let number = (year / 400 * ERA + of_era) - EPOCH;
    // The thirtieth of February is some other day.
    (day_text(number) == text).then_some(number)
}

/// The day with this number since 1970.
pub fn day_text(number: u32) -> String {
    let days = number.saturating_add(EPOCH);
    let of_era = days % ERA;
    let of_years = of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096;
    let year = of_years / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + days / ERA * 400 + u32::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_one_spelling() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2001-09-09T01:46:40Z", 1_000_000_000),
            ("2026-11-29T21:22:12Z", 1_795_987_332),
            ("9999-12-31T23:59:59Z", LAST),
        ] {
            assert_eq!(text.parse(), Ok(Moment(seconds)), "{text}");
            assert_eq!(Moment(seconds).to_string(), text);
        }
        assert_eq!(Moment::from_unix(u64::MAX), Moment(LAST));
        assert_eq!(Moment(0).after_days(2), Moment(2 * DAY));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2026-11-29",
            "2026-11-29T21:00:00",
            "2026-11-29T21:00:00+00:00",
            "2026-11-29t21:00:00z",
            "2026-11-29 21:00:00Z",
            "2026-11-29T24:00:00Z",
            "2026-11-29T23:60:00Z",
            "2026-11-29T23:59:60Z",
            "2026-11-29T+1:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-11-29T21:00:00.0Z",
            "2026-11-29T21:00:00Z ",
            "é026-11-29T21:00:00Z",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
