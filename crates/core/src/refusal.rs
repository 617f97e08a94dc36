use crate::Exit;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose fault a refusal is, and so which exit status it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The candidate, or another untrusted input, broke a rule.
    Input,
    /// Evidence, a certificate or a transcript does not fit what it is held against.
    Evidence,
    /// A policy says no.
    Policy,
    /// The caller asked for something that has no meaning.
    Usage,
    /// A plan, a witness, a policy file or a key is wrong.
    Configuration,
    /// The machine lacks something, or something on it failed.
    Environment,
    /// There was nothing to do.
    NothingRan,
    /// A format newer than this program.
    TooNew,
    /// Time ran out for the whole flight.
    Deadline,
    /// Ours: please report it.
    Ours,
}

impl Fault {
    /// Whether it says nothing about what was to be judged, which may be flown again as it is.
    pub const fn stops(self) -> bool {
        matches!(self, Self::Environment | Self::Deadline | Self::Ours)
    }

    /// The exit status a command ends with.
    pub const fn exit(self) -> Exit {
        match self {
            Self::Input => Exit::Refused,
            Self::Evidence => Exit::Mismatch,
            Self::Policy => Exit::Policy,
            Self::Usage => Exit::Usage,
            Self::Configuration => Exit::Configuration,
            Self::Environment => Exit::Environment,
            Self::NothingRan => Exit::NothingRan,
            Self::TooNew => Exit::TooNew,
            Self::Deadline => Exit::Deadline,
            Self::Ours => Exit::OurBug,
        }
    }
}

/// What `flights explain` says about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The full code, `crate/UPPER_SNAKE`.
    pub code: &'static str,
    /// Whose fault it is.
    pub fault: Fault,
    /// What happened, as a sentence.
    pub happened: &'static str,
    /// Why that is refused.
    pub why: &'static str,
    /// What to do about it. Also the hint beside the error.
    pub todo: &'static str,
}

/// A closed set of refusal codes: one enum per crate, made by [`refusal_codes!`](crate::refusal_codes).
pub trait Code: Copy + Eq + fmt::Debug + 'static {
    /// Every code of the set.
    const ALL: &'static [Self];
    /// The explanation, which holds the stable text of the code.
    fn explanation(self) -> &'static Explanation;
}

/// A refusal of one crate: the code, and what exactly was found where. `detail` holds got and
/// expected values, offsets and paths (escaped), never secrets or payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused<C> {
    /// Which rule.
    pub code: C,
    /// What was found, one line, already safe to show.
    pub detail: String,
}

impl<C: Code> Refused<C> {
    /// A refusal with its detail. The detail is escaped here once more, so that a caller that
    /// forgot cannot pass on what a terminal acts on or does not show.
    pub fn new(code: C, detail: impl fmt::Display) -> Self {
        Self {
            code,
            detail: one_line(&detail.to_string()),
        }
    }
}

impl<C: Code> fmt::Display for Refused<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.explanation().code, self.detail)
    }
}

impl<C: Code> std::error::Error for Refused<C> {}

/// A refusal of any crate, as people and reports see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The explanation of its code.
    pub explanation: &'static Explanation,
    /// What was found, one line.
    pub detail: String,
    /// Further lines worth showing, such as compiler diagnostics. Escaped, bounded.
    pub notes: Vec<String>,
}

impl Refusal {
    /// The code, `crate/UPPER_SNAKE`.
    pub fn code(&self) -> &'static str {
        self.explanation.code
    }

    /// The exit status a command ends with.
    pub fn exit(&self) -> Exit {
        self.explanation.fault.exit()
    }

    /// The same refusal with further lines, each escaped and cut to 400 bytes, at most 24, and how many
    /// more there were.
    #[must_use]
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        let mut notes = notes.into_iter();
        let shown = notes.by_ref().take(24);
        self.notes.extend(shown.map(|n| crate::escape(n, 400)));
        match notes.count() {
            0 => {}
            more => self.notes.push(format!("and {more} more")),
        }
        self
    }
}

impl<C: Code> From<Refused<C>> for Refusal {
    fn from(value: Refused<C>) -> Self {
        Self {
            explanation: value.code.explanation(),
            detail: value.detail,
            notes: Vec::new(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.detail)
    }
}

impl std::error::Error for Refusal {}

/// Longest detail in characters: one line of a report.
const MAX_DETAIL: usize = 600;

fn one_line(text: &str) -> String {
    let whole: String = text.chars().take(MAX_DETAIL).collect();
    let shown = crate::plain(&whole);
    let mut out: String = shown.chars().take(MAX_DETAIL).collect();
    if whole.len() < text.len() || out.len() < shown.len() {
        out.push('…');
    }
    out
}

/// Declares the closed set of refusal codes of one crate.
///
/// ```
/// flightproof_core::refusal_codes! {
///     /// Refusals of the example.
///     pub enum ExampleCode in "example" {
///         /// A name is empty.
///         EmptyName = "EMPTY_NAME", Input,
///             "a name is empty", "nothing could be found by it", "give the entry a name";
///     }
/// }
/// use flightproof_core::Code;
/// assert_eq!(ExampleCode::EmptyName.explanation().code, "example/EMPTY_NAME");
/// ```
#[macro_export]
macro_rules! refusal_codes {
    ($(#[$meta:meta])* pub enum $name:ident in $family:literal {
        $($(#[$vmeta:meta])* $variant:ident = $code:literal, $fault:ident, $happened:literal, $why:literal, $todo:literal;)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant,)+ }
        impl $crate::Code for $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];
            fn explanation(self) -> &'static $crate::Explanation {
                match self {
                    $(Self::$variant => {
                        static E: $crate::Explanation = $crate::Explanation {
                            code: concat!($family, "/", $code),
                            fault: $crate::Fault::$fault,
                            happened: $happened, why: $why, todo: $todo,
                        };
                        &E
                    })+
                }
            }
        }
        impl $name {
            /// A refusal with this code.
            pub fn refuse(self, detail: impl ::std::fmt::Display) -> $crate::Refused<Self> {
                $crate::Refused::new(self, detail)
            }
        }
    };
}

#[cfg(test)]
#[expect(
    unreachable_pub,
    reason = "the macro makes public types, and this use of it is private"
)]
mod tests {
    use super::*;

    crate::refusal_codes! {
        /// Test codes.
        pub enum TestCode in "test" {
            /// First.
            First = "FIRST", Input, "it was first", "one must be", "be second";
            /// Second.
            Second = "SECOND", Ours, "it was second", "one must be", "report it";
        }
    }

    #[test]
    fn a_refusal_keeps_code_fault_and_detail() {
        let refusal = Refusal::from(TestCode::First.refuse("path \"a\""));
        assert_eq!(refusal.to_string(), "test/FIRST: path \"a\"");
        assert_eq!(refusal.exit(), Exit::Refused);
        assert_eq!(
            Refusal::from(TestCode::Second.refuse("")).exit(),
            Exit::OurBug
        );
        assert_eq!(TestCode::ALL.len(), 2);
    }

    #[test]
    fn a_detail_is_one_bounded_line() {
        let shown = TestCode::First
            .refuse(format!("a\n\x1b[31m\u{202e}{}", "\u{200b}".repeat(2000)))
            .detail;
        assert!(!shown.contains(['\n', '\x1b', '\u{202e}', '\u{200b}']));
        assert_eq!(shown.chars().count(), MAX_DETAIL + 1);
        assert!(shown.ends_with('…'));
    }
}
