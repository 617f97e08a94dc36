//! The loop: an attempt is flown, its commit is judged, and what was refused goes back.

use super::report::{AttemptReport, Report};
use super::room::{RoomOutcome, SealedRoom, Way};
use super::sortie::{Sortie, credential, new_key};
use crate::flight::{self, Flown, Proven, needed};
use crate::show::Progress;
use crate::{log, state};
use flightproof_agent::proxy::{Dial, Gate, TcpLoopback};
use flightproof_agent::repair::{Ask, Proposal, Told};
use flightproof_agent::run::State;
use flightproof_agent::{
    Accounting, AgentCode, AgentRefusal, Launch, LedgerHolds, LoopEnd, Metering, Pilot, RunKey,
    Task, Tokens,
};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::feedback::Missed;
use flightproof_certifier::spend::{self, RunSpend, TokenCounts};
use flightproof_core::{Code, Digest, Exit, Fault, MicroUsd, Refusal, Verdict};
use flightproof_evidence::Captured;
use flightproof_frame::protocol::{PROVIDER_PORT, layout};
use flightproof_ledger::Name;
use std::collections::BTreeMap;

/// What one provider request is taken to cost at least, a tenth of a cent: a program whose own budget
/// fails comes to the end of its hold.
const REQUEST_CHARGE: u64 = 1_000;

/// Why a flight ended without a certificate, and where.
struct Stop {
    stage: &'static str,
    refusal: Refusal,
}

/// What a certified commit came to.
struct Certified {
    verdict: Verdict,
}

