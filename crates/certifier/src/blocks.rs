//! What a line of Rust stands in: brackets, by what opened them, and attributes.
//!
//! Told from tokens alone, so that any text gets some answer. A line that was kept means something
//! else once the `if` around it is gone, the `cfg` above it, or the type its `impl` is for.

use crate::mutation::INERT;
use flightproof_core::{Digest, Hasher};
use std::fmt;

/// A text that grows, and of which only matters whether it is another's. Many brackets stand in one
/// head, and many lines under one attribute: a copy for each would be as large as a stranger likes.
#[derive(Clone, Default)]
struct Spelled(Hasher);

impl Spelled {
    fn add(&mut self, text: &str) {
        self.0.update(text.as_bytes());
    }

    fn digest(&self) -> Digest {
        self.0.clone().finish()
    }
}

impl fmt::Debug for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digest().fmt(f)
    }
}

/// Attributes of one thing, in their order: what they say, and its digest where there are any.
#[derive(Debug, Clone, Default)]
struct Attributes {
    said: Spelled,
    digest: Option<Digest>,
}

impl Attributes {
    fn add(&mut self, attribute: &str) {
        self.said.add(attribute);
        self.digest = Some(self.said.digest());
    }
}

/// What opened a bracket.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// Words of control, a whole `impl`, `trait` or `mod`.
    words: Option<Digest>,
    bracket: Option<char>,
    attributes: Option<Digest>,
}

/// One bracket that was opened. The first of a text is the text itself.
#[derive(Debug, Default)]
pub(crate) struct Block {
    /// The bracket around it.
    pub(crate) parent: usize,
    /// The line it is opened on, from 0.
    pub(crate) line: usize,
    /// Which of that line's.
    pub(crate) nth: usize,
    /// What opened it, with the attributes inside of it.
    pub(crate) says: Opening,
    /// The name of the function whose it is, if it is one's.
    pub(crate) function: Option<Digest>,
}

/// Words that say when, how often or how a block runs.
const CONTROL: &[&str] = &[
    "if", "else", "while", "for", "loop", "match", "unsafe", "async", "try",
];
/// Words of statements in which a comma ends nothing.
const LONG: &[&str] = &[
    "let", "const", "static", "type", "use", "struct", "enum", "union", "where",
];

/// Whether an attribute leaves the code below it as it is. What `test` stands over is run by the harness.
fn is_quiet(attribute: &str) -> bool {
    INERT.contains(&attribute) && !matches!(attribute, "test" | "bench")
}

/// What was read since the last statement, item or element ended.
#[derive(Debug, Default)]
struct Head {
    kind: Kind,
    text: String,
    said: Spelled,
    tokens: usize,
    /// `<` without its `>`, in a head that counts as a whole.
    angles: usize,
    /// A comma ends nothing.
    long: bool,
    attributes: Attributes,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Plain,
    /// `impl`, `trait`, `mod`: all of it counts.
    Whole,
    /// `fn`, and then its name.
    Function,
}

#[derive(Debug, Default)]
struct Level {
    block: usize,
    head: Head,
    /// `{ … }` in the middle of a type: it ends no statement.
    within: bool,
    /// Attributes of what a `}` ended, unless it goes on: `.`, `?`, `else`.
    ended: Option<Attributes>,
    brace: bool,
    /// Attributes of the bracket, those inside of it included.
    own: Attributes,
    /// Within a statement that only declares names.
    declares: bool,
}

/// An attribute that is being read.
#[derive(Debug)]
struct Attribute {
    text: String,
    inner: bool,
    level: usize,
}

