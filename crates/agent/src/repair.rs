//! The repair loop: propose, certify, hand the policy's feedback back, propose again. A pure
//! machine that asks for one thing at a time and is told how it went.

use crate::order::MAX_ATTEMPTS;
use crate::{AgentCode, AgentRefusal};
use flightproof_core::{CommitId, Digest, escape};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Something a plan demands of every attempt, such as a policy's leg, and what it lacks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// Its name.
    pub name: String,
    /// What it cannot do without and does not have, in words. Empty: it can succeed.
    pub lacks: Vec<String>,
}

/// A proposal: one captured commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The commit.
    pub commit: CommitId,
    /// Snapshot id of its tree. Two commits with one tree are one proposal.
    pub tree: Digest,
}

/// What the loop asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Have the agent propose something.
    Propose {
        /// Which attempt, from 1.
        attempt: u32,
        /// Why the last one was refused, made fit for an author: no private expectation is in it.
        feedback: Option<String>,
    },
    /// Certify this commit.
    Certify {
        /// Which attempt.
        attempt: u32,
        /// The commit.
        commit: CommitId,
    },
    /// Nothing more: it is over.
    End(End),
}

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// An attempt was certified.
    Certified,
    /// All attempts were refused.
    UsedUp,
    /// An attempt repeated an earlier one.
    Repeated,
    /// Something failed in a way that a further attempt must not follow: a hold that is kept or not
    /// granted, a session that may still be there, a machine that cannot judge.
    Stopped,
}

/// What the loop is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The agent proposed this.
    Proposed(Proposal),
    /// Its run failed; a further attempt may follow. The text is for the author.
    RunFailed(String),
    /// Its run, or the judgement of its commit, failed; no attempt may follow.
    RunStopped(String),
    /// The commit is certified.
    Certified,
    /// The commit is refused, for these reasons, made fit for the author.
    Refused(String),
}

/// One attempt as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// From 1.
    pub number: u32,
    /// What was proposed, if anything was.
    pub proposal: Option<Proposal>,
    /// How it ended.
    pub result: AttemptResult,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptResult {
    /// The agent proposed nothing.
    RunFailed,
    /// It proposed what was refused before.
    Repeated,
    /// Its proposal was refused.
    Refused,
    /// Its proposal was certified.
    Certified,
}

/// Most bytes of feedback: what a model reads with care. The first reasons come first.
const MAX_FEEDBACK: usize = 16 << 10;

/// The loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    attempts: u32,
    history: Vec<Attempt>,
    ask: Ask,
}

impl Repair {
    /// Starts a loop of at most so many attempts.
    ///
    /// # Errors
    /// `PLAN_HOPELESS` if a leg lacks something, however often it is tried; `LIMIT_WIDENED` above
    /// 16 attempts. Nothing was spent.
    pub fn start(attempts: NonZeroU32, legs: &[Leg]) -> Result<Self, AgentRefusal> {
        if attempts.get() > MAX_ATTEMPTS {
            let detail = format!("{attempts} attempts, at most {MAX_ATTEMPTS}");
            return Err(AgentCode::LimitWidened.refuse(detail));
        }
        let hopeless = legs.iter().find_map(|leg| Some((leg, leg.lacks.first()?)));
        if let Some((leg, lack)) = hopeless {
            let (leg, lack) = (escape(&leg.name, 60), escape(lack, 200));
            return Err(AgentCode::PlanHopeless.refuse(format!("{leg} needs {lack}")));
        }
        Ok(Self {
            attempts: attempts.get(),
            history: Vec::new(),
            ask: Ask::Propose {
                attempt: 1,
                feedback: None,
            },
        })
    }

    /// What is asked for now.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// How many attempts there may be.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Every attempt that ended, in order.
    pub fn history(&self) -> &[Attempt] {
        &self.history
    }

