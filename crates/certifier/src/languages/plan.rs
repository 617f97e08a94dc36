//! All mutants of a change, and the texts that hold them.

use super::Language;
use super::finds::takes_over;
use super::operators::{Found, found};
use super::placebo::{Replacements, canary, placebos};
use super::places::{Around, Places, Statement};
use super::syntax::Syntax;
use super::tokens::{self, Token, Touched};
use super::types;
use crate::classes::compiled_with;
use crate::mutation::{
    Fate, Kill, LineIndex, Mutant, MutationPlan, Silence, Unjudged, Unmutated, id_of,
};
use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Bytes, Digest, RelPath};
use flightproof_evidence::Change;
use std::collections::{BTreeMap, BTreeSet};

/// Most mutants of one change: each is a build, of about a second.
pub(crate) const MAX_BUILDS: usize = 500;

/// The changed files of a language that its build takes in.
pub(super) fn owned(changes: &[Change], language: Language) -> impl Iterator<Item = &Change> {
    let changes = changes.iter();
    changes.filter(move |c| language.owns(&c.path) && !language.leaves_out(&c.path))
}

/// A changed file, read.
#[derive(Debug)]
pub(super) struct Edited<'a> {
    pub(super) path: &'a RelPath,
    pub(super) syntax: Syntax<'a>,
    pub(super) tokens: Vec<Token>,
    pub(super) touched: Touched,
    /// The same of the baseline, if it was there and can be read.
    pub(super) old: Option<(Syntax<'a>, Vec<Token>)>,
}

impl<'a> Edited<'a> {
    /// Reads a change; nothing for a file that is gone.
    ///
    /// # Errors
    /// As [`Syntax::of`].
    pub(super) fn of(
        language: Language,
        change: &'a Change,
    ) -> Result<Option<Self>, CertifierError> {
        let Some(new) = &change.new else {
            return Ok(None);
        };
        let syntax = Syntax::of(language, &change.path, &new.content)?;
        let new = tokens::tokens(&syntax);
        let old = change.old.as_ref();
        // A baseline that cannot be read excuses nothing.
        let old = old.and_then(|old| Syntax::of(language, &change.path, &old.content).ok());
        let old = old.map(|syntax| {
            let tokens = tokens::tokens(&syntax);
            (syntax, tokens)
        });
        let before = old
            .as_ref()
            .map_or(&[][..], |(_, tokens)| tokens.as_slice());
        Ok(Some(Self {
            path: &change.path,
            touched: tokens::touched(before, &new),
            syntax,
            tokens: new,
            old,
        }))
    }

    /// The tokens that were not there before, or stand elsewhere.
    pub(super) fn edited(&self) -> impl Iterator<Item = &Token> {
        let numbers = self.touched.edited.iter();
        numbers.filter_map(|number| self.tokens.get(*number))
    }
}

/// What each mutant, placebo and canary is a text of.
#[derive(Debug, Clone)]
pub(crate) struct Rewrites {
    language: Language,
    texts: BTreeMap<RelPath, String>,
    /// SHA-256 of each.
    sources: BTreeMap<RelPath, Digest>,
    mutants: Vec<Rewrite>,
    placebos: Vec<Rewrite>,
    canaries: Vec<Rewrite>,
    statements: Vec<(RelPath, Statement)>,
    bare: BTreeMap<RelPath, Bytes>,
    /// The same of the baseline's texts, and those as they were.
    bare_before: BTreeMap<RelPath, Bytes>,
    before: BTreeMap<RelPath, Bytes>,
}

/// What stands in the tree for a build that says whether types are only types.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form<'a> {
    pub(crate) texts: &'a BTreeMap<RelPath, Bytes>,
    /// Where these texts come from, for people.
    pub(crate) of: &'static str,
    /// Whether the next form must be the same program; otherwise this must be that of the last.
    pub(crate) leads: bool,
}

#[derive(Debug, Clone)]
struct Rewrite {
    file: RelPath,
    replacements: Replacements,
}

impl Rewrites {
    pub(crate) fn language(&self) -> Language {
        self.language
    }

    /// How many canaries there are.
    pub(crate) fn canaries(&self) -> usize {
        self.canaries.len()
    }

    /// The file that a canary stands in.
    pub(crate) fn canary_of(&self, canary: usize) -> Option<&RelPath> {
        self.canaries.get(canary).map(|rewrite| &rewrite.file)
    }

