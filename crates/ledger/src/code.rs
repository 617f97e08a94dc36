use flightproof_core::Refused;

flightproof_core::refusal_codes! {
    /// Refusals of the ledger.
    pub enum LedgerCode in "ledger" {
        /// The file or its folder cannot be used.
        LedgerUnreadable = "LEDGER_UNREADABLE", Environment,
            "the ledger exists but cannot be read as a ledger", "a ledger made anew would forget what was already admitted", "restore the file from a backup, or move it away after looking at every branch it may have moved";
        /// A row, an index or a page is not what was written.
        LedgerDamaged = "LEDGER_DAMAGED", Environment,
            "the ledger holds bytes that were not written by this program", "a changed bit could read as another amount or another outcome", "restore the newest backup whose head is the anchored one, and look at the disk";
        /// The anchor says more than the ledger knows.
        LedgerBehind = "LEDGER_BEHIND", Environment,
            "the ledger does not reach the point its anchor names", "an old copy, or one without its log, has forgotten what was acknowledged and would do it again", "put back the newest files, log included; if they are lost, look at every branch, run and bill by hand before starting anew";
        /// There is no anchor to hold the ledger against.
        LedgerUnanchored = "LEDGER_UNANCHORED", Environment,
            "the file that anchors the ledger's head is missing, damaged, of another ledger, or far behind", "without it an old copy of the ledger would look like the newest", "put the anchor back beside the ledger; both are copied together or not at all";
        /// A later program wrote it.
        LedgerTooNew = "LEDGER_TOO_NEW", TooNew,
            "the ledger was written by a newer version of this program", "an older program would misread what the newer one wrote", "use the newer program";
        /// Others could change it.
        LedgerExposed = "LEDGER_EXPOSED", Environment,
            "the ledger's folder or file belongs to another user, is open to others, or is a link", "whoever can write the ledger can forge a receipt", "make the folder yours with mode 0700 and the file with mode 0600";
        /// SQLite did not accept the settings that make a commit durable.
        LedgerNotDurable = "LEDGER_NOT_DURABLE", Environment,
            "the storage did not accept write-ahead logging with full synchronisation", "an acknowledged admission could vanish with the power", "put the state folder on a local file system";
        /// Another process works with it.
        LedgerBusy = "LEDGER_BUSY", Environment,
            "another process holds the ledger", "two admissions at once could misjudge each other", "wait for the other run to end, then try again";
        /// A commit failed, or an earlier one on this handle did.
        CommitUncertain = "COMMIT_UNCERTAIN", Environment,
            "a write to the ledger failed, and whether it is on disk is unknown", "after a failed commit only a fresh reading tells the truth", "free disk space or look at the disk, then run again: the next run reads what is really there";
        /// There is no room left.
        LedgerFull = "LEDGER_FULL", Environment,
            "there is no room left on the disk under the ledger", "what cannot be written must not be taken for written; everything that was acknowledged is still there", "free space where the state directory lies, then run again";
        /// Closing did not end well.
        CloseUncertain = "CLOSE_UNCERTAIN", Environment,
            "whether everything was put away cannot be told", "an earlier success must not hide a close that failed", "look at the named owner and at the disk; nothing acknowledged depends on the close";
        /// The key is taken by a request for another certificate.
        RequestDiffers = "REQUEST_DIFFERS", Usage,
            "the same commit was already asked into this branch under another certificate", "one admission has one certificate", "if it came in then and the branch was set back since, set the branch to the commit by hand, or ask for another commit; else use the certificate of the first request";
        /// An earlier intent has no outcome yet.
        AdmissionOpen = "ADMISSION_OPEN", Environment,
            "an earlier admission of this commit has no recorded outcome", "it may have moved the branch already", "run the recovery first: it reads the branch and records what happened";
        /// An earlier admission under this key ended without a proven result.
        AdmissionClosed = "ADMISSION_CLOSED", Environment,
            "an earlier admission of this commit was overtaken, or its outcome is unknown", "trying once more could apply a change a second time", "look at the branch; if the commit belongs there, move the branch yourself";
        /// There is no open intent with this number.
        AdmissionNotOpen = "ADMISSION_NOT_OPEN", Ours,
            "an outcome was reported for an admission that is not open", "an outcome is recorded once", "report this as a bug";
        /// A name that is none.
        BadName = "BAD_NAME", Usage,
            "a name is empty, too long, or has a character that names do not have", "a name with spaces or control characters deceives whoever reads the log", "use up to 200 letters, digits and . _ : / @ + -";
        /// Nothing bounds the spending.
        CapMissing = "CAP_MISSING", Configuration,
            "no total cap was stated, so nothing may be spent", "money without a bound is spent without a bound", "state one with `flights spend cap total --usd AMOUNT`";
        /// The hold does not fit.
        CapExceeded = "CAP_EXCEEDED", Policy,
            "the run's hold would go over a cap", "what is held counts as spent until the opposite is known", "ask for less, wait for the next UTC day, resolve runs of unknown outcome, or raise the cap";
        /// The clock is far ahead of the last day seen.
        ClockJumped = "CLOCK_JUMPED", Environment,
            "the clock is more than one day past the last day on which something was held", "a clock that runs ahead would open one daily budget after the other", "check the clock, then confirm the day with `flights spend confirm-day DAY`";
        /// The run or parent is known with other figures.
        HoldDiffers = "HOLD_DIFFERS", Usage,
            "money is already held for this run under another request, or its parent has another cap", "one run has one hold", "use a new name for a new run";
        /// There is no hold for the run.
        HoldUnknown = "HOLD_UNKNOWN", Usage,
            "no money was ever held for this run", "a run is paid from its own hold", "reserve money for it first";
        /// The hold does not allow this step.
        HoldRefused = "HOLD_REFUSED", Usage,
            "the hold is not in a state that allows this", "money that may have been spent is not given back, and a hold pays for one start", "look at the run with `flights spend show`; an unknown outcome needs `flights spend resolve`";
        /// Two amounts for one run.
        SpendConflict = "SPEND_CONFLICT", Evidence,
            "an amount contradicts what is booked for the run", "the first amount stands; the other one is recorded as an incident", "find out which program reported twice, and compare with the provider's invoice";
        /// The operator's word is not signed.
        ResolutionUnsigned = "RESOLUTION_UNSIGNED", Evidence,
            "the signature does not fit the statement about the run", "only a signed word frees money of unknown outcome", "sign the statement of this ledger, run, amount and evidence with an operator's key";
        /// Closing failed in a known way.
        CloseFailed = "CLOSE_FAILED", Environment,
            "something that was opened could not be closed", "an earlier success must not hide what is left", "look at the named owner and remove what it left";
        /// Another owner works under the name.
        LeaseHeld = "LEASE_HELD", Environment,
            "another owner has the lease and its time is not over", "two owners at once would do the work twice", "wait, or end the other owner";
        /// A newer owner has taken over.
        LeaseLost = "LEASE_LOST", Environment,
            "the lease was given to another owner in the meantime", "whoever was away too long must not write any more", "start over: what was begun is marked, and the new owner goes on";
        /// The key belongs to another request.
        KeyTaken = "KEY_TAKEN", Usage,
            "the key was first seen with another request", "one key has one request and one answer, for ever", "use a new key for a new request";
        /// There is nothing to answer, to reconcile or to forget.
        KeyState = "KEY_STATE", Usage,
            "the key is not in a state that allows this", "an answer is given once, by the owner that did the work", "look the key up first";
        /// More bytes than are kept.
        BodyTooLarge = "BODY_TOO_LARGE", Usage,
            "a body is larger than the ledger keeps", "the ledger holds documents, not files", "store the bytes elsewhere and send their digest";
        /// The two flights are strangers.
        NotKin = "NOT_KIN", Usage,
            "the flight is not the sender's parent, child or sibling, or is not known", "a flight speaks to its own family only", "send it by way of the parent";
        /// The receiver has too much to read.
        QueueFull = "QUEUE_FULL", Environment,
            "too many messages wait for this receiver", "a receiver that never comes back must not fill the disk", "wait until it has taken some";
        /// The session's state does not allow it.
        SessionState = "SESSION_STATE", Usage,
            "the session is not in a state that allows this", "what is deleted stays deleted, and what was not confirmed is not assumed", "look the session up first";
        /// Bytes of a link that are no frame.
        RelayFrame = "RELAY_FRAME", Input,
            "what came over a link is no frame, or comes out of order", "nothing after it means anything", "nothing: the next connection starts anew; if it happens each time, compare the programs' versions";
        /// A frame that was not sent by the other end of the link.
        RelayUnproven = "RELAY_UNPROVEN", Input,
            "a frame's code does not fit: the other end does not know the key, or the frame was changed, doubled, dropped or moved on the way", "whoever sits between two hosts could make messages up", "nothing: the next connection starts anew; if it happens each time, look at what sits between";
        /// The connection failed.
        RelayCut = "RELAY_CUT", Environment,
            "the connection of a link ended or timed out", "what was not acknowledged may have been applied or not", "connect again: everything goes on where it was";
        /// A message before this one is missing.
        RelayGap = "RELAY_GAP", Input,
            "a message arrived and one before it did not", "messages are applied in order, or not at all", "connect again; if it happens each time, the sender's ledger has lost messages";
        /// The histories do not fit.
        RelayDiverged = "RELAY_DIVERGED", Evidence,
            "the two ends of a link remember different messages", "one of the ledgers was put back from an old copy, or is another one", "find out which; nothing more is sent or applied over this link";
        /// The receiver does not apply a message.
        RelayRefused = "RELAY_REFUSED", Input,
            "the receiver refused a message, and nothing after it is sent", "skipping one would break the order", "look at the receiver's report; the message stays queued and is sent again";
        /// Somebody else was first.
        GrantSpent = "GRANT_SPENT", Input,
            "the grant was redeemed by another sender", "a grant is good for one sender", "issue a new grant for a new link, and find out who has redeemed this one";
        /// No such grant.
        GrantRefused = "GRANT_REFUSED", Input,
            "there is no such grant or link here", "only a sender that was given a grant may talk", "issue a grant at the receiver and hand it to the sender";
        /// The export could not be written.
        ExportFailed = "EXPORT_FAILED", Environment,
            "the export could not be written", "half an export looks like a small ledger", "free space, then export again";
    }
}

/// A refusal of this crate.
pub type LedgerError = Refused<LedgerCode>;
