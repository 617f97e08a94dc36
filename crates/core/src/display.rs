use std::fmt;

/// Shows text a stranger wrote so that it cannot move the cursor, change colours, hide or reorder
/// what stands beside it. Everything outside printable ASCII and ordinary letters is escaped.
#[derive(Clone, Copy)]
pub struct Escaped<'a>(pub &'a [u8]);

/// [`Escaped`] as a string, cut to at most `most` bytes of input with the number of bytes left out.
/// A character is never cut in two: half of one would be shown as bytes it does not have.
pub fn escape(text: impl AsRef<[u8]>, most: usize) -> String {
    let bytes = text.as_ref();
    if bytes.len() <= most {
        return Escaped(bytes).to_string();
    }
    let shown = whole_characters(&bytes[..most]);
    let left_out = bytes.len() - shown.len();
    format!("{}… ({} bytes more)", Escaped(shown), left_out)
}

/// So many of something, named by its singular, as people say it.
pub fn counted<N: fmt::Display + PartialEq + From<u8>>(number: N, one: &str) -> String {
    match one.strip_suffix('y') {
        _ if number == N::from(1) => format!("1 {one}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ => format!("{number} {one}s"),
    }
}

/// The bytes without an unfinished character at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let tail = bytes
        .utf8_chunks()
        .last()
        .map_or(&[][..], |chunk| chunk.invalid());
    let unfinished = std::str::from_utf8(tail).is_err_and(|e| e.error_len().is_none());
    if unfinished {
        &bytes[..bytes.len() - tail.len()]
    } else {
        bytes
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                write_char(f, c)?;
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

fn write_char(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\t' => f.write_str("\\t"),
        '\r' => f.write_str("\\r"),
        '\\' => f.write_str("\\\\"),
        ' '..='~' => write!(f, "{c}"),
        c if is_harmless(c) => write!(f, "{c}"),
        c => write!(f, "\\u{{{:x}}}", u32::from(c)),
    }
}

/// A line of a message as a terminal may have it: what [`escape`] would escape is escaped, but for
/// the backslash, since the line may have been escaped before, and for the mark of what was cut.
pub fn plain(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            ' '..='~' | '…' => out.push(c),
            c if is_harmless(c) => out.push(c),
            c => out.push_str(&Escaped(c.encode_utf8(&mut [0; 4]).as_bytes()).to_string()),
        }
    }
    out
}

/// Letters and digits of any script. Marks, formats (bidi, zero width), separators, private use
/// and symbols are not: those are what spoofs are made of.
fn is_harmless(c: char) -> bool {
    c.is_alphanumeric() && !matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted_in_words() {
        for (n, one, told) in [
            (1, "key", "1 key"),
            (2, "key", "2 keys"),
            (0, "entry", "0 entries"),
            (3, "mutant", "3 mutants"),
            (1, "changed line", "1 changed line"),
        ] {
            assert_eq!(counted(n, one), told);
        }
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_comes_through() {
        for hostile in [
            "\x1b[31m",
            "\u{9b}2J",
            "a\u{202e}b",
            "\u{200b}",
            "\u{feff}",
            "\r",
            "\x07",
            "\u{2028}",
        ] {
            let shown = escape(hostile, 100);
            assert!(
                shown
                    .chars()
                    .all(|c| !c.is_control() && !"\u{202e}\u{200b}\u{feff}\u{2028}".contains(c)),
                "{shown:?}"
            );
            assert!(shown.contains('\\'), "{shown}");
        }
    }

    #[test]
    fn a_line_is_made_plain_once_however_often_it_is_asked() {
        let line = "größe \x1b[31m \u{202e} \u{200b} \u{feff}\n…";
        let shown = plain(line);
        assert_eq!(shown, "größe \\u{1b}[31m \\u{202e} \\u{200b} \\u{feff}\\n…");
        assert_eq!(plain(&shown), shown);
        assert_eq!(plain(&escape("\\\x1b", 9)), escape("\\\x1b", 9));
    }

    #[test]
    fn ordinary_text_stays_readable() {
        assert_eq!(escape("src/größe.rs line 3", 100), "src/größe.rs line 3");
    }

    #[test]
    fn invalid_utf8_and_length_are_shown_not_hidden() {
        assert_eq!(escape(b"a\xff\\", 10), "a\\xff\\\\");
        assert_eq!(escape("abcdef", 3), "abc… (3 bytes more)");
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        assert_eq!(escape("aéb", 2), "a… (3 bytes more)");
        assert_eq!(escape("a\u{10400}b", 4), "a… (5 bytes more)");
        assert_eq!(escape(b"a\xffbc", 2), "a\\xff… (2 bytes more)");
    }
}
