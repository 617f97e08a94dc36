use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use unicode_normalization::is_nfc;

/// A path inside a tree: relative, `/`-separated, in Unicode NFC, at most 512 bytes.
///
/// What it cannot hold: an empty, `.` or `..` segment; a leading or trailing `/`; a C0 or C1
/// control, DEL, U+FEFF or backslash; a segment that starts with `.prime-agent-staging`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(String);

/// Which rule of [`RelPath`] a text breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    /// No text at all.
    Empty,
    /// More than 512 bytes.
    TooLong,
    /// Starts or ends with `/`.
    OuterSlash,
    /// An empty segment (`a//b`).
    EmptySegment,
    /// A segment `.` or `..`.
    DotSegment,
    /// A control character, DEL, U+FEFF or a backslash.
    ForbiddenCharacter,
    /// Not in Unicode normalisation form C.
    NotNfc,
    /// A segment that starts with the name reserved for staging.
    ReservedSegment,
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::TooLong => "is longer than 512 bytes",
            Self::OuterSlash => "starts or ends with '/'",
            Self::EmptySegment => "has an empty segment",
            Self::DotSegment => "has a '.' or '..' segment",
            Self::ForbiddenCharacter => "has a control character, U+FEFF or a backslash",
            Self::NotNfc => "is not in Unicode NFC",
            Self::ReservedSegment => "has a segment reserved for staging",
        })
    }
}

impl std::error::Error for PathFault {}

impl RelPath {
    /// Longest path in bytes: what both archive formats allow.
    pub const MAX_BYTES: usize = 512;
    /// Names our own staging directories start with.
    pub const RESERVED: &'static str = ".prime-agent-staging";

    /// Checks a text against every rule, C1 controls included.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn new(text: &str) -> Result<Self, PathFault> {
        Self::check(text, true).map(|()| Self(text.to_owned()))
    }

    /// The rules alone. PAAR1 allows C1 controls, everything else does not.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn check(text: &str, refuse_c1: bool) -> Result<(), PathFault> {
        if text.is_empty() {
            return Err(PathFault::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(PathFault::TooLong);
        }
        if text.starts_with('/') || text.ends_with('/') {
            return Err(PathFault::OuterSlash);
        }
        if text.chars().any(|c| is_forbidden(c, refuse_c1)) {
            return Err(PathFault::ForbiddenCharacter);
        }
        text.split('/').try_for_each(check_segment)?;
        if is_nfc(text) {
            Ok(())
        } else {
            Err(PathFault::NotNfc)
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments, outermost first. Never empty.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The last segment.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The directory this path lies in, `None` at the root.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(dir, _)| dir)
    }

    /// Whether this path is `other` or lies below it, by whole segments: `src` covers `src/a` and
    /// not `src2`.
    pub fn is_within(&self, other: &RelPath) -> bool {
        self.0
            .strip_prefix(other.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn is_forbidden(c: char, refuse_c1: bool) -> bool {
    matches!(c, '\0'..='\x1f' | '\x7f' | '\u{feff}' | '\\')
        || (refuse_c1 && matches!(c, '\u{80}'..='\u{9f}'))
}

fn check_segment(segment: &str) -> Result<(), PathFault> {
    match segment {
        "" => Err(PathFault::EmptySegment),
        "." | ".." => Err(PathFault::DotSegment),
        s if s.starts_with(RelPath::RESERVED) => Err(PathFault::ReservedSegment),
        _ => Ok(()),
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::Escaped(self.0.as_bytes()).fmt(f)
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for RelPath {
    type Err = PathFault;
    fn from_str(text: &str) -> Result<Self, PathFault> {
        Self::new(text)
    }
}

impl TryFrom<String> for RelPath {
    type Error = PathFault;
    fn try_from(text: String) -> Result<Self, PathFault> {
        Self::check(&text, true).map(|()| Self(text))
    }
}

impl From<RelPath> for String {
    fn from(value: RelPath) -> String {
        value.0
    }
}

impl AsRef<str> for RelPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Whether text looks the same without the character: Unicode's `Default_Ignorable_Code_Point`. File
/// systems that compare names without regard to case leave such characters out.
pub fn is_default_ignorable(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x34f | 0x61c | 0x3164 | 0xfeff | 0xffa0
            | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x202a..=0x202e | 0x2060..=0x206f | 0xfe00..=0xfe0f | 0xfff0..=0xfff8
            | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_rule_is_named() {
        let long = "a".repeat(513);
        for (text, fault) in [
            ("", PathFault::Empty),
            (long.as_str(), PathFault::TooLong),
            ("/a", PathFault::OuterSlash),
            ("a/", PathFault::OuterSlash),
            ("a//b", PathFault::EmptySegment),
            ("a/../b", PathFault::DotSegment),
            ("./a", PathFault::DotSegment),
            ("a\\b", PathFault::ForbiddenCharacter),
            ("a\0", PathFault::ForbiddenCharacter),
            ("a\x7f", PathFault::ForbiddenCharacter),
            ("a\u{85}", PathFault::ForbiddenCharacter),
            ("\u{feff}a", PathFault::ForbiddenCharacter),
            ("e\u{301}", PathFault::NotNfc),
            (".prime-agent-staging-1/a", PathFault::ReservedSegment),
        ] {
            assert_eq!(RelPath::new(text), Err(fault), "{text:?}");
        }
        assert!(RelPath::check("a\u{85}", false).is_ok());
    }

    #[test]
    fn a_path_covers_whole_segments_only() {
        let p = |s| RelPath::new(s).unwrap();
        assert!(p("src/a").is_within(&p("src")));
        assert!(p("src").is_within(&p("src")));
        assert!(!p("src2/a").is_within(&p("src")));
    }

    proptest! {
        #[test]
        fn what_is_accepted_never_leaves_the_tree(text in "\\PC{0,40}|[./a\\\\]{0,12}") {
            if let Ok(path) = RelPath::new(&text) {
                let joined = std::path::Path::new("/tree").join(path.as_str());
                prop_assert!(joined.starts_with("/tree"));
                prop_assert!(joined.components().all(|c| c != std::path::Component::ParentDir));
            }
        }
    }
}