impl Sortie<'_> {
    /// Flies attempts until one is certified or there is no further one. Returns also the digest of the
    /// unsigned certificate, if it came to one. What cannot be recorded fails the flight.
    pub fn fly(mut self, progress: &mut Progress) -> (Report, Option<Digest>) {
        let mut attempts = Vec::new();
        let flown = self.run(&mut attempts, progress);
        let word = match &flown {
            Ok(_) => "held",
            Err(stop) => stop.refusal.code(),
        };
        let (predicate, key) = (self.predicate.filter(|_| flown.is_ok()), self.asked.key);
        let ended = match self.tape.finish(word, predicate, key) {
            Ok(()) => flown,
            Err(refusal) => Err(at_agent(refusal)),
        };
        let came_to = match ended {
            Ok(certified) => (certified.verdict, Exit::Passed),
            Err(stop) => (
                Verdict::refused(stop.stage, &stop.refusal),
                stop.refusal.exit(),
            ),
        };
        let report = Report::new(self.name, &self.asked.plan.name, attempts, came_to);
        (report, predicate)
    }

    fn run(
        &mut self,
        attempts: &mut Vec<AttemptReport>,
        progress: &mut Progress,
    ) -> Result<Certified, Stop> {
        let mut last: Option<Stop> = None;
        let mut certified = None;
        let end = loop {
            let told = match self.repair.ask().clone() {
                Ask::End(end) => break end,
                Ask::Propose { attempt, feedback } => {
                    let told = self.propose(attempt, feedback, attempts, progress)?;
                    told.map_err(|(told, stop)| {
                        last = Some(stop);
                        told
                    })
                }
                Ask::Certify { attempt, .. } => match self.judge(attempt, progress) {
                    Ok(done) => {
                        certified = Some(done);
                        Ok(Told::Certified)
                    }
                    Err(stop) => {
                        let stop = self.logged(stop, attempts.last());
                        let missed = progress.seen.missed.take();
                        let told = self.told_of_judgement(&stop.refusal, missed.as_ref());
                        last = Some(stop);
                        Err(told)
                    }
                },
            };
            if let (Err(_), Some(report), Some(stop)) = (&told, attempts.last_mut(), &last) {
                report.code = Some(stop.refusal.code());
                report.detail = Some(stop.refusal.detail.clone());
            }
            let (Ok(told) | Err(told)) = told;
            self.repair.tell(told).map_err(ours)?;
            self.note_repetition(attempts);
            self.store(None)?;
        };
        self.store(Some(LoopEnd::Ended(end)))?;
        match (certified, self.repair.refusal()) {
            (Some(certified), _) => Ok(certified),
            (None, Some(refused)) => Err(Stop {
                stage: "agent",
                refusal: Refusal::from(refused).with_notes(attempts.iter().map(note)),
            }),
            (None, None) => Err(last.unwrap_or_else(|| {
                ours(AgentCode::OutOfTurn.refuse("the loop stopped without a reason"))
            })),
        }
    }

    /// One attempt of the agent. The inner error is told to the loop, the outer one ends this driver
    /// and leaves the loop to be recovered.
    fn propose(
        &mut self,
        attempt: u32,
        feedback: Option<String>,
        attempts: &mut Vec<AttemptReport>,
        progress: &mut Progress,
    ) -> Result<Result<Told, (Told, Stop)>, Stop> {
        progress.begin("agent");
        let run = new_key(&mut self.tape).map_err(at_agent)?;
        self.record.runs.push(run.clone());
        self.store(None)?;
        let launch = self.launch(&run, feedback.as_deref())?;
        let (flown, room) = self.pilot(&run, &launch)?;
        let report = match flown {
            Ok(report) => report,
            Err(refused) => return Err(at_agent(with_trouble(refused, &room))),
        };
        let line = self.report(attempt, &run, &report, &room);
        self.count(&line, report.accounting.as_ref());
        attempts.push(line);
        let Some(captured) = room.captured.as_ref().filter(|_| report.proposed()) else {
            let refused = report.refused.clone();
            let refused = refused.unwrap_or_else(|| AgentCode::Interrupted.refuse("no proposal"));
            let told = match (&room.trouble, report.failure()) {
                (Some(trouble), Some(Told::RunFailed(_))) => told_of_run(trouble),
                (_, Some(told)) => told,
                (_, None) => Told::RunStopped(String::new()),
            };
            let stop = at_agent(with_trouble(refused, &room));
            return Ok(Err((told, stop)));
        };
        if let Some(line) = attempts.last() {
            progress.done(format_args!(
                "attempt {attempt}: {}",
                summary(line, captured)
            ));
        }
        self.keep_bundle()?;
        Ok(Ok(Told::Proposed(Proposal {
            commit: captured.head,
            tree: captured.snapshot,
        })))
    }

    fn launch(&self, run: &RunKey, feedback: Option<&str>) -> Result<Launch, Stop> {
        let plan = &self.asked.plan.agent;
        let task = Task {
            text: &plan.task,
            model: &plan.model,
            tools: &plan.tools,
            instructions: &self.instructions,
            feedback,
        };
        let inside = match plan.endpoints.is_empty() {
            true => BTreeMap::new(),
            false => self.profile.inside(&address()),
        };
        let home = layout::AGENT_HOME;
        let (profile, limits, binary) = (&self.profile, &self.limits, &self.binary);
        Launch::new(profile, limits, binary, run, &task, &inside, home)
            .map_err(|e| at_agent(e.into()))
    }

    /// Flies the run; the room tells what it saw, however the run ended.
    fn pilot(
        &mut self,
        run: &RunKey,
        launch: &Launch,
    ) -> Result<(Result<flightproof_agent::Report, AgentRefusal>, RoomOutcome), Stop> {
        let way = self.way().map_err(at_agent)?;
        let parent = self.parent().map_err(at_agent)?;
        let patience = self.asked.plan.patience();
        let mut room = SealedRoom::new(
            (self.host, &mut self.tape),
            &mut self.order,
            &self.furniture,
            (&self.binary, &self.profile),
            way,
        );
        let mut program = room.program();
        let mut holds = LedgerHolds {
            ledger: &mut self.ledger,
            parent: Some(parent),
            now: state::unix_seconds(),
        };
        let flown = Pilot {
            run,
            profile: &self.profile,
            limits: &self.limits,
            binary: &self.binary,
            launch,
            patience,
            holds: &mut holds,
            records: &mut self.folder,
            room: &mut room,
            program: &mut program,
        }
        .fly(State::Planned);
        Ok((flown, room.outcome()))
    }

    /// All attempts together may hold what each may.
    fn parent(&self) -> Result<(Name, MicroUsd), Refusal> {
        let hold = self.limits.hold_under(&self.profile);
        let all = hold.checked_mul(u64::from(self.repair.attempts()));
        let name = self.name.as_str().parse()?;
        Ok((name, all.unwrap_or(MicroUsd::MAX)))
    }

    fn way(&self) -> Result<Option<Way>, Refusal> {
        let plan = &self.asked.plan.agent;
        let endpoints = plan.read_endpoints()?;
        if endpoints.is_empty() {
            return Ok(None);
        }
        let dial: Box<dyn Dial> = match &self.network {
            Some(network) => Box::new(network.clone()),
            None => Box::new(TcpLoopback),
        };
        let credential = credential(&self.asked, &self.profile)?;
        let hold = self.limits.hold_under(&self.profile);
        let charge = MicroUsd::from_micros(REQUEST_CHARGE).unwrap_or_default();
        let gate =
            Gate::new(endpoints, hold, charge, plan.max_requests.get()).known_inside_as(&address());
        Ok(Some(Way {
            gate,
            dial,
            credential,
        }))
    }

    fn report(
        &self,
        number: u32,
        run: &RunKey,
        report: &flightproof_agent::Report,
        room: &RoomOutcome,
    ) -> AttemptReport {
        let hold = run.as_str().parse().ok();
        let hold = hold.and_then(|name: Name| self.ledger.hold(&name).ok().flatten());
        let accounting = report.accounting.as_ref();
        let captured = room.captured.as_ref().filter(|_| report.proposed());
        AttemptReport {
            number,
            run: run.clone(),
            version: room.version.map(|v| v.to_string()),
            hold: hold
                .as_ref()
                .map_or_else(|| "not held".to_owned(), |h| h.state.word().to_owned()),
            held: hold.as_ref().map_or(MicroUsd::ZERO, |h| h.size.held),
            settled: hold.as_ref().and_then(|h| h.state.actual()),
            turns: accounting.and_then(|a| a.turns),
            tokens: accounting.map(|a| a.tokens),
            requests: room.counts.map(|c| c.admitted),
            requests_refused: room.counts.map(|c| c.refused),
            commit: captured.map(|c| c.head),
            bundle: captured.map(|c| c.bundle),
            code: None,
            detail: None,
        }
    }

    /// Adds an attempt to what the certificate will say of money.
    fn count(&mut self, attempt: &AttemptReport, accounting: Option<&Accounting>) {
        let runs = &mut self.order.spend.get_or_insert_default().runs;
        runs.push(RunSpend {
            metering: match self.limits.metering() {
                Metering::Metered => spend::Metering::Estimated,
                Metering::Unmetered => spend::Metering::Unmetered,
            },
            reserved: attempt.held,
            settled: attempt.settled,
            turns: attempt.turns.map(u64::from),
            models: accounting
                .iter()
                .flat_map(|accounting| &accounting.models)
                .map(|model| (model.model.clone(), counts(model.tokens)))
                .collect(),
        });
    }

    /// Bundle and changeset stay, whatever is judged of them: they were paid for.
    fn keep_bundle(&self) -> Result<(), Stop> {
        if self.host.is_none() {
            return Ok(());
        }
        let (out, bundle) = (self.asked.out, self.order.bundle.as_deref());
        let parts = [
            ("commit.bundle", bundle),
            ("commit.paws", self.order.changeset.as_deref()),
        ];
        for (name, bytes) in parts {
            if let Some(bytes) = bytes {
                state::write_file(&out.join(name), bytes, 0o644).map_err(at_agent)?;
            }
        }
        Ok(())
    }

    /// Certifies the order's bundle, and holds the certificate against the plan's policy.
    fn judge(&mut self, attempt: u32, progress: &mut Progress) -> Result<Certified, Stop> {
        self.order.attempt = attempt.into();
        let flown = flight::fly(&self.order, self.host, &mut self.tape, progress);
        let proven = match &flown {
            Flown::Certified(proven) => proven,
            Flown::Refused { stage, refusal } => {
                return Err(Stop {
                    stage,
                    refusal: refusal.clone(),
                });
            }
        };
        self.predicate = Some(Digest::of(&proven.payload));
        let Some(key) = self.asked.key else {
            let verdict = flown.verdict(None);
            return Ok(Certified { verdict });
        };
        progress.begin("certify");
        let at_certify = |refusal| Stop {
            stage: "certify",
            refusal,
        };
        let certificate = flight::certify(proven, key).map_err(at_certify)?;
        let envelope = &certificate.envelope;
        flight::satisfied(&self.policy, envelope, proven, &key.public_key())
            .map_err(|e| at_certify(e.into()))?;
        let out = self.asked.out;
        flight::write_certificate(out, &certificate, proven, key).map_err(at_certify)?;
        progress.done("the policy is satisfied");
        let id = certificate.id.to_string();
        let verdict = match self.asked.admit {
            None => flown.verdict(Some(id)),
            Some(branch) => self.admit(proven, branch, &certificate, progress)?,
        };
        let detail = format!("{}; attempt {attempt}", verdict.detail);
        Ok(Certified {
            verdict: Verdict { detail, ..verdict },
        })
    }

    /// What the loop is told of a refused commit: of a case that it missed as much as the plan lets
    /// its author know.
    fn told_of_judgement(&self, refusal: &Refusal, missed: Option<&Missed>) -> Told {
        let Some(missed) = missed else {
            // Which case differs is nothing to be told.
            return match refusal.code() == CertifierCode::Nondeterministic.explanation().code {
                true => told_of(&bare(refusal)),
                false => told_of(refusal),
            };
        };
        let feedback = self.order.feedback.unwrap_or_default();
        match told_of(&bare(refusal)) {
            Told::Refused(text) => Told::Refused(text + &feedback.of(missed)),
            told => told,
        }
    }

    /// A judgement against a commit, once it is in the log.
    fn logged(&self, stop: Stop, attempt: Option<&AttemptReport>) -> Stop {
        if self.host.is_none() {
            return stop;
        }
        let head = attempt.and_then(|a| a.commit).map(|c| c.to_string());
        let head = head.unwrap_or_default();
        Stop {
            refusal: log::refused(stop.stage, stop.refusal, &self.order.label, &head),
            ..stop
        }
    }

    fn admit(
        &self,
        proven: &Proven,
        branch: &str,
        certificate: &flight::Certificate,
        progress: &mut Progress,
    ) -> Result<Verdict, Stop> {
        progress.begin("admit");
        let admitted = needed(self.host)
            .and_then(|host| host.admit(&self.order, proven, branch, certificate.id))
            .map_err(|refusal| Stop {
                stage: "admit",
                refusal,
            })?;
        let (from, to) = (proven.captured.baseline, proven.captured.head);
        let mut verdict = flight::moved("admit", &admitted, branch, (from, to));
        progress.done(&verdict.detail);
        verdict.notes.extend(flight::hand_over(
            &admitted,
            &self.asked.out.join("receipt.json"),
            (to, &proven.captured.repository),
        ));
        Ok(Verdict {
            certificate: Some(certificate.id.to_string()),
            ..verdict
        })
    }

    /// An attempt that proposed what was refused before is not judged again.
    fn note_repetition(&self, attempts: &mut [AttemptReport]) {
        let repeated = self.repair.refusal();
        let repeated = repeated.filter(|r| r.code == AgentCode::ProposalRepeated);
        if let (Some(repeated), Some(last)) = (repeated, attempts.last_mut()) {
            last.code = Some(AgentCode::ProposalRepeated.explanation().code);
            last.detail = Some(repeated.detail);
        }
    }

    fn store(&mut self, end: Option<LoopEnd>) -> Result<(), Stop> {
        self.record.history = self.repair.history().to_vec();
        self.record.end = end;
        let stored = self.folder.store_loop(&self.record);
        stored.map_err(|e| at_agent(super::recovery::unavailable(e)))
    }
}

