use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use flightproof_core::{Bytes, Digest, RelPath, escape};
use flightproof_evidence::Guard;

use super::attribution::Attribution;
use super::guard::{REACH_SELECTOR, guard};
use super::operator::Operator;
use super::render::{Arm, Rendered, Spot, SpotKind};
use super::source::Surveyed;
use super::survey::{Alternative, Covered, EffectForm, Function, Silence, innermost};
use super::syntax::one_line;
use super::text::{first_item, split_prefix};
use super::twin::Site;
use super::{MAX_CODE_BYTES, MAX_MUTANTS, MAX_SURVEYED};
use crate::population::OPERATOR_SET;
use crate::tokens::with_tokens;
use crate::witness::Waiver;
use crate::{CertifierCode, CertifierError};

/// What mutants are made from. The same input gives the same plan, byte for byte.
#[derive(Debug, Clone)]
pub struct MutationInput {
    /// Every changed `.rs` file, as it is now.
    pub files: Vec<EditedFile>,
    /// Root files of the crates of edition 2015 that hold a changed file, as they are now: there
    /// the guard must be declared. Declaring it in a root of a newer edition changes nothing.
    pub roots: BTreeMap<RelPath, Bytes>,
    /// What changed beside Rust source and decides about the program all the same.
    pub beside: Vec<Unjudged>,
    /// Entropy drawn after the candidate's bytes were fixed. Recorded, so that a replay has it.
    pub seed: [u8; 32],
    /// What the mutants are made for.
    pub purpose: Purpose,
}

/// What mutants are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To judge a change nobody vouches for: the program must not learn which mutant it is, and
    /// what is said to be test-only is proven to be.
    Gate,
    /// To measure tests that are trusted. They are part of the build, so test-only code is left
    /// alone; the guard also tells which mutants a run reaches.
    Survey,
}

impl Purpose {
    /// Most mutants of one plan.
    pub(super) const fn most(self) -> usize {
        match self {
            Self::Gate => MAX_MUTANTS,
            Self::Survey => MAX_SURVEYED,
        }
    }
}

/// One changed file.
#[derive(Debug, Clone)]
pub struct EditedFile {
    /// Where it lies.
    pub path: RelPath,
    /// Its content now.
    pub text: Bytes,
    /// Its content in the baseline, if it was there.
    pub old: Option<Bytes>,
    /// Its changed lines, from 1.
    pub lines: BTreeSet<u32>,
    /// What its manifest makes of it.
    pub role: FileRole,
    /// Features of its package that are on unless somebody turns them off.
    pub features: BTreeSet<String>,
}

/// What a file is compiled into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// The judged program, or tests beside it.
    Program,
    /// Tests, benchmarks or examples, as the package lays them out. Its tripwire proves it.
    Tests,
    /// A build script or a procedural macro: it runs while building, where no mutant is selected.
    BuildTime,
}

/// One mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// Stable and readable: `src/lib.rs:41:12 relational < -> <=`.
    pub id: String,
    /// Selects it at run time. Never 0.
    pub selector: u64,
    /// The file.
    pub file: RelPath,
    /// SHA-256 of the file's content: what a waiver is bound to.
    pub source: Digest,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Its family.
    pub operator: Operator,
    /// What stood there.
    pub original: String,
    /// What stands there instead.
    pub replacement: String,
    /// The function it lies in, as a path of item names; empty outside any.
    pub function: String,
    /// False once the compiler refused it.
    pub viable: bool,
    /// Not asked for: it is neither compiled nor counted.
    pub aside: bool,
}

/// A changed line of code without a mutant of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unmutated {
    /// The file.
    pub file: RelPath,
    /// Line, from 1.
    pub line: u32,
    /// Why.
    pub why: Silence,
}

/// Something that changed and ships, and that no mutant can show to matter. It is refused, unless
/// the witness's owner waives it by its id and the digest of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unjudged {
    /// The file.
    pub file: RelPath,
    /// Line, from 1; 0 for a whole file.
    pub line: u32,
    /// Why.
    pub why: Silence,
    /// What is meant where a line does not say it: the key of a manifest.
    pub what: String,
    /// SHA-256 of the file's content: what a waiver is bound to.
    pub source: Digest,
}

