//! What each reason for having no mutant means to whoever wrote the code.

use super::survey::Silence;

impl Silence {
    /// Every reason.
    pub const ALL: [Self; 20] = [
        Self::ConstContext,
        Self::Unsafe,
        Self::TestOnly,
        Self::Macro,
        Self::BuildTime,
        Self::WholeFunction,
        Self::Unviable,
        Self::NoOperator,
        Self::Declaration,
        Self::Pattern,
        Self::Attribute,
        Self::DebugOnly,
        Self::Rebound,
        Self::Removed,
        Self::Effect,
        Self::Manifest,
        Self::CompiledData,
        Self::Conditional,
        Self::CrashOnly,
        Self::NotCompiled,
    ];

    /// The reason of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|reason| reason.name().eq_ignore_ascii_case(name))
    }

    /// What was seen.
    pub const fn seen(self) -> &'static str {
        match self {
            Self::ConstContext => {
                "a constant, static, const fn, discriminant, array length or constant argument changed: the compiler works it out, where no mutant can be switched on"
            }
            Self::Unsafe => "unsafe code changed, which is never mutated",
            Self::TestOnly => {
                "code for tests only changed; the build proves that it is no part of the program"
            }
            Self::Macro => {
                "a macro, or a call of one whose arguments are not known to be expressions, changed"
            }
            Self::BuildTime => {
                "a build script or a procedural macro changed: it runs before any mutant can be selected"
            }
            Self::WholeFunction => {
                "only mutants of the whole function or branch cover the line, and those were made"
            }
            Self::Unviable => "the compiler refused every mutant of a changed place",
            Self::NoOperator => "nothing on a changed line of a function can be mutated",
            Self::Declaration => "a declaration changed: it acts through the code that uses it",
            Self::Pattern => {
                "a pattern of several choices or a range changed, or one whose branch only ends the program: that the branch is taken does not show which part of the pattern took it"
            }
            Self::Attribute => "an attribute changed that may decide what is compiled",
            Self::DebugOnly => {
                "an assertion that does more than compare changed: a release may not contain it"
            }
            Self::Rebound => {
                "a changed declaration gives unchanged lines another meaning: a name, type, import, signature or implementation that they use is another one now, as when a function moves"
            }
            Self::Removed => {
                "a function, method, file or test is gone, and unchanged lines could now find another in its place"
            }
            Self::Effect => {
                "changed code names something that writes files, starts processes, opens connections or sets the environment: no case compares those"
            }
            Self::Manifest => "a key of a manifest changed that decides what is built",
            Self::CompiledData => {
                "data changed that is compiled into the program or read while it is built"
            }
            Self::Conditional => {
                "a declaration changed under a condition of which the text does not say whether this build meets it"
            }
            Self::CrashOnly => {
                "every mutant of a statement that a case noticed ended the program: no answer shows its value"
            }
            Self::NotCompiled => "code changed that no build of the flight compiles",
        }
    }

    /// What the author, or else the witness's owner, can do about it; nothing where nothing is refused.
    pub const fn todo(self) -> Option<&'static str> {
        Some(match self {
            Self::TestOnly | Self::WholeFunction | Self::Declaration => return None,
            Self::ConstContext => {
                "make it a value that a function returns (`fn limit() -> u32 { 20 }`), or have it waived"
            }
            Self::Unsafe | Self::BuildTime => "have it read by a person and waived",
            Self::Macro => {
                "write what the macro does as a function, or the call with plain expressions, or have it waived"
            }
            Self::Unviable => {
                "write the place in simpler steps, such as a value with a name and a type, or have it waived"
            }
            Self::NoOperator => {
                "write the line so that it decides or computes something, or have it waived"
            }
            Self::Pattern => {
                "write an arm for each choice, or compare in a guard, or have it waived"
            }
            Self::Attribute => "leave the attribute to a commit of its own, or have it waived",
            Self::DebugOnly => "use an assertion that stays in every profile, or have it waived",
            Self::Rebound => {
                "there is often no other way to write it: have it waived, one waiver for each place; or leave the declaration as it was and write a new one under a name of its own"
            }
            Self::Removed => {
                "leave it where it is, or have it waived by whoever has read that nothing calls another in its place"
            }
            Self::Effect => {
                "compute the answer and let code that is there already write it, or have it waived"
            }
            Self::Manifest => {
                "leave the key to a commit of its own that a person reads, or have it waived"
            }
            Self::CompiledData => {
                "have it waived by whoever has read the data, or write it as code"
            }
            Self::Conditional => "decide at run time, or have it waived",
            Self::CrashOnly => {
                "ask the witness's owner for a case whose answer depends on the statement, or have it waived"
            }
            Self::NotCompiled => {
                "leave it to a commit of its own, or grant its path with --uncompiled (in a plan: change.uncompiled)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_reason_is_listed_once_and_says_what_to_do_if_it_refuses() {
        let names: BTreeSet<_> = Silence::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Silence::ALL.len());
        for reason in Silence::ALL {
            assert_eq!(Silence::named(reason.name()), Some(reason));
            assert!(!reason.must_be_waived() || reason.todo().is_some());
            // Together they are a note, which is cut at 400 bytes.
            let told = reason.seen().len() + reason.todo().unwrap_or_default().len();
            assert!(told <= 360, "{}: {told}", reason.name());
        }
    }
}
