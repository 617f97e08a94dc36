//! Other values of numbers, spelled as the language spells them.

use super::Language;
use crate::mutation::parts;

/// One more and one less, in the same type.
pub(super) fn integers(language: Language, said: &str) -> Vec<String> {
    let Some((value, suffix)) = value(language, said) else {
        return Vec::new();
    };
    let more = value.checked_add(1);
    let less = value.checked_sub(1);
    let others = more.into_iter().chain(less);
    others.map(|other| format!("{other}{suffix}")).collect()
}

/// The number without each of its bits, and with the next.
pub(super) fn bits(language: Language, said: &str) -> Vec<String> {
    let Some((value, suffix)) = value(language, said) else {
        return Vec::new();
    };
    let others = parts::bits(value).into_iter();
    others.map(|other| format!("{other:#x}{suffix}")).collect()
}

/// Whether a number is written as a row of bits.
pub(super) fn is_row(language: Language, said: &str) -> bool {
    let marked = |mark: char| {
        let rest = said.strip_prefix('0');
        rest.is_some_and(|rest| rest.starts_with([mark, mark.to_ascii_uppercase()]))
    };
    let bare = said.len() > 1 && said.bytes().all(|b| b.is_ascii_digit());
    let octal = bare && said.starts_with('0') && language != Language::Python;
    ['x', 'b', 'o'].into_iter().any(marked) || octal
}

/// A whole number and what stands behind it; nothing for another kind of number.
fn value(language: Language, said: &str) -> Option<(u128, &str)> {
    let plain = said.to_ascii_lowercase();
    let radix = match plain.as_bytes() {
        [b'0', b'x', ..] => 16,
        [b'0', b'b', ..] => 2,
        [b'0', b'o', ..] => 8,
        [b'0', b'0'..=b'9', ..] if language != Language::Python => 8,
        _ => 10,
    };
    let digits = match radix {
        10 => 0,
        8 if plain.as_bytes().get(1) != Some(&b'o') => 1,
        _ => 2,
    };
    let rest = plain.get(digits..)?;
    let end = rest.find(|c: char| !c.is_digit(radix) && c != '_' && c != '\'');
    let end = end.unwrap_or(rest.len());
    let suffix = said.get(digits + end..)?;
    let whole = suffix.chars().all(|c| "uUlLn".contains(c));
    let number: String = rest
        .get(..end)?
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    whole.then_some((u128::from_str_radix(&number, radix).ok()?, suffix))
}

/// Other values of a number with a fraction: a plain one, and those of one digit less.
pub(super) fn floats(said: &str) -> Vec<String> {
    let digits = said.split(['e', 'E']).next().unwrap_or_default();
    let zero = !digits.contains(|c| matches!(c, '1'..='9'));
    let plain = if zero { "1.0" } else { "0.0" }.to_owned();
    let number = said.trim_end_matches(|c| "fFlLijJ".contains(c));
    let suffix = said.get(number.len()..).unwrap_or_default();
    let rounded = parts::rounded(number).into_iter();
    let rounded = rounded.map(|other| format!("{other}{suffix}"));
    std::iter::once(plain).chain(rounded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_becomes_its_neighbours_in_its_own_type_and_never_itself() {
        for (language, said, others) in [
            (Language::C, "0", vec!["1"]),
            (Language::C, "10UL", vec!["11UL", "9UL"]),
            (Language::C, "0x1F", vec!["32", "30"]),
            (Language::C, "010", vec!["9", "7"]),
            (Language::Go, "1_000", vec!["1001", "999"]),
            (Language::Go, "0b11", vec!["4", "2"]),
            (Language::JavaScript, "7n", vec!["8n", "6n"]),
            (Language::Python, "0o17", vec!["16", "14"]),
            (Language::JavaScript, "1.5", vec![]),
            (Language::C, "1e3", vec![]),
            (Language::C, "2.0f", vec![]),
        ] {
            assert_eq!(integers(language, said), others, "{said}");
        }
        assert_eq!(floats("0.0"), ["1.0"]);
        assert_eq!(floats("1e3"), ["0.0"]);
        assert_eq!(floats("0.9000009"), ["0.0", "0.9", "0.900001"]);
        assert_eq!(floats("1.25f"), ["0.0", "1.2f", "1.3f"]);
    }

    #[test]
    fn a_row_of_bits_is_told_by_how_it_is_written() {
        assert_eq!(bits(Language::C, "10UL"), ["0x8UL", "0x2UL", "0x1aUL"]);
        assert_eq!(
            bits(Language::JavaScript, "0xen"),
            ["0xcn", "0xan", "0x6n", "0x1en"]
        );
        for (language, said, row) in [
            (Language::C, "0x1F", true),
            (Language::C, "010", true),
            (Language::Python, "0b11", true),
            (Language::Go, "0O17", true),
            (Language::Go, "0", false),
            (Language::C, "0.5", false),
            (Language::Python, "1023", false),
        ] {
            assert_eq!(is_row(language, said), row, "{said}");
        }
    }
}