impl Unjudged {
    /// Stable and readable: `src/lib.rs:7 unjudged const-context`.
    pub fn id(&self) -> String {
        let (file, why) = (&self.file, self.why.name());
        let space = if self.what.is_empty() { "" } else { " " };
        match self.line {
            0 => format!("{file} unjudged {why}{space}{}", self.what),
            line => format!("{file}:{line} unjudged {why}{space}{}", self.what),
        }
    }
}

/// All mutants of a change, and the files that hold them.
#[derive(Debug, Clone)]
pub struct MutationPlan {
    /// The crate the mutants are selected through.
    pub guard: Guard,
    /// Every mutant, unviable ones included, ordered by file and place.
    pub mutants: Vec<Mutant>,
    /// Selectors of mutants that change nothing. Whoever notices one looks for mutants.
    pub placebos: Vec<u64>,
    /// Files that replace files of the tree.
    pub overlay: BTreeMap<RelPath, Bytes>,
    /// Changed lines of code without a mutant of their own, ordered.
    pub unmutated: Vec<Unmutated>,
    /// What nothing judges, ordered.
    pub unjudged: BTreeSet<Unjudged>,
    /// Functions without a mutant that compiles, every changed line of which is unjudged by itself: by
    /// file and path of item names.
    pub(super) owned_up: BTreeSet<(RelPath, String)>,
    /// Changed lines of code, by file.
    pub code: BTreeMap<RelPath, BTreeSet<u32>>,
    /// Version of the set of operators.
    pub operator_set: &'static str,
    pub(super) rendered: BTreeMap<RelPath, FileLayout>,
    /// Where mutants stand that can be compared with the original as programs, by index.
    pub(super) sites: BTreeMap<usize, Site>,
    input: MutationInput,
    chosen: Chosen,
}

/// What earlier builds and the caller decided.
#[derive(Debug, Clone, Default)]
struct Chosen {
    /// Mutants the compiler refused.
    dropped: BTreeSet<String>,
    /// Test-only places that turned out to be part of the program.
    opened: BTreeMap<RelPath, BTreeSet<usize>>,
    /// Mutants that were not asked for.
    aside: BTreeSet<String>,
    /// Files that the judged build does not read.
    absent: BTreeSet<RelPath>,
}

/// Where things lie in a rewritten file.
#[derive(Debug, Clone)]
pub(super) struct FileLayout {
    pub(super) rendered: Rendered,
    pub(super) functions: Vec<Function>,
}

impl MutationPlan {
    /// Makes every mutant of a change.
    ///
    /// # Errors
    /// `MUTANTS_TOO_MANY` beyond a limit, and the refusals of [`crate::tokens`] for a file that is
    /// no Rust.
    pub fn new(input: MutationInput) -> Result<Self, CertifierError> {
        Self::build(input, Chosen::default())
    }

    /// An empty plan for mutants that are builds of their own, which have no guard and no program
    /// together.
    pub(crate) fn of_rewrites(seed: [u8; 32], operator_set: &'static str) -> Self {
        let input = MutationInput {
            files: Vec::new(),
            roots: BTreeMap::new(),
            beside: Vec::new(),
            seed,
            purpose: Purpose::Gate,
        };
        Self {
            guard: guard(&seed, Purpose::Gate),
            mutants: Vec::new(),
            placebos: Vec::new(),
            overlay: BTreeMap::new(),
            unmutated: Vec::new(),
            unjudged: BTreeSet::new(),
            owned_up: BTreeSet::new(),
            code: BTreeMap::new(),
            operator_set,
            rendered: BTreeMap::new(),
            sites: BTreeMap::new(),
            chosen: Chosen::default(),
            input,
        }
    }