/// Reads tokens and knows where it stands.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) all: Vec<Block>,
    outer: Level,
    open: Vec<Level>,
    attribute: Option<Attribute>,
    /// `#` or `#!` was the last token.
    hash: Option<bool>,
    line: usize,
    nth: usize,
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Self {
            all: vec![Block::default()],
            outer: Level::default(),
            open: Vec::new(),
            attribute: None,
            hash: None,
            line: 0,
            nth: 0,
        }
    }

    /// The innermost open bracket.
    pub(crate) fn innermost(&self) -> usize {
        self.level().block
    }

    /// Attributes of the statement or item that has begun, if it has any.
    pub(crate) fn attributes(&self) -> Option<Digest> {
        self.level().head.attributes.digest
    }

    /// Whether an attribute is being read.
    pub(crate) const fn in_attribute(&self) -> bool {
        self.attribute.is_some()
    }

    /// Whether a statement that only declares names has begun.
    pub(crate) fn only_declares(&self) -> bool {
        self.level().only_declares()
    }

    pub(crate) fn begin_line(&mut self, line: usize) {
        (self.line, self.nth) = (line, 0);
    }

    fn level(&self) -> &Level {
        self.open.last().unwrap_or(&self.outer)
    }

    fn level_mut(&mut self) -> &mut Level {
        self.open.last_mut().unwrap_or(&mut self.outer)
    }

    /// A name, keyword, number or lifetime.
    pub(crate) fn word(&mut self, word: &str) {
        self.hash = None;
        if let Some(attribute) = &mut self.attribute {
            attribute.text.push_str(word);
            attribute.text.push(' ');
            return;
        }
        let level = self.level_mut();
        level.goes_on(word == "else");
        level.head.word(word);
    }

    /// An operator.
    pub(crate) fn mark(&mut self, mark: &str) {
        self.hash = match (mark, self.hash) {
            ("#", _) => Some(false),
            ("!", Some(false)) => Some(true),
            _ => None,
        };
        if let Some(attribute) = &mut self.attribute {
            attribute.text.push_str(mark);
            return;
        }
        let level = self.level_mut();
        level.goes_on(mark == "." || mark == "?");
        level.head.mark(mark);
    }

    pub(crate) fn open(&mut self, bracket: char) {
        let attribute = self.hash.take().filter(|_| bracket == '[');
        if self.attribute.is_none()
            && let Some(inner) = attribute
        {
            self.attribute = Some(Attribute {
                text: String::new(),
                inner,
                level: self.open.len(),
            });
        }
        let (line, nth) = (self.line, self.nth);
        self.nth += 1;
        let next = self.all.len();
        let level = self.level_mut();
        level.goes_on(false);
        let (says, function) = level.head.says(bracket);
        let own = level.head.attributes.clone();
        let within = level.head.angles > 0;
        let declares = level.only_declares();
        let brace = bracket == '{';
        let mut head = Head::default();
        if level.head.kind == Kind::Whole && !brace {
            head.kind = Kind::Whole;
        }
        let parent = level.block;
        self.all.push(Block {
            parent,
            line,
            nth,
            says,
            function,
        });
        self.open.push(Level {
            block: next,
            head,
            within,
            brace,
            own,
            declares,
            ended: None,
        });
    }

    pub(crate) fn close(&mut self) {
        self.hash = None;
        let Some(closed) = self.open.pop() else {
            return;
        };
        if let Some(read) = self.attribute.take_if(|a| a.level >= self.open.len()) {
            return self.attributed(read);
        }
        let level = self.level_mut();
        if closed.brace && !closed.within {
            let head = std::mem::take(&mut level.head);
            level.ended = Some(head.attributes);
        } else if closed.head.kind == Kind::Whole {
            level.head.say(&closed.head.text);
        }
    }

    fn attributed(&mut self, read: Attribute) {
        let name = read.text.split([' ', ':', '(', '=']).next();
        if name.is_some_and(is_quiet) {
            return;
        }
        let said = format!("#[{}]", read.text);
        let level = self.level_mut();
        level.goes_on(false);
        if read.inner {
            level.own.add(&said);
            let (block, digest) = (level.block, level.own.digest);
            if let Some(block) = self.all.get_mut(block) {
                block.says.attributes = digest;
            }
        } else {
            level.head.attributes.add(&said);
        }
    }
}

impl Level {
    fn only_declares(&self) -> bool {
        let text = &self.head.text;
        self.declares || text.starts_with("use ") || text.starts_with("type ")
    }

    /// The token after a `}` says whether the statement goes on.
    fn goes_on(&mut self, on: bool) {
        if let Some(attributes) = self.ended.take().filter(|_| on) {
            self.head.attributes = attributes;
        }
    }
}

impl Head {
    fn word(&mut self, word: &str) {
        let first = self.tokens == 0;
        if first && word == "pub" {
            return;
        }
        self.tokens += 1;
        self.long |= LONG.contains(&word);
        match (&self.kind, word) {
            (Kind::Whole, _) => self.say(word),
            (Kind::Function, _) if self.text.is_empty() => self.spell(word),
            (Kind::Function, _) => {}
            (Kind::Plain, "impl" | "trait" | "mod") => {
                self.begin(Kind::Whole);
                self.say(word);
            }
            (Kind::Plain, "fn") => self.begin(Kind::Function),
            (Kind::Plain, _) if CONTROL.contains(&word) => self.say(word),
            (Kind::Plain, "use" | "type") if first => self.say(word),
            (Kind::Plain, _) if first && word.starts_with('\'') => self.say(word),
            (Kind::Plain, _) => {}
        }
    }

    fn mark(&mut self, mark: &str) {
        self.tokens += 1;
        let ends = match mark {
            ";" => true,
            "," => self.kind == Kind::Plain && !self.long,
            _ => false,
        };
        if ends {
            *self = Self::default();
        } else if self.kind == Kind::Whole {
            match mark {
                "<" => self.angles += 1,
                ">" => self.angles = self.angles.saturating_sub(1),
                ">>" => self.angles = self.angles.saturating_sub(2),
                _ => {}
            }
            self.say(mark);
        } else if mark == "=>" {
            self.say(mark);
        }
    }

    fn begin(&mut self, kind: Kind) {
        (self.kind, self.text, self.said) = (kind, String::new(), Spelled::default());
    }

    fn say(&mut self, token: &str) {
        self.spell(token);
        self.spell(" ");
    }

    fn spell(&mut self, part: &str) {
        self.text.push_str(part);
        self.said.add(part);
    }

    /// What opens a bracket now, and the function whose it is.
    fn says(&self, bracket: char) -> (Opening, Option<Digest>) {
        let function = self.kind == Kind::Function;
        let named = function && !self.text.is_empty();
        let opening = Opening {
            words: (!function).then(|| self.said.digest()),
            bracket: Some(bracket),
            attributes: self.attributes.digest,
        };
        (opening, named.then(|| self.said.digest()))
    }
}
