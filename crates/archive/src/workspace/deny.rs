//! What never leaves a working directory: credentials, by name and by how a file begins.

use super::glob::Glob;
use crate::names::fold;

/// The list this program comes with. See the head of the file for its grammar.
pub(super) const LIST: &str = include_str!("../deny.txt");

/// A list of rules, in one order: the last rule that matches decides.
#[derive(Debug, Clone)]
pub(super) struct DenyList {
    names: Vec<Rule>,
    beginnings: Vec<String>,
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
        let mut list = Self {
            names: Vec::new(),
            beginnings: Vec::new(),
        };
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.strip_prefix(BEGINS) {
                Some(beginning) => list.beginnings.push(beginning.trim().to_owned()),
                None => list.add(line)?,
            }
        }
        Ok(list)
    }

    /// One more pattern of names, which decides before all that stand there.
    pub(super) fn add(&mut self, line: &str) -> Result<(), NoRule> {
        self.names.push(Rule::parse(line)?);
        Ok(())
    }

    /// The pattern that denies a path, if one does.
    pub(super) fn denies(&self, path: &str, directory: bool) -> Option<&str> {
        let folded: Vec<String> = path.split('/').map(fold).collect();
        let mut rules = self.names.iter().rev();
        let rule = rules.find(|rule| rule.matches(&folded, directory))?;
        (!rule.spared).then_some(rule.text.as_str())
    }

    /// The beginning that denies a file, if one does: `head` is its first bytes.
    pub(super) fn denies_content(&self, head: &[u8]) -> Option<String> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let line = head.trim_ascii_start().split(|b| *b == b'\n').next()?;
        let mut beginnings = self.beginnings.iter();
        let found =
            beginnings.find(|text| Glob::new(text.as_bytes()).matches(line.trim_ascii_end()));
        found.map(|text| format!("{BEGINS}{text}"))
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, NoRule> {
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
        Ok(Self {
            text: line.to_owned(),
            spared,
            directory,
            segments: segments.len(),
            glob: Glob::new(folded.join("/").as_bytes()),
        })
    }

    fn matches(&self, folded: &[String], directory: bool) -> bool {
        if self.directory != directory {
            return false;
        }
        let start = folded.len().checked_sub(self.segments);
        let end = start.and_then(|start| folded.get(start..));
        end.is_some_and(|end| match end {
            [name] => self.glob.matches(name.as_bytes()),
            names => self.glob.matches(names.join("/").as_bytes()),
        })
    }
}

/// Names or paths a caller admits although they are denied.
#[derive(Debug, Clone)]
pub(super) struct AdmitList(DenyList);

impl AdmitList {
    pub(super) fn new(patterns: &[String]) -> Result<Self, NoRule> {
        let mut list = DenyList {
            names: Vec::new(),
            beginnings: Vec::new(),
        };
        for pattern in patterns {
            list.add(pattern)?;
        }
        Ok(Self(list))
    }

    /// The pattern that admits a path, if one does.
    pub(super) fn admits(&self, path: &str, directory: bool) -> Option<&str> {
        self.0.denies(path, directory)
    }
}

/// How a rule about content begins.
const BEGINS: &str = "begins: ";
