//! Days of the calendar as people write them: `2026-11-29`.

use flightproof_core::{day_text, parse_day};
use flightproof_ledger::UtcDay;
use std::fmt;
use std::str::FromStr;

/// A day of the proleptic Gregorian calendar from 1970 on, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date(pub(super) UtcDay);

impl FromStr for Date {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_day(text)
            .map(|day| Self(UtcDay(day)))
            .ok_or("not a day such as 2026-11-29")
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&day_text(self.0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_the_first_of_1970() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-29", 20_786),
            ("2100-02-28", 47_540),
            ("2100-03-01", 47_541),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(text.parse::<Date>(), Ok(Date(UtcDay(days))), "{text}");
            assert_eq!(Date(UtcDay(days)).to_string(), text);
        }
    }

    #[test]
    fn every_day_of_two_hundred_years_has_its_own_name() {
        for days in 0..73_000 {
            let name = Date(UtcDay(days)).to_string();
            assert_eq!(name.parse(), Ok(Date(UtcDay(days))), "{name}");
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "2026-02-29",
            "2026-11-31",
            "2026-00-01",
            "2026-13-01",
            "2026-01-00",
            "1969-12-31",
            "2026-1-1",
            "2026/01/01",
            "+026-01-01",
            "2026-01-01 ",
            "",
            "2100-02-29",
        ] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}
