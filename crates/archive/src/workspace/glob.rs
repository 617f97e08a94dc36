//! Patterns as git matches them: `?`, `*`, `**`, `[…]` and `\`, over bytes.
//!
//! A matcher that tries every way a star can go is slow on patterns that were made for it. This one
//! keeps the set of places in the pattern it could be at, so a pattern of `p` bytes and a text of `t`
//! bytes cost `p × t` steps at most, whoever wrote the pattern. [`Steps`] bounds what many patterns and
//! many texts cost together.

/// A pattern, ready to be matched against a whole text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    steps: Vec<Step>,
    shape: Shape,
    /// The longest bytes that every match holds, so that most texts need no search.
    needle: Vec<u8>,
    /// What a search costs for each byte of a text, in steps.
    weight: u64,
}

/// Whether a text can be held against it without a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Bytes alone.
    Literal,
    /// A star before bytes.
    Suffix,
    Other,
}

/// How many steps may still be taken. A step is a byte that is compared or a place that is looked at,
/// about a nanosecond.
#[derive(Debug)]
pub(super) struct Steps(u64);

/// There are not as many steps left.
#[derive(Debug)]
pub(super) struct Exhausted;

impl Steps {
    pub(super) const fn new(steps: u64) -> Self {
        Self(steps)
    }

    pub(super) fn add(&mut self, steps: u64) {
        self.0 = self.0.saturating_add(steps);
    }

    pub(super) fn left(&self) -> u64 {
        self.0
    }

    /// Takes them before they are gone.
    fn take(&mut self, steps: u64) -> Result<(), Exhausted> {
        self.0 = self.0.checked_sub(steps).ok_or(Exhausted)?;
        Ok(())
    }
}

/// One thing a pattern asks of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// This byte.
    Byte(u8),
    /// Any byte but a slash.
    Any,
    /// A byte of a set, never a slash.
    Class(Box<Class>),
    /// Any bytes but slashes, none included.
    Star,
    /// Any bytes at all, none included.
    Deep,
    /// What follows, or what comes this many steps later: `**/` is also nothing at all.
    OrSkip(usize),
    /// Nothing: what git calls a malformed set.
    Never,
}

/// The bytes between brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Class {
    negated: bool,
    ranges: Vec<(u8, u8)>,
    named: Vec<Named>,
}

type Named = fn(&u8) -> bool;

impl Glob {
    /// A pattern with a literal beginning. git compares what comes before the first special byte on
    /// its own and then starts its matcher anew, so `a**/b` has a `**` at the beginning, and that
    /// crosses directories.
    pub(super) fn new(pattern: &[u8]) -> Self {
        let literal = literal_length(pattern);
        let (literal, rest) = pattern.split_at(literal);
        let mut steps: Vec<Step> = literal.iter().map(|byte| Step::Byte(*byte)).collect();
        compile(rest, &mut steps);
        let needle = needle(&steps);
        let weight = 1 + steps.iter().map(Step::weight).sum::<u64>();
        let shape = match steps.as_slice() {
            [Step::Star, rest @ ..] if rest.iter().all(is_byte) => Shape::Suffix,
            all if all.iter().all(is_byte) => Shape::Literal,
            _ => Shape::Other,
        };
        Self {
            steps,
            shape,
            needle,
            weight,
        }
    }

