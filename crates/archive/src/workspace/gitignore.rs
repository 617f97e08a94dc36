//! `.gitignore` files as git reads them.
//!
//! The last pattern that matches decides, the innermost file first; a pattern with a slash before
//! its end is anchored to its file's directory; one with a slash at its end means directories only.
//! That nothing below an ignored directory can be taken back follows from not entering it.

use super::glob::{Exhausted, Glob, Steps};

/// The patterns of one `.gitignore`.
#[derive(Debug, Clone, Default)]
pub(super) struct Patterns {
    patterns: Vec<Pattern>,
}

/// One line.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Counted from 1.
    pub(super) line: u32,
    /// As it was written.
    pub(super) text: String,
    /// Whether it takes back what an earlier one ignores.
    pub(super) negated: bool,
    directories_only: bool,
    /// Whether it is matched against the path below its file's directory, and not a name alone.
    anchored: bool,
    glob: Glob,
}

impl Patterns {
    /// Reads a file. Nothing in it is an error, as with git: a line that means nothing matches
    /// nothing.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let lines = bytes.split(|byte| *byte == b'\n').zip(1..);
        let patterns = lines.filter_map(|(line, number)| Pattern::parse(line, number));
        Self {
            patterns: patterns.collect(),
        }
    }

    /// The pattern that decides about a path below the file's directory, if one does.
    pub(super) fn decide(
        &self,
        path: &str,
        directory: bool,
        steps: &mut Steps,
    ) -> Result<Option<&Pattern>, Exhausted> {
        for pattern in self.patterns.iter().rev() {
            if pattern.matches(path, directory, steps)? {
                return Ok(Some(pattern));
            }
        }
        Ok(None)
    }
}

impl Pattern {
    /// One line without its end, or `None` for a comment or an empty line.
    pub(super) fn parse(line: &[u8], number: u32) -> Option<Self> {
        if line.is_empty() || line.starts_with(b"#") {
            return None;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // git's lines are C strings.
        let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
        let line = without_trailing_spaces(line);
        let (negated, pattern) = match line {
            [b'!', rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let (directories_only, pattern) = match pattern {
            [rest @ .., b'/'] => (true, rest),
            rest => (false, rest),
        };
        let anchored = pattern.contains(&b'/');
        let pattern = match pattern {
            [b'/', rest @ ..] => rest,
            rest => rest,
        };
        Some(Self {
            line: number,
            text: flightproof_core::escape(line, MAX_SHOWN_BYTES),
            negated,
            directories_only,
            anchored,
            glob: Glob::new(pattern),
        })
    }

    fn matches(&self, path: &str, directory: bool, steps: &mut Steps) -> Result<bool, Exhausted> {
        if self.directories_only && !directory {
            return Ok(false);
        }
        let text = if self.anchored {
            path
        } else {
            path.rsplit('/').next().unwrap_or(path)
        };
        self.glob.matches_within(text.as_bytes(), steps)
    }
}

/// Longest pattern that is shown whole in a report, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// Spaces at the end mean nothing unless a backslash stands before them. Tabs stay.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        let width = match byte {
            b' ' => 0,
            b'\\' if at + 1 == line.len() => return line,
            b'\\' => 2,
            _ => 1,
        };
        at += width.max(1);
        if width > 0 {
            end = at;
        }
    }
    line.get(..end).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decides(file: &str, path: &str, directory: bool) -> Option<bool> {
        let patterns = Patterns::parse(file.as_bytes());
        let decided = patterns.decide(path, directory, &mut Steps::new(u64::MAX));
        decided.unwrap().map(|p| !p.negated)
    }

    #[test]
    fn the_last_line_that_matches_decides() {
        assert_eq!(
            decides("*.log\n!keep.log\n", "keep.log", false),
            Some(false)
        );
        assert_eq!(decides("!keep.log\n*.log\n", "keep.log", false), Some(true));
        assert_eq!(decides("*.log\n", "a.txt", false), None);
    }

    #[test]
    fn a_slash_anchors_unless_it_is_the_last() {
        assert_eq!(decides("/a\n", "b/a", false), None);
        assert_eq!(decides("a\n", "b/a", false), Some(true));
        assert_eq!(decides("b/a\n", "c/b/a", false), None);
        assert_eq!(decides("a/\n", "b/a", true), Some(true));
        assert_eq!(decides("a/\n", "b/a", false), None);
    }

    #[test]
    fn comments_spaces_and_line_ends_are_gits() {
        assert_eq!(decides("#a\n", "#a", false), None);
        assert_eq!(decides("\\#a\r\n", "#a", false), Some(true));
        assert_eq!(decides("a  \n", "a", false), Some(true));
        assert_eq!(decides("a\\ \n", "a ", false), Some(true));
        assert_eq!(decides("\\a  \n", "a", false), Some(true));
        assert_eq!(decides("a\t\n", "a", false), None);
        assert_eq!(decides("\u{feff}a", "a", false), Some(true));
    }

    #[test]
    fn many_stars_cost_no_more_than_their_number_times_the_text() {
        let stars = "a*".repeat(2_000);
        let text = "a".repeat(500);
        let started = std::time::Instant::now();
        assert_eq!(decides(&format!("{stars}b"), &text, false), None);
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn a_set_that_looks_for_its_end_again_and_again_is_read_once() {
        let names = "[:".repeat(524_000);
        let started = std::time::Instant::now();
        assert_eq!(decides(&format!("[{names}x]"), "x", false), Some(true));
        assert_eq!(decides(&format!("[{names}"), "x", false), None);
        assert!(started.elapsed().as_secs() < 5);
        assert_eq!(decides("[[:[:x][[:digit:]]", ":7", false), Some(true));
    }
}