    /// Takes an answer and asks for the next thing.
    ///
    /// # Errors
    /// `OUT_OF_TURN` for an answer to another question; nothing changes.
    pub fn tell(&mut self, told: Told) -> Result<&Ask, AgentRefusal> {
        let (attempt, open) = match &self.ask {
            Ask::Propose { attempt, .. } => (*attempt, None),
            Ask::Certify { attempt, .. } => (*attempt, self.history.last().cloned()),
            Ask::End(_) => return Err(AgentCode::OutOfTurn.refuse("the loop is over")),
        };
        self.ask = match (open, told) {
            (None, Told::Proposed(proposal)) => self.proposed(attempt, proposal),
            (None, Told::RunFailed(why)) => {
                self.record(attempt, None, AttemptResult::RunFailed);
                self.again(attempt, &why)
            }
            (None, Told::RunStopped(_)) => {
                self.record(attempt, None, AttemptResult::RunFailed);
                Ask::End(End::Stopped)
            }
            (Some(_), Told::Certified) => {
                self.conclude(AttemptResult::Certified);
                Ask::End(End::Certified)
            }
            // Until it is certified it counts as refused.
            (Some(_), Told::RunStopped(_)) => Ask::End(End::Stopped),
            (Some(_), Told::Refused(why)) => {
                self.conclude(AttemptResult::Refused);
                self.again(attempt, &why)
            }
            (_, told) => {
                let told = std::mem::discriminant(&told);
                return Err(AgentCode::OutOfTurn.refuse(format!("{told:?}")));
            }
        };
        Ok(&self.ask)
    }

    /// The refusal a loop without a certificate ends in.
    pub fn refusal(&self) -> Option<AgentRefusal> {
        let tried = format!("{} of {} attempts", self.history.len(), self.attempts);
        match self.ask {
            Ask::End(End::UsedUp) => Some(AgentCode::AttemptsUsedUp.refuse(tried)),
            Ask::End(End::Repeated) => Some(AgentCode::ProposalRepeated.refuse(tried)),
            _ => None,
        }
    }

    fn proposed(&mut self, attempt: u32, proposal: Proposal) -> Ask {
        let seen = |earlier: &Attempt| earlier.proposal.is_some_and(|p| p.tree == proposal.tree);
        if self.history.iter().any(seen) {
            self.record(attempt, Some(proposal), AttemptResult::Repeated);
            return Ask::End(End::Repeated);
        }
        // Until it is certified it counts as refused: what is never answered was not certified.
        self.record(attempt, Some(proposal), AttemptResult::Refused);
        Ask::Certify {
            attempt,
            commit: proposal.commit,
        }
    }

    fn record(&mut self, number: u32, proposal: Option<Proposal>, result: AttemptResult) {
        self.history.push(Attempt {
            number,
            proposal,
            result,
        });
    }

    fn conclude(&mut self, result: AttemptResult) {
        if let Some(last) = self.history.last_mut() {
            last.result = result;
        }
    }

    fn again(&self, attempt: u32, why: &str) -> Ask {
        if attempt >= self.attempts {
            return Ask::End(End::UsedUp);
        }
        Ask::Propose {
            attempt: attempt + 1,
            feedback: Some(bounded(why)),
        }
    }
}

