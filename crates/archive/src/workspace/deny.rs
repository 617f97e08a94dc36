//! What never leaves a working directory: credentials, by name and by how a file begins.

use super::copies::originals;
use super::glob::Glob;
use crate::names::fold;
use std::borrow::Cow;
use std::collections::HashMap;

/// The list this program comes with. See the head of the file for its grammar.
pub(super) const LIST: &str = include_str!("../deny.txt");

/// A list of rules, in one order: the last rule that matches decides.
#[derive(Debug, Clone, Default)]
pub(super) struct DenyList {
    names: Vec<Rule>,
    /// Places in `names`, so that a file is held against the few rules that its name can match.
    index: Index,
    /// The most segments a rule has: how much of the end of a path counts.
    longest: usize,
    beginnings: Vec<(String, Glob)>,
}

/// Rules by what they ask of the last segment of a path.
#[derive(Debug, Clone, Default)]
struct Index {
    /// It is exactly this.
    exact: HashMap<String, Vec<usize>>,
    /// It ends like this.
    ends: Vec<(String, usize)>,
    /// Anything else.
    other: Vec<usize>,
}

/// One pattern of names.
#[derive(Debug, Clone)]
struct Rule {
    text: String,
    /// Whether it is an exception, such as a template.
    spared: bool,
    directory: bool,
    /// How many segments of the end of a path it is matched against.
    segments: usize,
    glob: Glob,
}

/// Why a line is no rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRule(pub(super) String);

impl DenyList {
    /// The list of a text: one rule a line, `#` for comments.
    pub(super) fn parse(text: &str) -> Result<Self, NoRule> {
        let mut list = Self::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.strip_prefix(BEGINS) {
                Some(beginning) => {
                    let beginning = beginning.trim();
                    let glob = Glob::new(beginning.as_bytes());
                    list.beginnings.push((beginning.to_owned(), glob));
                }
                None => list.add(line)?,
            }
        }
        Ok(list)
    }

    /// One more pattern of names, which decides before all that stand there.
    pub(super) fn add(&mut self, line: &str) -> Result<(), NoRule> {
        let (rule, last) = Rule::parse(line)?;
        let place = self.names.len();
        match last.strip_prefix('*') {
            _ if is_literal(&last) => self.index.exact.entry(last).or_default().push(place),
            Some(end) if is_literal(end) => self.index.ends.push((end.to_owned(), place)),
            _ => self.index.other.push(place),
        }
        self.longest = self.longest.max(rule.segments);
        self.names.push(rule);
        Ok(())
    }

    /// The pattern that denies a path, or what it is a copy of, if one does.
    pub(super) fn denies(&self, path: &str, directory: bool) -> Option<&str> {
        let (above, name) = self.end(path)?;
        let names = originals(&name);
        let denied = |above: &[String]| {
            let mut found = names
                .iter()
                .map(|name| self.denies_as(above, name, directory));
            found.find_map(|rule| rule)
        };
        denied(&above).or_else(|| {
            let origin = |name: &String| originals(name).pop().unwrap_or_default().to_owned();
            let origins: Vec<String> = above.iter().map(origin).collect();
            denied(&origins).filter(|_| origins != above)
        })
    }

    /// The pattern that names a path itself, if one does.
    fn names_exactly(&self, path: &str, directory: bool) -> Option<&str> {
        let (above, name) = self.end(path)?;
        self.denies_as(&above, &name, directory)
    }

    /// Of a path what rules ask for, folded: the segments above the last one, and that.
    fn end(&self, path: &str) -> Option<(Vec<String>, String)> {
        let mut end: Vec<String> = path.rsplit('/').take(self.longest).map(fold).collect();
        end.reverse();
        let name = end.pop()?;
        Some((end, name))
    }

    fn denies_as(&self, above: &[String], name: &str, directory: bool) -> Option<&str> {
        let index = &self.index;
        let exact = index.exact.get(name).into_iter().flatten();
        let ends = index
            .ends
            .iter()
            .filter(|(end, _)| name.ends_with(end.as_str()));
        let places = exact
            .chain(ends.map(|(_, place)| place))
            .chain(&index.other);
        let mut last: Option<(usize, &Rule)> = None;
        for place in places {
            let later = last.is_none_or(|(best, _)| *place > best);
            let rule = self.names.get(*place).filter(|_| later);
            if let Some(rule) = rule.filter(|rule| rule.matches(above, name, directory)) {
                last = Some((*place, rule));
            }
        }
        let (_, rule) = last?;
        (!rule.spared).then_some(rule.text.as_str())
    }

    /// The beginning that denies a file, if one does: `head` is its first bytes. Keys stand behind
    /// notes, certificates and curve parameters, and a block whose end is missing hides none.
    pub(super) fn denies_content(&self, head: &[u8]) -> Option<String> {
        let text = plain(head);
        let mut block = false;
        for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = trim(line);
            if let Some(rule) = self.begins(line) {
                return Some(rule);
            }
            if block {
                block = !line.starts_with(b"-----END ") && !line.starts_with(b"---- END ");
            } else if is_block(line) {
                block = true;
            } else if !line.is_empty() && !is_note(line) {
                return None;
            }
        }
        None
    }

    fn begins(&self, line: &[u8]) -> Option<String> {
        let mut beginnings = self.beginnings.iter();
        let (text, _) = beginnings.find(|(_, glob)| glob.begins(line))?;
        Some(format!("{BEGINS}{text}"))
    }
}