    /// The same plan after a failed build: without the mutants the compiler refused, and with
    /// mutants in the code it proved to be part of the program.
    ///
    /// # Errors
    /// `SCHEMATA_BROKEN` if nothing was learned, so that another build would fail alike.
    pub fn without(&self, attribution: &Attribution) -> Result<Self, CertifierError> {
        let mut chosen = self.chosen.clone();
        for index in &attribution.unviable {
            let id = self.mutants.get(*index).map(|m| m.id.clone());
            chosen.dropped.extend(id);
        }
        for (path, at) in &attribution.opened {
            chosen.opened.entry(path.clone()).or_default().insert(*at);
        }
        let old = &self.chosen;
        if chosen.dropped == old.dropped && chosen.opened == old.opened {
            let first = attribution.foreign.first();
            return Err(CertifierCode::SchemataBroken.refuse(match first {
                Some(d) => format!(
                    "{}:{}: {}",
                    escape(&d.file, 120),
                    d.line,
                    escape(&d.message, 300)
                ),
                None => "the build failed without an error that names a place".to_owned(),
            }));
        }
        Self::build(self.input.clone(), chosen)
    }

    /// The same plan with only some of its mutants: those whose number in the plan is wanted.
    ///
    /// # Errors
    /// As [`MutationPlan::new`].
    pub fn only(&self, wanted: impl Fn(usize) -> bool) -> Result<Self, CertifierError> {
        let mut chosen = self.chosen.clone();
        let all = self.mutants.iter().enumerate();
        chosen.aside.extend(
            all.filter(|(number, _)| !wanted(*number))
                .map(|(_, mutant)| mutant.id.clone()),
        );
        Self::build(self.input.clone(), chosen)
    }

    /// The same plan after the build of the candidate told which files it read: the others hold
    /// nothing to mutate. `beside` is what else it turned out to read.
    ///
    /// # Errors
    /// As [`MutationPlan::new`].
    pub fn reading(
        &self,
        reads: impl Fn(&RelPath) -> bool,
        beside: impl IntoIterator<Item = Unjudged>,
    ) -> Result<Self, CertifierError> {
        let mut chosen = self.chosen.clone();
        let mut input = self.input.clone();
        input.beside.extend(beside);
        let programs = input.files.iter().filter(|f| f.role == FileRole::Program);
        let absent = programs.filter(|f| !reads(&f.path));
        chosen.absent.extend(absent.map(|f| f.path.clone()));
        // It would come to the same plan.
        if chosen.absent == self.chosen.absent && input.beside.len() == self.input.beside.len() {
            return Ok(self.clone());
        }
        Self::build(input, chosen)
    }

    /// Whether a waiver is for a place that no mutant can judge.
    pub fn is_unjudged(&self, waiver: &Waiver) -> bool {
        let mut places = self.unjudged.iter();
        places.any(|place| waiver.accepts(&place.id(), place.source))
    }

    /// Whether no changed line is code of the program: there is nothing to mutate.
    pub fn is_vacuous(&self) -> bool {
        let judged_elsewhere = |u: &Unmutated| {
            matches!(u.why, Silence::TestOnly | Silence::NotCompiled) || u.why.must_be_waived()
        };
        self.mutants.is_empty() && self.unmutated.iter().all(judged_elsewhere)
    }

    /// Indexes of the mutants the compiler accepts.
    pub fn viable(&self) -> impl Iterator<Item = usize> {
        let all = self.mutants.iter().enumerate();
        all.filter(|(_, m)| m.viable).map(|(index, _)| index)
    }

    /// The text of a changed file.
    pub(super) fn edited(&self, path: &RelPath) -> Option<&str> {
        let file = self.input.files.iter().find(|file| file.path == *path)?;
        std::str::from_utf8(&file.text).ok()
    }

    pub(super) fn seed(&self) -> &[u8; 32] {
        &self.input.seed
    }

    fn build(input: MutationInput, chosen: Chosen) -> Result<Self, CertifierError> {
        let mut plan = Self {
            guard: guard(&input.seed, input.purpose),
            mutants: Vec::new(),
            placebos: Vec::new(),
            overlay: BTreeMap::new(),
            unmutated: Vec::new(),
            unjudged: input.beside.iter().cloned().collect(),
            owned_up: BTreeSet::new(),
            code: BTreeMap::new(),
            operator_set: OPERATOR_SET,
            rendered: BTreeMap::new(),
            sites: BTreeMap::new(),
            chosen,
            input: MutationInput {
                files: Vec::new(),
                ..input
            },
        };
        let mut files = input.files;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        for file in &files {
            plan.add(file)?;
        }
        plan.input.files = files;
        plan.declare_guard()?;
        plan.unmutated.sort();
        Ok(plan)
    }