    /// Whether the whole text matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.quick(text)
            .unwrap_or_else(|| holds(text, &self.needle) && self.walk(text))
    }

    /// Whether the whole text matches, if there are steps enough to tell.
    pub(super) fn matches_within(&self, text: &[u8], steps: &mut Steps) -> Result<bool, Exhausted> {
        let length = text.len() as u64;
        steps.take(match self.shape {
            Shape::Literal if text.len() == self.steps.len() => 1 + length,
            Shape::Suffix => 1 + length.min(self.steps.len() as u64),
            Shape::Literal | Shape::Other => 1,
        })?;
        if let Some(answer) = self.quick(text) {
            return Ok(answer);
        }
        // Bytes are compared sixteen at a time.
        steps.take(length * (1 + self.needle.len() as u64 / 16))?;
        if !holds(text, &self.needle) {
            return Ok(false);
        }
        steps.take((1 + length).saturating_mul(self.weight))?;
        Ok(self.walk(text))
    }

    /// Whether the text begins with something that matches.
    pub(super) fn begins(&self, text: &[u8]) -> bool {
        holds(text, &self.needle) && self.search(text, true)
    }

    /// The answer where it needs no search: no star at all before the first difference, or one star
    /// before literal bytes.
    fn quick(&self, text: &[u8]) -> Option<bool> {
        match (self.shape, self.steps.as_slice()) {
            (Shape::Suffix, [_, rest @ ..]) => {
                let cut = text.len().checked_sub(rest.len());
                let (start, end) = text.split_at(cut.unwrap_or_default());
                Some(cut.is_some() && !start.contains(&b'/') && rest.iter().zip(end).all(same))
            }
            (Shape::Literal, steps) => {
                Some(steps.len() == text.len() && steps.iter().zip(text).all(same))
            }
            (_, [first @ Step::Byte(_), ..]) if !text.first().is_some_and(|b| same((first, b))) => {
                Some(false)
            }
            _ => None,
        }
    }

    fn walk(&self, text: &[u8]) -> bool {
        self.search(text, false)
    }

    /// Whether the whole text matches or, where a beginning is enough, a part that it begins with.
    fn search(&self, text: &[u8], beginning: bool) -> bool {
        let mut at = vec![false; self.steps.len() + 1];
        let mut next = at.clone();
        let mut open = Vec::new();
        self.enter(&mut at, 0, &mut open);
        for byte in text {
            if beginning && at.last() == Some(&true) {
                return true;
            }
            next.fill(false);
            for (index, step) in self.steps.iter().enumerate() {
                if at.get(index) == Some(&true) {
                    match step {
                        Step::Star if *byte != b'/' => self.enter(&mut next, index, &mut open),
                        Step::Deep => self.enter(&mut next, index, &mut open),
                        step if step.takes(*byte) => self.enter(&mut next, index + 1, &mut open),
                        _ => {}
                    }
                }
            }
            std::mem::swap(&mut at, &mut next);
        }
        at.last() == Some(&true)
    }

    /// Marks a place, and those that are reached from it without a byte. `open` is room for them.
    fn enter(&self, at: &mut [bool], index: usize, open: &mut Vec<usize>) {
        open.push(index);
        while let Some(index) = open.pop() {
            let Some(mark) = at.get_mut(index).filter(|mark| !**mark) else {
                continue;
            };
            *mark = true;
            match self.steps.get(index) {
                Some(Step::Star | Step::Deep) => open.push(index + 1),
                Some(Step::OrSkip(steps)) => open.extend([index + 1, index + steps]),
                _ => {}
            }
        }
    }
}

impl Step {
    /// What looking at it costs.
    fn weight(&self) -> u64 {
        match self {
            Self::Class(class) => 1 + (class.ranges.len() + class.named.len()) as u64,
            _ => 1,
        }
    }

    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(wanted) => *wanted == byte,
            Self::Any => byte != b'/',
            Self::Class(class) => byte != b'/' && class.holds(byte),
            Self::Star | Self::Deep | Self::OrSkip(_) | Self::Never => false,
        }
    }
}

/// The longest run of bytes that stand for themselves, but for those that can be skipped.
fn needle(steps: &[Step]) -> Vec<u8> {
    let mut skipped = 0;
    let runs = steps.split(|step| {
        if let Step::OrSkip(steps) = step {
            skipped = *steps;
        }
        let split = skipped > 0 || !is_byte(step);
        skipped = skipped.saturating_sub(1);
        split
    });
    let longest = runs.max_by_key(|run| run.len()).unwrap_or_default();
    let bytes = longest.iter().filter_map(|step| match step {
        Step::Byte(byte) => Some(*byte),
        _ => None,
    });
    bytes.collect()
}

fn holds(text: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || text.windows(needle.len()).any(|window| window == needle)
}

fn is_byte(step: &Step) -> bool {
    matches!(step, Step::Byte(_))
}

fn same((step, byte): (&Step, &u8)) -> bool {
    step.takes(*byte)
}

impl Class {
    fn holds(&self, byte: u8) -> bool {
        let listed = self.ranges.iter().any(|(a, b)| (*a..=*b).contains(&byte));
        let named = self.named.iter().any(|named| named(&byte));
        (listed || named) != self.negated
    }
}

/// How many bytes a pattern begins with that mean themselves.
fn literal_length(pattern: &[u8]) -> usize {
    let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    pattern.iter().position(special).unwrap_or(pattern.len())
}

fn compile(pattern: &[u8], steps: &mut Vec<Step>) {
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'*' => stars(pattern, rest, steps),
            b'?' => push(steps, Step::Any, after),
            b'[' => match class(after) {
                Some((class, after)) => push(steps, Step::Class(Box::new(class)), after),
                None => push(steps, Step::Never, &[]),
            },
            b'\\' => match after.split_first() {
                Some((byte, after)) => push(steps, Step::Byte(*byte), after),
                None => push(steps, Step::Never, &[]),
            },
            byte => push(steps, Step::Byte(*byte), after),
        };
    }
}

fn push<'a>(steps: &mut Vec<Step>, step: Step, after: &'a [u8]) -> &'a [u8] {
    steps.push(step);
    after
}