/// The first bytes of a text, whole characters only.
fn bounded(text: &str) -> String {
    let mut end = text.len().min(MAX_FEEDBACK);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn proposal(content: u8) -> Proposal {
        Proposal {
            commit: CommitId::from_bytes([content; 20]),
            tree: Digest::of(&[content]),
        }
    }

    fn start(attempts: u32) -> Repair {
        Repair::start(NonZeroU32::new(attempts).unwrap(), &[]).unwrap()
    }

    #[test]
    fn feedback_goes_back_and_the_second_attempt_is_certified() {
        let mut repair = start(2);
        let Ask::Propose {
            attempt: 1,
            feedback: None,
        } = repair.ask()
        else {
            panic!("{:?}", repair.ask())
        };
        repair.tell(Told::Proposed(proposal(1))).unwrap();
        let asked = repair
            .tell(Told::Refused("fence: no unsafe".into()))
            .unwrap();
        let expected = Ask::Propose {
            attempt: 2,
            feedback: Some("fence: no unsafe".into()),
        };
        assert_eq!(*asked, expected);
        repair.tell(Told::Proposed(proposal(2))).unwrap();
        assert_eq!(
            *repair.tell(Told::Certified).unwrap(),
            Ask::End(End::Certified)
        );
        let results: Vec<_> = repair.history().iter().map(|a| a.result).collect();
        assert_eq!(results, [AttemptResult::Refused, AttemptResult::Certified]);
        assert_eq!(repair.refusal(), None);
    }

    #[test]
    fn the_same_bytes_end_the_loop_without_another_certification() {
        let mut repair = start(16);
        repair.tell(Told::Proposed(proposal(1))).unwrap();
        repair.tell(Told::Refused("no".into())).unwrap();
        // Another commit, the same tree.
        let again = Proposal {
            commit: proposal(9).commit,
            ..proposal(1)
        };
        let asked = repair.tell(Told::Proposed(again)).unwrap();
        assert_eq!(*asked, Ask::End(End::Repeated));
        let code = repair.refusal().map(|r| r.code);
        assert_eq!(code, Some(AgentCode::ProposalRepeated));
    }

    #[test]
    fn attempts_are_used_up_by_failed_runs_as_well() {
        let mut repair = start(2);
        repair.tell(Told::RunFailed("empty".into())).unwrap();
        repair.tell(Told::RunFailed("empty".into())).unwrap();
        assert_eq!(*repair.ask(), Ask::End(End::UsedUp));
        let code = repair.refusal().map(|r| r.code);
        assert_eq!(code, Some(AgentCode::AttemptsUsedUp));
        let mut repair = start(5);
        repair.tell(Told::RunStopped("kept".into())).unwrap();
        assert_eq!(*repair.ask(), Ask::End(End::Stopped));
        let mut repair = start(5);
        repair.tell(Told::Proposed(proposal(1))).unwrap();
        repair.tell(Told::RunStopped("no judge".into())).unwrap();
        assert_eq!(*repair.ask(), Ask::End(End::Stopped));
        assert_eq!(repair.history()[0].result, AttemptResult::Refused);
    }

    #[test]
    fn a_plan_that_can_never_succeed_does_not_start() {
        let leg = |lacks: &[&str]| Leg {
            name: "mutation".into(),
            lacks: lacks.iter().map(|l| (*l).to_owned()).collect(),
        };
        let two = NonZeroU32::new(2).unwrap();
        assert!(Repair::start(two, &[leg(&[])]).is_ok());
        let hopeless = Repair::start(two, &[leg(&[]), leg(&["a witness"])]);
        assert_eq!(hopeless.map_err(|e| e.code), Err(AgentCode::PlanHopeless));
        let many = Repair::start(NonZeroU32::new(17).unwrap(), &[]);
        assert_eq!(many.map_err(|e| e.code), Err(AgentCode::LimitWidened));
    }

    #[test]
    fn an_answer_to_another_question_changes_nothing() {
        let mut repair = start(2);
        let before = repair.clone();
        assert_eq!(
            repair.tell(Told::Certified).map_err(|e| e.code),
            Err(AgentCode::OutOfTurn)
        );
        assert_eq!(repair, before);
        repair.tell(Told::RunStopped(String::new())).unwrap();
        assert!(repair.tell(Told::Certified).is_err());
    }

    #[test]
    fn feedback_is_bounded_in_whole_characters() {
        let mut repair = start(2);
        let asked = repair
            .tell(Told::RunFailed("é".repeat(MAX_FEEDBACK)))
            .unwrap();
        let Ask::Propose {
            feedback: Some(text),
            ..
        } = asked
        else {
            panic!("{asked:?}")
        };
        assert_eq!(text.len(), MAX_FEEDBACK);
    }

    fn told() -> impl Strategy<Value = Told> {
        prop_oneof![
            (0u8..4).prop_map(|content| Told::Proposed(proposal(content))),
            Just(Told::RunFailed("x".into())),
            Just(Told::RunStopped("x".into())),
            Just(Told::Certified),
            Just(Told::Refused("x".into())),
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_told_the_loop_ends_and_every_attempt_is_counted(
            attempts in 1u32..=16,
            answers in proptest::collection::vec(told(), 0..80),
        ) {
            let mut repair = start(attempts);
            let mut trees = std::collections::HashSet::new();
            for answer in answers {
                let certified = matches!(answer, Told::Certified);
                let Ok(ask) = repair.tell(answer) else { continue };
                match ask.clone() {
                    Ask::Propose { attempt, .. } => {
                        prop_assert!(attempt <= attempts);
                        prop_assert_eq!(repair.history().len() + 1, attempt as usize);
                    }
                    Ask::Certify { .. } => {
                        let last = repair.history().last().unwrap();
                        prop_assert!(trees.insert(last.proposal.unwrap().tree), "certified twice");
                    }
                    Ask::End(end) => prop_assert_eq!(end == End::Certified, certified),
                }
            }
            prop_assert!(repair.history().len() <= attempts as usize);
        }
    }
}