    fn add(&mut self, file: &EditedFile) -> Result<(), CertifierError> {
        let unopened = BTreeSet::new();
        let opened = self.chosen.opened.get(&file.path).unwrap_or(&unopened);
        let how = (self.guard.name.as_str(), self.input.purpose);
        let Some(mut surveyed) = Surveyed::of(file, opened, how)? else {
            return self.replace_whole(file);
        };
        let absent = self.chosen.absent.contains(&file.path);
        let begun = self.unmutated.len();
        let file = &self.set_apart(file, &surveyed, absent);
        if absent {
            return Ok(());
        }
        if surveyed.survey.overflow {
            return Err(too_many(&file.path, self.input.purpose));
        }
        let first = self.mutants.len();
        self.settle_fallbacks(file, &mut surveyed);
        let mut spots = self.spots(file, &surveyed)?;
        self.unmutated
            .extend(self.silent_lines(file, &surveyed, first));
        self.note_unjudged(file, &surveyed, begun);
        self.note_owned_up(file, &surveyed, (first, begun));
        if self.input.purpose == Purpose::Gate {
            self.note_sites(&surveyed, first);
        }
        if spots.is_empty() {
            return Ok(());
        }
        if self.input.roots.contains_key(&file.path) {
            spots.extend(surveyed.first_item.map(|at| self.declaration(at)));
        }
        let rendered = Rendered::of(
            &surveyed.prefix,
            &surveyed.body,
            &self.guard.name,
            &mut spots,
        );
        self.lay(&file.path, rendered, surveyed.survey.functions)
    }

    /// A fallback is a mutant only once the compiler refused what it stands in for, and nothing
    /// else of its function.
    fn settle_fallbacks(&self, file: &EditedFile, found: &mut Surveyed) {
        let mut known = BTreeMap::new();
        let mut refused = BTreeSet::new();
        let mut living = BTreeSet::new();
        for alternative in alternatives(found) {
            let id = self.mutant(file, found, alternative, &mut known).id;
            let dropped = self.chosen.dropped.contains(&id);
            if dropped && !alternative.operator.hangs_on_types() {
                refused.insert(alternative.function.clone());
            } else if !dropped && !alternative.fallback {
                living.insert(id);
            }
        }
        let mut survey = std::mem::take(&mut found.survey);
        survey.drop_fallbacks(|value| {
            let id = self.mutant(file, found, value, &mut BTreeMap::new()).id;
            refused.contains(&value.function) || living.contains(&id)
        });
        found.survey = survey;
    }

    /// Notes the changed lines that are not compiled, and leaves the others.
    fn set_apart(&mut self, file: &EditedFile, found: &Surveyed, absent: bool) -> EditedFile {
        let code = &found.meant & &file.lines;
        let off = |line: &&u32| absent || found.conditional.off.contains(*line);
        let apart: BTreeSet<u32> = code.iter().filter(off).copied().collect();
        let why = Silence::NotCompiled;
        self.unmutated.extend(apart.iter().map(|line| Unmutated {
            file: file.path.clone(),
            line: *line,
            why,
        }));
        self.code.insert(file.path.clone(), code);
        let examples = &found.examples & &file.lines;
        self.unmutated
            .extend(examples.into_iter().map(|line| Unmutated {
                file: file.path.clone(),
                line,
                why: Silence::TestOnly,
            }));
        EditedFile {
            lines: &file.lines - &apart,
            ..file.clone()
        }
    }

    /// A test-only file that no lexer reads (a fixture that must not compile): the tripwire alone
    /// stands in for it.
    fn replace_whole(&mut self, file: &EditedFile) -> Result<(), CertifierError> {
        let why = Silence::TestOnly;
        self.unmutated
            .extend(file.lines.iter().map(|line| Unmutated {
                file: file.path.clone(),
                line: *line,
                why,
            }));
        let mut spots = [Spot {
            span: 0..0,
            kind: SpotKind::Tripwire,
        }];
        let rendered = Rendered::of("", "", &self.guard.name, &mut spots);
        self.lay(&file.path, rendered, Vec::new())
    }

