//! Times as engines write them.

/// Seconds since 1970 of `2026-11-29T18:40:42.123456789Z` or with an offset such as `+01:00`;
/// fractions are cut off. `None` for anything else.
pub(super) fn unix_seconds(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (time, offset) = split_offset(time)?;
    let time = time
        .split_once('.')
        .map_or(time, |(whole, _fraction)| whole);
    let [hour, minute, second] = numbers(time, ':')?;
    let plausible = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    plausible.then(|| u64::try_from(seconds).ok()).flatten()
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| {
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| part.parse().ok()).flatten()
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// The time of day, and how many seconds it is ahead of that of Greenwich.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (time, offset) = time.split_at_checked(at)?;
    let [hours, minutes, _] = numbers(&format!("{}:0", offset.get(1..)?), ':')?;
    let seconds = hours * 3_600 + minutes * 60;
    Some((
        time,
        if offset.starts_with('-') {
            -seconds
        } else {
            seconds
        },
    ))
}

/// Days since 1970-01-01, with years that begin in March: then the leap day is a year's last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    of_years + (month * 153 + 2) / 5 + day - 1 - DAYS_TO_1970
}

/// Days from the first of March of the year 0 to the first of January of 1970.
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_engines_are_read() {
        let table = [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600),
            ("2026-11-29T18:40:42.123456789Z", 1_795_977_642),
            ("2026-11-29T19:40:42+01:00", 1_795_977_642),
            ("2026-11-29T13:10:42.5-05:30", 1_795_977_642),
        ];
        for (text, seconds) in table {
            assert_eq!(unix_seconds(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "now",
            "2026-11-29",
            "2026-11-29T18:40:42",
            "2026-13-29T18:40:42Z",
            "2026-11-29T25:40:42Z",
            "1969-11-29T18:40:42Z",
            "-026-11-29T18:40:42Z",
            "2026-11-29T18:40:4xZ",
        ] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }
}