    /// The changed files without what was taken for types, and the baseline's with it and without, where
    /// there is something of the kind.
    pub(crate) fn forms(&self) -> Vec<Form<'_>> {
        let form = |texts, of, leads| Form { texts, of, leads };
        let forms = [
            form(&self.bare, "the change", false),
            form(&self.before, "the baseline", true),
            form(&self.bare_before, "the baseline", false),
        ];
        forms
            .into_iter()
            .filter(|form| !form.texts.is_empty())
            .collect()
    }

    /// The file with one mutant in it.
    pub(crate) fn mutant(&self, index: usize) -> BTreeMap<RelPath, Bytes> {
        self.laid(self.mutants.get(index))
    }

    /// The file with one placebo in it.
    pub(crate) fn placebo(&self, index: usize) -> BTreeMap<RelPath, Bytes> {
        self.laid(self.placebos.get(index))
    }

    /// The file with one canary in it.
    pub(crate) fn canary(&self, index: usize) -> BTreeMap<RelPath, Bytes> {
        self.laid(self.canaries.get(index))
    }

    fn laid(&self, rewrite: Option<&Rewrite>) -> BTreeMap<RelPath, Bytes> {
        let Some(rewrite) = rewrite else {
            return BTreeMap::new();
        };
        let mut text = self.texts.get(&rewrite.file).cloned().unwrap_or_default();
        for (range, other) in rewrite.replacements.iter().rev() {
            text.replace_range(range.clone(), other);
        }
        BTreeMap::from([(rewrite.file.clone(), Bytes(text.into_bytes()))])
    }

    /// Statements that no mutant can, or could, show to matter by a wrong answer: those whose every
    /// mutant the compiler refused, and those whose every mutant that was noticed ended the program.
    pub(crate) fn weak(&self, plan: &MutationPlan, fates: &BTreeMap<usize, Fate>) -> Vec<Unjudged> {
        let mut weak = Vec::new();
        for (file, statement) in &self.statements {
            let mutants = statement
                .mutants
                .iter()
                .filter_map(|m| Some((m, plan.mutants.get(*m)?)));
            let viable: Vec<_> = mutants.filter(|(_, mutant)| mutant.viable).collect();
            let shown = viable.iter().any(|(index, _)| match fates.get(index) {
                Some(Fate::Killed(Kill::Value)) => true,
                Some(Fate::Killed(_)) => statement.any_kill,
                // Whether a survivor is accepted is decided elsewhere.
                Some(Fate::Survived) => true,
                _ => false,
            });
            let why = match viable.is_empty() {
                true => Silence::Unviable,
                false => Silence::CrashOnly,
            };
            if !shown {
                weak.push(self.unjudged(file, statement.line, why));
            }
        }
        weak
    }

    fn unjudged(&self, file: &RelPath, line: u32, why: Silence) -> Unjudged {
        let source = self.sources.get(file).copied();
        Unjudged {
            file: file.clone(),
            line,
            why,
            what: String::new(),
            source: source.unwrap_or_else(|| Digest::of(&[])),
        }
    }
}

/// Makes every mutant of a change.
///
/// # Errors
/// `MUTANTS_TOO_MANY` beyond [`MAX_BUILDS`], and the refusals of reading a file.
pub(crate) fn plan(
    changes: &[Change],
    tree: &Tree<'_>,
    language: Language,
    seed: [u8; 32],
) -> Result<(MutationPlan, Rewrites), CertifierError> {
    let mut making = Making {
        language,
        seed,
        rewrites: Rewrites {
            language,
            texts: BTreeMap::new(),
            sources: BTreeMap::new(),
            mutants: Vec::new(),
            placebos: Vec::new(),
            canaries: Vec::new(),
            statements: Vec::new(),
            bare: BTreeMap::new(),
            bare_before: BTreeMap::new(),
            before: BTreeMap::new(),
        },
        plan: MutationPlan::of_rewrites(seed, language.operator_set()),
    };
    for change in owned(changes, language) {
        match Edited::of(language, change)? {
            Some(edited) => making.add(&edited, changes, tree)?,
            None => making.gone(change),
        }
    }
    for change in changes {
        making.beside(change, tree);
    }
    let placebos = making.rewrites.placebos.len() as u64;
    making.plan.placebos = (1..=placebos).collect();
    making.plan.unmutated.sort();
    Ok((making.plan, making.rewrites))
}

struct Making {
    language: Language,
    seed: [u8; 32],
    rewrites: Rewrites,
    plan: MutationPlan,
}