    fn lay(
        &mut self,
        path: &RelPath,
        rendered: Rendered,
        functions: Vec<Function>,
    ) -> Result<(), CertifierError> {
        if self.overlay.values().map(|b| b.len()).sum::<usize>() + rendered.text.len()
            > 2 * MAX_CODE_BYTES
        {
            return Err(too_many(path, self.input.purpose));
        }
        let text = Bytes::from(rendered.text.as_bytes());
        self.overlay.insert(path.clone(), text);
        let layout = FileLayout {
            rendered,
            functions,
        };
        self.rendered.insert(path.clone(), layout);
        Ok(())
    }

    /// The roots that are not rewritten anyway get the declaration alone.
    fn declare_guard(&mut self) -> Result<(), CertifierError> {
        if self.viable().next().is_none() {
            return Ok(());
        }
        for (path, text) in self.input.roots.clone() {
            if self.overlay.contains_key(&path) {
                continue;
            }
            let Ok(text) = std::str::from_utf8(&text) else {
                continue;
            };
            let (prefix, body) = split_prefix(text);
            let first = with_tokens(&path, body.as_bytes(), |tokens| first_item(&tokens))?;
            if let Some(at) = first {
                let mut spots = [self.declaration(at)];
                let rendered = Rendered::of(prefix, body, &self.guard.name, &mut spots);
                self.lay(&path, rendered, Vec::new())?;
            }
        }
        Ok(())
    }

    fn declaration(&self, at: usize) -> Spot {
        Spot {
            span: at..at,
            kind: SpotKind::Text(format!("extern crate {}; ", self.guard.name)),
        }
    }

    /// Stretches no mutant reaches, at their first changed line, and lines left without a mutant,
    /// from `begun` on.
    fn note_unjudged(&mut self, file: &EditedFile, found: &Surveyed, begun: usize) {
        let source = found.source;
        let unjudged = |line, why| Unjudged {
            file: file.path.clone(),
            line,
            why,
            what: String::new(),
            source,
        };
        let stretches = found.survey.hidden.iter().map(|(range, why)| {
            let lines = found.index.lines(range);
            let line = file.lines.range(lines.clone()).next().copied();
            unjudged(line.unwrap_or(*lines.start()), *why)
        });
        let hidden = found.survey.hidden.iter();
        let covered: Covered = hidden.map(|(r, _)| found.index.lines(r)).collect();
        let silent = self.unmutated.iter().skip(begun);
        let silent = silent.filter(|u| u.why.must_be_waived() && !covered.contains(u.line));
        let all: Vec<_> = silent
            .map(|u| unjudged(u.line, u.why))
            .chain(stretches)
            .collect();
        self.unjudged.extend(all);
    }

    /// Functions that the compiler leaves no mutant of, if nothing of them is covered by somebody
    /// else's: each of their lines must then be waived, and hides nothing.
    fn note_owned_up(
        &mut self,
        file: &EditedFile,
        found: &Surveyed,
        (first, begun): (usize, usize),
    ) {
        let mutants = self.mutants.get(first..).unwrap_or_default();
        let mut lines: BTreeMap<&str, Option<Vec<_>>> = BTreeMap::new();
        for (alternative, mutant) in alternatives(found).zip(mutants) {
            let lines = lines
                .entry(&mutant.function)
                .or_insert_with(|| Some(Vec::new()));
            match lines {
                Some(lines) if !mutant.viable => lines.push(found.index.lines(&alternative.span)),
                _ => *lines = None,
            }
        }
        let places = self.unmutated.iter().skip(begun);
        let places = places.filter(|u| u.why.must_be_waived());
        let unjudged: BTreeSet<u32> = places.map(|u| u.line).collect();
        let judged = &(&file.lines & &found.code) - &unjudged;
        let owned_up: Vec<_> = lines
            .into_iter()
            .filter(|(_, lines)| {
                let judged = |lines: &RangeInclusive<u32>| judged.range(lines.clone()).next();
                let lines = lines.as_ref();
                lines.is_some_and(|lines| lines.iter().all(|lines| judged(lines).is_none()))
            })
            .map(|(function, _)| (file.path.clone(), function.to_owned()))
            .collect();
        self.owned_up.extend(owned_up);
    }

