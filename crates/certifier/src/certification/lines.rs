//! The classes of the changed lines, and what nothing compiled.

use super::{Certification, Failure};
use crate::classes::{ClassedLine, LineClass, classes};
use crate::judge::Gate;
use crate::population::beside::compiled_data;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Refusal, RelPath, counted};
use flightproof_evidence::Built;
use std::collections::BTreeMap;

impl Certification<'_> {
    /// Lets changes at and below these paths come in though nothing compiles them.
    #[must_use]
    pub fn granting(mut self, uncompiled: &[RelPath]) -> Self {
        self.uncompiled = uncompiled.to_vec();
        self
    }

    /// Every changed line with its class, ordered by file and line. Before a build, Rust files are
    /// taken to be part of the program.
    pub fn lines(&self) -> Vec<ClassedLine> {
        classes(&self.changed, &self.plan)
    }

    /// Takes what the build of the candidate read: source files that it did not read hold nothing to
    /// mutate, and data that it did read is part of the program.
    pub(super) fn read_by(&mut self, built: &Built) -> Result<(), Failure> {
        let Some(reads) = &built.reads else {
            return Ok(());
        };
        let unseen = self.changed.iter().filter(|file| file.is_read_unseen());
        let unseen: Vec<&RelPath> = unseen
            .map(|f| &f.path)
            .filter(|p| reads.contains(p))
            .collect();
        let changes = self.captured.changes.iter();
        let data = changes.filter(|change| unseen.contains(&&change.path));
        let plan = self
            .plan
            .reading(|path| reads.contains(path), data.map(compiled_data));
        self.plan = plan.map_err(|e| Failure {
            gate: Gate::Mutation,
            refusal: e.into(),
        })?;
        Ok(())
    }

    /// Nothing of the change that no build compiles comes in without a grant.
    pub(super) fn uncompiled_granted(&self) -> Result<(), Refusal> {
        let lines = self.lines();
        let open = lines.iter().filter(|line| {
            line.class == LineClass::NotCompiled
                && !self.uncompiled.iter().any(|path| line.file.is_within(path))
        });
        let mut files: BTreeMap<&RelPath, Vec<u32>> = BTreeMap::new();
        for line in open {
            files.entry(&line.file).or_default().push(line.line);
        }
        let Some((file, lines)) = files.first_key_value() else {
            return Ok(());
        };
        let all: usize = files.values().map(Vec::len).sum();
        let first = lines.first().copied().unwrap_or_default();
        let refused: CertifierError = CertifierCode::NotCompiled.refuse(format_args!(
            "{}, such as {file}:{first}",
            counted(all, "changed line")
        ));
        let notes = files
            .iter()
            .map(|(file, lines)| format!("{file}  ({})", counted(lines.len(), "line")));
        Err(Refusal::from(refused).with_notes(notes))
    }
}