impl Making {
    fn add(
        &mut self,
        edited: &Edited<'_>,
        changes: &[Change],
        tree: &Tree<'_>,
    ) -> Result<(), CertifierError> {
        let language = self.language;
        let changed: BTreeSet<&str> = changes.iter().map(|c| c.path.as_str()).collect();
        let others = || {
            tree.files().filter(|(path, _)| {
                let owned = RelPath::new(path).is_ok_and(|path| language.owns(&path));
                owned && !changed.contains(path)
            })
        };
        let used = |name: &str| others().any(|(_, content)| has_word(content, name));
        let readers = ["__doc__", "getdoc", "doctest", "__dict__", "vars", "help"];
        let documents_read = language != Language::Python
            || tree.files().any(|(path, content)| {
                path.ends_with(".py") && readers.iter().any(|word| has_word(content, word))
            });
        let around = Around {
            used: &used,
            documents_read,
        };
        let mut places = Places::of(edited, &around);
        let before = changes.iter().filter_map(|change| {
            let old = change.old.as_ref()?;
            language
                .owns(&change.path)
                .then_some((change.path.as_str(), &old.content[..]))
        });
        let added = changes
            .iter()
            .any(|change| change.path == *edited.path && change.old.is_none());
        if added && takes_over(language, edited.path, others().chain(before)) {
            let first = places.code.first().copied();
            places
                .unjudged
                .insert((first.unwrap_or(1), Silence::Rebound));
        }
        let path = edited.path.clone();
        let text = edited.syntax.text;
        let source = Digest::of(text.as_bytes());
        self.rewrites.texts.insert(path.clone(), text.to_owned());
        self.rewrites.sources.insert(path.clone(), source);
        self.forms(edited);
        if places.code.is_empty() {
            return Ok(());
        }
        let first = self.plan.mutants.len();
        let room = MAX_BUILDS.saturating_sub(first);
        let made = found(&edited.syntax, &places.code, &places.hidden, room);
        if made.len() > room {
            return Err(CertifierCode::MutantsTooMany.refuse(format_args!(
                "{path}: more than {MAX_BUILDS} mutants up to here, each a build"
            )));
        }
        for statement in places.judged(&edited.syntax, &made) {
            let mutants = statement.mutants.iter().map(|m| m + first).collect();
            let statement = Statement {
                mutants,
                ..statement
            };
            self.rewrites.statements.push((path.clone(), statement));
        }
        self.mutants(edited, &made);
        self.silent(&path, &places);
        if self.plan.mutants.len() > first {
            let lines = &places.code;
            let all = placebos(edited, lines, &self.seed).into_iter();
            let rewrite = |replacements| Rewrite {
                file: path.clone(),
                replacements,
            };
            self.rewrites.placebos.extend(all.map(rewrite));
            self.rewrites
                .canaries
                .extend(canary(edited, &self.seed).map(rewrite));
        }
        self.plan.code.insert(path, places.code);
        Ok(())
    }

    fn forms(&mut self, edited: &Edited<'_>) {
        let path = || edited.path.clone();
        let rewrites = &mut self.rewrites;
        if let Some(bare) = types::bare(&edited.syntax) {
            rewrites.bare.insert(path(), Bytes(bare.into_bytes()));
        }
        // What was taken away there is no change only if it was nothing but a type.
        let old = edited.old.as_ref().map(|(old, _)| old);
        if let Some((old, bare)) = old.and_then(|old| Some((old, types::bare(old)?))) {
            rewrites.before.insert(path(), old.text.as_bytes().into());
            rewrites
                .bare_before
                .insert(path(), Bytes(bare.into_bytes()));
        }
    }

    fn mutants(&mut self, edited: &Edited<'_>, made: &[Found]) {
        let index = LineIndex::of(edited.syntax.text);
        let source = Digest::of(edited.syntax.text.as_bytes());
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for found in made {
            let (line, column) = (index.line(found.span.start), index.column(found.span.start));
            let id = id_of(
                edited.path,
                (line, column),
                (found.operator, &found.original, &found.replacement),
                &mut known,
            );
            self.plan.mutants.push(Mutant {
                id,
                selector: self.plan.mutants.len() as u64 + 1,
                file: edited.path.clone(),
                source,
                line,
                column,
                operator: found.operator,
                original: found.original.clone(),
                replacement: found.replacement.clone(),
                function: found.function.clone(),
                viable: true,
                aside: false,
            });
            self.rewrites.mutants.push(Rewrite {
                file: edited.path.clone(),
                replacements: vec![(found.span.clone(), found.text.clone())],
            });
        }
    }

    fn silent(&mut self, path: &RelPath, places: &Places) {
        for (line, why) in &places.unjudged {
            let unjudged = self.rewrites.unjudged(path, *line, *why);
            self.plan.unjudged.insert(unjudged);
        }
        self.plan
            .unmutated
            .extend(places.declared.iter().map(|line| Unmutated {
                file: path.clone(),
                line: *line,
                why: Silence::Declaration,
            }));
    }

    fn gone(&mut self, change: &Change) {
        let source = change.old.as_ref().map(|old| Digest::of(&old.content));
        self.whole(&change.path, Silence::Removed, source);
    }

    /// What is no source of the language, and decides about the program all the same.
    fn beside(&mut self, change: &Change, tree: &Tree<'_>) {
        if self.language.owns(&change.path) {
            return;
        }
        let state = change.new.as_ref().or(change.old.as_ref());
        let source = state.map(|state| Digest::of(&state.content));
        if let Some(why) = compiled_with(self.language, &change.path, tree) {
            self.whole(&change.path, why, source);
        }
    }

    fn whole(&mut self, path: &RelPath, why: Silence, source: Option<Digest>) {
        self.plan.unjudged.insert(Unjudged {
            file: path.clone(),
            line: 0,
            why,
            what: String::new(),
            source: source.unwrap_or_else(|| Digest::of(b"")),
        });
    }
}

/// Whether a text has a word.
fn has_word(content: &[u8], word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    let part = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let mut places = content.windows(word.len()).enumerate();
    places.any(|(at, found)| {
        found == word.as_bytes()
            && !part(at.checked_sub(1).and_then(|before| content.get(before)))
            && !part(content.get(at + word.len()))
    })
}