/// The text without a byte order mark; of UTF-16, what is ASCII in it.
fn plain(head: &[u8]) -> Cow<'_, [u8]> {
    match head {
        [0xff, 0xfe, rest @ ..] | [0xfe, 0xff, rest @ ..] => {
            rest.iter().copied().filter(|byte| *byte != 0).collect()
        }
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(rest),
        _ => Cow::Borrowed(head),
    }
}

/// A line without blanks and control characters around it, vertical tabs among them.
fn trim(line: &[u8]) -> &[u8] {
    let seen = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    let start = line.iter().position(seen).unwrap_or(line.len());
    let end = line.iter().rposition(seen).map_or(start, |last| last + 1);
    line.get(start..end).unwrap_or_default()
}

/// Whether a block begins. One that a rule names was found before.
fn is_block(line: &[u8]) -> bool {
    line.starts_with(b"-----BEGIN ") || line.starts_with(b"---- BEGIN ")
}

/// A comment, or an attribute that tools print before a block.
fn is_note(line: &[u8]) -> bool {
    let attribute = [
        &b"Bag Attributes"[..],
        b"Key Attributes",
        b"friendlyName:",
        b"localKeyID:",
        b"subject=",
        b"issuer=",
    ];
    matches!(line, [b'#' | b';', ..]) || attribute.iter().any(|known| line.starts_with(known))
}

impl Rule {
    /// The rule, and what it asks of the last segment.
    fn parse(line: &str) -> Result<(Self, String), NoRule> {
        let (spared, pattern) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (directory, pattern) = match pattern.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let segments: Vec<&str> = pattern.split('/').collect();
        if segments.iter().any(|s| s.is_empty() || *s == "**") {
            return Err(NoRule(line.to_owned()));
        }
        let folded: Vec<String> = segments.iter().map(|s| fold(s)).collect();
        let rule = Self {
            text: line.to_owned(),
            spared,
            directory,
            segments: segments.len(),
            glob: Glob::new(folded.join("/").as_bytes()),
        };
        Ok((rule, folded.last().cloned().unwrap_or_default()))
    }

    /// `name` is the last segment, `above` what stands before it; all folded.
    fn matches(&self, above: &[String], name: &str, directory: bool) -> bool {
        if self.directory != directory {
            return false;
        }
        if self.segments == 1 {
            return self.glob.matches(name.as_bytes());
        }
        let Some(first) = (above.len() + 1).checked_sub(self.segments) else {
            return false;
        };
        let end: Vec<&str> = above.iter().skip(first).map(String::as_str).collect();
        self.glob
            .matches(format!("{}/{name}", end.join("/")).as_bytes())
    }
}

/// Names or paths a caller admits although they are denied.
#[derive(Debug, Clone, Default)]
pub(super) struct AdmitList(DenyList);

impl AdmitList {
    pub(super) fn new(patterns: &[String]) -> Result<Self, NoRule> {
        let mut list = DenyList::default();
        for pattern in patterns {
            list.add(pattern)?;
        }
        Ok(Self(list))
    }

    /// The pattern that admits a path, if one does. A copy of what is admitted is not.
    pub(super) fn admits(&self, path: &str, directory: bool) -> Option<&str> {
        self.0.names_exactly(path, directory)
    }
}

/// Whether a pattern stands for itself.
fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', '\\'])
}

/// How a rule about content begins.
const BEGINS: &str = "begins: ";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl DenyList {
        /// What [`DenyList::denies`] must say, found without its index.
        fn denies_slowly(&self, path: &str, directory: bool) -> Option<&str> {
            let mut above: Vec<String> = path.split('/').map(fold).collect();
            let name = above.pop().unwrap();
            let mut rules = self.names.iter().rev();
            let rule = rules.find(|rule| rule.matches(&above, &name, directory))?;
            (!rule.spared).then_some(rule.text.as_str())
        }
    }

    proptest! {
        #[test]
        fn the_index_leaves_no_rule_out(
            path in "([.a-cA-C_*]{0,3}/){0,2}[.a-cA-C_*?]{1,4}",
            rules in proptest::collection::vec("!?([a-c*]{1,2}/)?[.a-c_*?]{1,4}/?", 1..8),
            directory in any::<bool>(),
        ) {
            let mut list = DenyList::default();
            for rule in &rules {
                let _ = list.add(rule);
            }
            prop_assert_eq!(list.names_exactly(&path, directory), list.denies_slowly(&path, directory));
        }
    }

    #[test]
    fn the_index_leaves_no_rule_of_our_list_out() {
        let list = DenyList::parse(LIST).unwrap();
        let mut denied = 0;
        for rule in &list.names {
            for stem in ["", "x", "X", ".ssh/", "a/b/"] {
                let name = rule
                    .text
                    .trim_start_matches('!')
                    .trim_end_matches('/')
                    .replace(['*', '?'], "x");
                for path in [
                    format!("{stem}{name}"),
                    format!("{stem}{name}").to_uppercase(),
                ] {
                    for directory in [false, true] {
                        let found = list.names_exactly(&path, directory);
                        assert_eq!(found, list.denies_slowly(&path, directory), "{path}");
                        denied += usize::from(found.is_some());
                    }
                }
            }
        }
        assert!(denied > 100, "{denied}");
    }
}