/// One or more stars. Two or more cross directories only where they are all that stands between two
/// slashes or ends; elsewhere they are one star.
fn stars<'a>(whole: &[u8], rest: &'a [u8], steps: &mut Vec<Step>) -> &'a [u8] {
    let count = rest.iter().take_while(|byte| **byte == b'*').count();
    let (_, after) = rest.split_at(count);
    let before = whole.len() - rest.len();
    let starts = before == 0 || whole.get(before - 1) == Some(&b'/');
    let ends = matches!(after, [] | [b'/', ..] | [b'\\', b'/', ..]);
    if count == 1 || !starts || !ends {
        steps.push(Step::Star);
        return after;
    }
    if let [b'/', after @ ..] = after {
        steps.extend([Step::OrSkip(3), Step::Deep, Step::Byte(b'/')]);
        return after;
    }
    steps.push(Step::Deep);
    after
}

/// What follows an opening bracket, and what follows its closing one. `None` where git finds no end
/// or an unknown name.
fn class(text: &[u8]) -> Option<(Class, &[u8])> {
    let mut class = Class::default();
    let mut rest = match text {
        [b'!' | b'^', rest @ ..] => {
            class.negated = true;
            rest
        }
        rest => rest,
    };
    // The byte a range may start from, and whether a closing bracket still stands for itself.
    let mut before = None;
    let mut first = true;
    // How many bytes the text has from the closing bracket on that was looked for last.
    let mut tail = usize::MAX;
    loop {
        (before, rest) = match rest {
            [b']', rest @ ..] if !first => return Some((class, rest)),
            [b'\\', byte, rest @ ..] => (class.one(*byte), rest),
            [] | [b'\\'] => return None,
            [b'-', b'\\', end, rest @ ..] if before.is_some() => (class.range(before, *end), rest),
            [b'-', b'\\'] if before.is_some() => return None,
            [b'-', end, rest @ ..] if before.is_some() && *end != b']' => {
                (class.range(before, *end), rest)
            }
            [b'[', colon @ ..] if colon.first() == Some(&b':') => {
                let (_, after) = colon.split_at(1);
                if tail > after.len() {
                    tail = after.len() - after.iter().position(|byte| *byte == b']')?;
                }
                match after.split_at(after.len() - tail) {
                    ([name @ .., b':'], [_, after @ ..]) => {
                        class.named.push(named(name)?);
                        (None, after)
                    }
                    // No name after all: the bracket and the colon are two bytes of the set.
                    _ => (class.one(b'['), colon),
                }
            }
            [byte, rest @ ..] => (class.one(*byte), rest),
        };
        first = false;
    }
}

impl Class {
    fn one(&mut self, byte: u8) -> Option<u8> {
        self.ranges.push((byte, byte));
        Some(byte)
    }

    fn range(&mut self, start: Option<u8>, end: u8) -> Option<u8> {
        self.ranges.push((start?, end));
        None
    }
}

fn named(name: &[u8]) -> Option<Named> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, 0x20..=0x7e),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_needs_no_search_is_what_a_search_would_say(
            pattern in r"[ab/*?\[\]\\]{0,9}",
            text in "[ab/]{0,9}",
        ) {
            let glob = Glob::new(pattern.as_bytes());
            prop_assert_eq!(glob.matches(text.as_bytes()), glob.walk(text.as_bytes()));
        }
    }

    #[test]
    fn the_longest_run_is_looked_for_unless_it_can_be_skipped() {
        let needle = |pattern: &str| Glob::new(pattern.as_bytes()).needle;
        assert_eq!(needle("*-key-*.json"), b".json");
        assert_eq!(needle("a*bc?d"), b"bc");
        assert_eq!(needle("a/**/bcd"), b"bcd");
        assert_eq!(needle("a/**/b"), b"a/");
        assert_eq!(needle("**/"), b"");
        assert_eq!(needle("*"), b"");
    }

    #[test]
    fn classes_have_the_names_and_members_that_git_gives_them() {
        let cases = [
            ("alnum", "0Zz", "-"),
            ("alpha", "Zz", "0"),
            ("blank", " \t", "\nz"),
            ("cntrl", "\u{1}\t", "z"),
            ("digit", "09", "z"),
            ("graph", "!z", " "),
            ("lower", "z", "Z"),
            ("print", " z", "\t"),
            ("punct", "!_", "z"),
            ("space", " \t\n", "z"),
            ("upper", "Z", "z"),
            ("xdigit", "0Ff", "z"),
        ];
        for (name, members, others) in cases {
            let glob = Glob::new(format!("[[:{name}:]]").as_bytes());
            let holds = |byte| glob.matches(&[byte]);
            assert!(members.bytes().all(holds), "{name}");
            assert!(!others.bytes().any(holds), "{name}");
        }
        assert!(!Glob::new(b"[[:other:]]").matches(b"o"));
    }

    #[test]
    fn the_end_of_a_range_may_be_escaped_and_a_range_needs_a_start() {
        let matches = |pattern: &[u8], text: &[u8]| Glob::new(pattern).matches(text);
        assert!(matches(br"[a-\c]", b"b"));
        assert!(!matches(br"[a-\c]", br"\"));
        assert!(matches(br"[-\c]", b"-"));
        assert!(!matches(br"[-\c]", b"b"));
    }
}