fn counts(tokens: Tokens) -> TokenCounts {
    TokenCounts {
        input: tokens.input,
        output: tokens.output,
        cache_read: tokens.cache_read,
        cache_written: tokens.cache_written,
    }
}

/// Where programs find their provider inside a session.
fn address() -> String {
    format!("127.0.0.1:{PROVIDER_PORT}")
}

fn at_agent(refusal: Refusal) -> Stop {
    Stop {
        stage: "agent",
        refusal,
    }
}

fn ours(refused: AgentRefusal) -> Stop {
    at_agent(refused.into())
}

/// The agent's own refusal, with what was behind it.
fn with_trouble(refused: AgentRefusal, room: &RoomOutcome) -> Refusal {
    let refusal = Refusal::from(refused);
    match &room.trouble {
        Some(trouble) => refusal
            .with_notes([format!("{}: {}", trouble.code(), trouble.explanation.todo)])
            .with_notes(trouble.notes.clone()),
        None => refusal,
    }
}

/// What the loop is told of a refused commit. A machine that failed says nothing about it.
fn told_of(refusal: &Refusal) -> Told {
    match refusal.explanation.fault {
        Fault::Input | Fault::Policy => Told::Refused(feedback(refusal)),
        _ => Told::RunStopped(refusal.to_string()),
    }
}

