//! Closing many things that were opened one after the other.

use crate::{LedgerCode, LedgerError};
use std::sync::Arc;

/// Something that has to be closed, once.
pub trait Owner {
    /// Closes it, and says how that went. Called at most once.
    fn close(&self) -> Closed;
}

/// How a close went, from the best to the worst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// Everything is gone, and somebody looked.
    Confirmed,
    /// It failed, and what is left is known.
    Failed(String),
    /// Nobody can tell what is left.
    Uncertain(String),
}

impl Closed {
    fn rank(&self) -> u8 {
        match self {
            Self::Confirmed => 0,
            Self::Failed(_) => 1,
            Self::Uncertain(_) => 2,
        }
    }

    /// The worse of two; of two that are equally bad, the first.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }
}

/// Owners in the order in which they were acquired.
#[derive(Default)]
pub struct Owners {
    owners: Vec<(String, Arc<dyn Owner>)>,
}

impl std::fmt::Debug for Owners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.owners.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Owners {
    /// Adds an owner. One that is here already, under whatever name, is not added again: it is
    /// closed where it was first acquired.
    pub fn acquire(&mut self, name: &str, owner: Arc<dyn Owner>) {
        if !self
            .owners
            .iter()
            .any(|(_, known)| Arc::ptr_eq(known, &owner))
        {
            self.owners.push((name.to_owned(), owner));
        }
    }

    /// Closes all of them, the last acquired first, each whatever became of the others.
    ///
    /// # Errors
    /// `CLOSE_UNCERTAIN` if any close was uncertain, else `CLOSE_FAILED` if any failed: neither is
    /// outweighed by what went well.
    pub fn close(self) -> Result<(), LedgerError> {
        let worst = self
            .owners
            .into_iter()
            .rev()
            .map(|(name, owner)| match owner.close() {
                Closed::Confirmed => Closed::Confirmed,
                Closed::Failed(why) => Closed::Failed(format!("{name}: {why}")),
                Closed::Uncertain(why) => Closed::Uncertain(format!("{name}: {why}")),
            })
            .fold(Closed::Confirmed, Closed::and);
        match worst {
            Closed::Confirmed => Ok(()),
            Closed::Failed(why) => Err(LedgerCode::CloseFailed.refuse(why)),
            Closed::Uncertain(why) => Err(LedgerCode::CloseUncertain.refuse(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Fake {
        name: &'static str,
        ends: Closed,
        log: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Owner for Fake {
        fn close(&self) -> Closed {
            self.log.lock().unwrap().push(self.name);
            self.ends.clone()
        }
    }

    fn close(ends: [Closed; 3]) -> (Result<(), LedgerError>, Vec<&'static str>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut owners = Owners::default();
        let mut first = None;
        for (name, ends) in ["session", "lease", "ledger"].into_iter().zip(ends) {
            let owner: Arc<dyn Owner> = Arc::new(Fake {
                name,
                ends,
                log: log.clone(),
            });
            first.get_or_insert_with(|| owner.clone());
            owners.acquire(name, owner);
        }
        owners.acquire("alias", first.unwrap());
        let answer = owners.close();
        let log = log.lock().unwrap().clone();
        (answer, log)
    }

    #[test]
    fn owners_close_in_reverse_order_and_a_shared_one_once() {
        let (answer, log) = close([Closed::Confirmed, Closed::Confirmed, Closed::Confirmed]);
        assert_eq!((answer, log), (Ok(()), vec!["ledger", "lease", "session"]));
    }

    #[test]
    fn an_uncertain_close_dominates_whatever_the_others_say_and_all_are_closed() {
        let failed = || Closed::Failed("busy".into());
        let uncertain = || Closed::Uncertain("gone?".into());
        for ends in [
            [uncertain(), Closed::Confirmed, failed()],
            [failed(), uncertain(), Closed::Confirmed],
            [Closed::Confirmed, failed(), uncertain()],
        ] {
            let (answer, log) = close(ends);
            assert_eq!(answer.unwrap_err().code, LedgerCode::CloseUncertain);
            assert_eq!(log.len(), 3);
        }
        let (answer, log) = close([failed(), Closed::Confirmed, Closed::Confirmed]);
        assert_eq!(answer.unwrap_err().code, LedgerCode::CloseFailed);
        assert_eq!(log.len(), 3);
    }
}
