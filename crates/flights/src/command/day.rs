//! Days of the calendar as people write them: `2026-11-29`.

use flightproof_ledger::UtcDay;
use std::fmt;
use std::str::FromStr;

/// A day of the proleptic Gregorian calendar from 1970 on, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date(pub(super) UtcDay);

/// Days of 400 years, after which the calendar repeats.
const ERA: u32 = 146_097;
/// Days from the first of March of the year 0 to the first of January 1970.
const EPOCH: u32 = 719_468;

impl FromStr for Date {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "not a day such as 2026-11-29";
        let part = |range: std::ops::Range<usize>| {
            let digits = text
                .get(range)
                .filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
            digits.and_then(|digits| digits.parse::<u32>().ok())
        };
        let (Some(year), Some(month), Some(day)) = (part(0..4), part(5..7), part(8..10)) else {
            return Err(WRONG);
        };
        let dashes = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        if !dashes || text.len() != 10 || year < 1970 || !(1..=12).contains(&month) || day == 0 {
            return Err(WRONG);
        }
        // Years that begin in March end in the day that may be missing.
        let (year, month) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let of_year = (153 * month + 2) / 5 + day - 1;
        let of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + of_year;
        let date = Self(UtcDay((year / 400 * ERA + of_era) - EPOCH));
        // The thirtieth of February is some other day.
        if date.to_string() == text {
            Ok(date)
        } else {
            Err(WRONG)
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.0.saturating_add(EPOCH);
        let of_era = days % ERA;
        let of_years = of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096;
        let year = of_years / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + days / ERA * 400 + u32::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02}")
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
