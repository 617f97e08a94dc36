//! Other values of numbers, spelled as the language spells them.

use super::Language;

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

/// Another value of a number with a fraction.
pub(super) fn float(said: &str) -> Option<String> {
    let digits = said.split(['e', 'E']).next().unwrap_or_default();
    let zero = !digits.contains(|c| matches!(c, '1'..='9'));
    Some(if zero { "1.0" } else { "0.0" }.to_owned())
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
        assert_eq!(float("0.0").as_deref(), Some("1.0"));
        assert_eq!(float("1e3").as_deref(), Some("0.0"));
    }
}
