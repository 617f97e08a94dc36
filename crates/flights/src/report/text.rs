//! Text of strangers inside HTML: as text, and as what it is.

use flightproof_core::is_default_ignorable;
use std::fmt::Write as _;

/// Text for an element or a quoted attribute.
pub(super) fn h(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match entity(c) {
            Some(entity) => out.push_str(entity),
            None if is_plain(c) => out.push(c),
            None => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    out
}

/// A line of source: what cannot be seen, or would move what stands beside it, is named in its place.
pub(super) fn source(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match entity(c) {
            Some(entity) => out.push_str(entity),
            None if is_plain(c) || c == '\t' => out.push(c),
            None => {
                let _ = write!(out, "<span class=\"odd\">U+{:04X}</span>", u32::from(c));
            }
        }
    }
    out
}

fn entity(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&#39;",
        _ => return None,
    })
}

/// Printable ASCII, letters and digits of any script, and the punctuation, arrows, currency and
/// drawing characters that comments have. No marks, formats, separators or private characters.
fn is_plain(c: char) -> bool {
    let common = matches!(c, ' '..='~' | '\u{a1}'..='\u{bf}' | '\u{d7}' | '\u{f7}' | '\u{2010}'..='\u{2027}'
        | '\u{2030}'..='\u{205e}' | '\u{20a0}'..='\u{20c0}' | '\u{2190}'..='\u{23ff}'
        | '\u{2500}'..='\u{27bf}' | '\u{3001}'..='\u{303d}');
    (common || c.is_alphanumeric()) && !is_default_ignorable(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_stranger_is_markup() {
        assert_eq!(
            h("<b a='1'>&\"x\""),
            "&lt;b a=&#39;1&#39;&gt;&amp;&quot;x&quot;"
        );
        assert_eq!(source("</td><script>"), "&lt;/td&gt;&lt;script&gt;");
    }

    #[test]
    fn what_cannot_be_seen_is_named() {
        for c in [
            '\u{202e}', '\u{200b}', '\u{2028}', '\u{1b}', '\0', '\u{feff}', '\u{e000}', '\u{301}',
        ] {
            let (line, word) = (source(&format!("a{c}b")), h(&format!("a{c}b")));
            assert!(!line.contains(c) && line.contains("U+"), "{line:?}");
            assert!(!word.contains(c) && word.contains("\\u{"), "{word:?}");
        }
        assert_eq!(source("größe → \t½"), "größe → \t½");
    }
}