    /// Turns what was found into mutants, and into places of the new text.
    fn spots(&mut self, file: &EditedFile, found: &Surveyed) -> Result<Vec<Spot>, CertifierError> {
        let mut spots = Vec::new();
        let mut known = BTreeMap::new();
        let placebo = self.selector("placebo", file.path.as_str());
        let mut wanted = true;
        for ((start, Reverse(end)), alternatives) in &found.survey.regions {
            let mut arms = self.arms(file, found, alternatives, &mut known)?;
            if !arms.is_empty() && std::mem::take(&mut wanted) {
                let own = found.body.get(*start..*end).unwrap_or_default();
                arms.push(Arm {
                    mutant: None,
                    selector: placebo,
                    code: one_line(own.to_owned()),
                });
            }
            spots.extend((!arms.is_empty()).then_some(Spot {
                span: *start..*end,
                kind: SpotKind::Expression(arms),
            }));
        }
        let regions: Vec<Range<usize>> = spots.iter().map(|s| s.span.clone()).collect();
        let entries = (&found.survey.entries, SpotKind::Entry as Around, "");
        let guards = (&found.survey.guards, SpotKind::Guard as Around, "true");
        for (places, kind, own) in [entries, guards] {
            for (at, alternatives) in places {
                let mut arms = self.arms(file, found, alternatives, &mut known)?;
                if !arms.is_empty() {
                    arms.push(Arm {
                        mutant: None,
                        selector: placebo,
                        code: own.to_owned(),
                    });
                    spots.push(Spot {
                        span: *at..*at,
                        kind: kind(arms),
                    });
                }
            }
        }
        for (at, other) in &found.survey.elses {
            let alternatives = std::slice::from_ref(&other.alternative);
            let arms = self.arms(file, found, alternatives, &mut known)?;
            if arms.is_empty() {
                continue;
            }
            // The same loop, with its other side written down.
            spots.extend(other.looping.clone().map(|span| Spot {
                span,
                kind: SpotKind::Text("loop { if".to_owned()),
            }));
            let kind = match other.looping {
                Some(_) => SpotKind::Leave(arms),
                None => SpotKind::Else(arms),
            };
            let span = *at..*at + 1;
            spots.push(Spot { span, kind });
        }
        // Outside of an expression that starts and ends with it.
        let effects = self.effects(file, found, &mut known)?;
        spots.splice(0..0, effects);
        self.placebos.extend((!spots.is_empty()).then_some(placebo));
        spots.extend(found.fixed_spots(&regions, &file.lines));
        Ok(spots)
    }

    /// A number the candidate cannot guess, and never 0, which selects nothing.
    fn selector(&self, kind: &str, name: &str) -> u64 {
        let digest = Digest::keyed(&self.input.seed, format!("{kind}\0{name}").as_bytes());
        let (first, _) = digest.as_bytes().split_at(8);
        let word = first.try_into().map_or(1, u64::from_le_bytes);
        (word & (REACH_SELECTOR >> 1)).max(1)
    }

    fn effects(
        &mut self,
        file: &EditedFile,
        found: &Surveyed,
        known: &mut BTreeMap<String, usize>,
    ) -> Result<Vec<Spot>, CertifierError> {
        let mut spots = Vec::new();
        for ((start, Reverse(end)), effect) in &found.survey.effects {
            let arms = self.arms(
                file,
                found,
                std::slice::from_ref(&effect.alternative),
                known,
            )?;
            let kind = match effect.form {
                EffectForm::Statement => SpotKind::Statement,
                EffectForm::UnusedValue => SpotKind::UnusedValue,
            };
            spots.extend((!arms.is_empty()).then(|| Spot {
                span: *start..*end,
                kind: kind(arms),
            }));
        }
        Ok(spots)
    }

    fn arms(
        &mut self,
        file: &EditedFile,
        found: &Surveyed,
        alternatives: &[Alternative],
        known: &mut BTreeMap<String, usize>,
    ) -> Result<Vec<Arm>, CertifierError> {
        let mut arms = Vec::new();
        for alternative in alternatives {
            if self.mutants.len() >= self.input.purpose.most() {
                return Err(too_many(&file.path, self.input.purpose));
            }
            let mutant = self.mutant(file, found, alternative, known);
            if mutant.viable {
                arms.push(Arm {
                    mutant: Some(self.mutants.len()),
                    selector: mutant.selector,
                    code: alternative.code.clone(),
                });
            }
            self.mutants.push(mutant);
        }
        Ok(arms)
    }