/// The same, of a run without a commit.
fn told_of_run(refusal: &Refusal) -> Told {
    match told_of(refusal) {
        Told::Refused(text) => Told::RunFailed(text),
        other => other,
    }
}

/// A refusal as its author may see it: the certifier and the importer put nothing into one that an
/// author may not know.
fn feedback(refusal: &Refusal) -> String {
    let why = refusal.explanation;
    let mut text = format!(
        "{}: {}.\n{}\nWhy that is refused: {}.\n",
        why.code, why.happened, refusal.detail, why.why
    );
    for note in &refusal.notes {
        text.push_str(&format!("- {note}\n"));
    }
    text
}

/// A refusal without what names the case.
fn bare(refusal: &Refusal) -> Refusal {
    Refusal {
        explanation: refusal.explanation,
        detail: "A case shows it; which one is not said.".to_owned(),
        notes: Vec::new(),
    }
}

fn summary(report: &AttemptReport, captured: &Captured) -> String {
    let money = report.settled.unwrap_or(report.held);
    format!(
        "{money} USD (estimated), bundle of {} bytes",
        captured.bundle_bytes
    )
}

fn note(attempt: &AttemptReport) -> String {
    let code = attempt.code.unwrap_or("certified");
    let detail = attempt.detail.as_deref().unwrap_or_default();
    format!("attempt {}: {code}: {detail}", attempt.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_session::SessionCode;

    #[test]
    fn an_author_is_told_of_its_commit_and_never_of_the_machine() {
        let refused = CertifierCode::CaseStdoutMismatch.refuse("case large");
        let refusal = Refusal::from(refused).with_notes(["src/main.rs:3: error: x".to_owned()]);
        let Told::Refused(text) = told_of(&refusal) else {
            panic!("{:?}", told_of(&refusal))
        };
        for part in [
            "certifier/CASE_STDOUT_MISMATCH",
            "case large",
            "- src/main.rs:3",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let lost = SessionCode::SessionLost.refuse("x").into();
        assert!(matches!(told_of(&lost), Told::RunStopped(_)));
        assert!(matches!(told_of_run(&refusal), Told::RunFailed(_)));
    }
}