    fn mutant(
        &self,
        file: &EditedFile,
        found: &Surveyed,
        from: &Alternative,
        known: &mut BTreeMap<String, usize>,
    ) -> Mutant {
        let (line, column) = (found.index.line(from.at), found.index.column(from.at));
        let id = id_of(
            &file.path,
            (line, column),
            (from.operator, &from.original, &from.replacement),
            known,
        );
        Mutant {
            selector: self.selector("mutant", &id),
            viable: !self.chosen.dropped.contains(&id) && !self.chosen.aside.contains(&id),
            aside: self.chosen.aside.contains(&id),
            id,
            file: file.path.clone(),
            source: found.source,
            line,
            column,
            operator: from.operator,
            original: from.original.clone(),
            replacement: from.replacement.clone(),
            function: from.function.clone(),
        }
    }

    /// The changed lines of code that no living mutant below the size of a function or branch touches.
    fn silent_lines(&self, file: &EditedFile, found: &Surveyed, first: usize) -> Vec<Unmutated> {
        let (mut living, mut lost, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let mutants = self.mutants.get(first..).unwrap_or_default();
        for (alternative, mutant) in alternatives(found).zip(mutants) {
            let lines = found.index.lines(&alternative.span);
            match (mutant.viable || mutant.aside, mutant.operator) {
                (true, Operator::FunctionValue | Operator::Branch) => whole.push(lines),
                (true, _) => living.push(lines),
                (false, _) if alternative.guessed => {}
                (false, operator) if operator.hangs_on_types() => {}
                (false, _) => lost.push(lines),
            }
        }
        let [living, lost, whole] = [living, lost, whole].map(Covered::from_iter);
        let functions = found.survey.functions.iter();
        let functions: Covered = functions.map(|f| found.index.lines(&f.body)).collect();
        let changed = &found.code & &file.lines;
        let reasons = innermost(&found.survey.silences, &found.index, &changed);
        let silent = changed.iter().filter(|line| !living.contains(**line));
        silent
            .map(|line| Unmutated {
                file: file.path.clone(),
                line: *line,
                why: match reasons.get(line) {
                    Some(why) => *why,
                    None if lost.contains(*line) => Silence::Unviable,
                    // A mutant would show that the build has it.
                    None if found.conditional.unknown.contains(line) => Silence::Conditional,
                    None if whole.contains(*line) => Silence::WholeFunction,
                    None if functions.contains(*line) => Silence::NoOperator,
                    None => Silence::Declaration,
                },
            })
            .collect()
    }
}

/// How alternatives become a place of the text.
type Around = fn(Vec<Arm>) -> SpotKind;

/// A mutant's id; one that another has already gets a number.
pub(crate) fn id_of(
    file: &RelPath,
    (line, column): (u32, u32),
    (operator, original, replacement): (Operator, &str, &str),
    known: &mut BTreeMap<String, usize>,
) -> String {
    let (file, name) = (file.as_str(), operator.name());
    let id = format!("{file}:{line}:{column} {name} {original} -> {replacement}");
    let times = known.entry(id.clone()).or_insert(0);
    *times += 1;
    match *times {
        1 => id,
        times => format!("{id} #{times}"),
    }
}

/// All alternatives, in the order in which they became mutants.
fn alternatives(found: &Surveyed) -> impl Iterator<Item = &Alternative> {
    let survey = &found.survey;
    let expressions = survey.regions.values().chain(survey.entries.values());
    let expressions = expressions.chain(survey.guards.values());
    expressions
        .flatten()
        .chain(survey.elses.values().map(|other| &other.alternative))
        .chain(survey.effects.values().map(|effect| &effect.alternative))
}

fn too_many(path: &RelPath, purpose: Purpose) -> CertifierError {
    let most = purpose.most();
    CertifierCode::MutantsTooMany.refuse(format_args!(
        "{path}: more than {most} mutants or {MAX_CODE_BYTES} bytes of them up to here"
    ))
}
