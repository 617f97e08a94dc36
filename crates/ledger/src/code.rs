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
        /// Closing did not end well.
        CloseUncertain = "CLOSE_UNCERTAIN", Environment,
            "whether everything was put away cannot be told", "an earlier success must not hide a close that failed", "look at the named owner and at the disk; nothing acknowledged depends on the close";
        /// The key is taken by a request for another certificate.
        RequestDiffers = "REQUEST_DIFFERS", Usage,
            "the same commit was already asked into this branch under another certificate", "one admission has one certificate", "use the certificate of the first request, or look at its receipt";
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
            "no total cap was stated, so nothing may be spent", "money without a bound is spent without a bound", "state one with `flights spend`";
        /// The hold does not fit.
        CapExceeded = "CAP_EXCEEDED", Policy,
            "the run's hold would go over a cap", "what is held counts as spent until the opposite is known", "ask for less, wait for the next UTC day, resolve runs of unknown outcome, or raise the cap";
        /// The clock is far ahead of the last day seen.
        ClockJumped = "CLOCK_JUMPED", Environment,
            "the clock is more than one day past the last day on which something was held", "a clock that runs ahead would open one daily budget after the other", "check the clock, then confirm the day with `flights spend`";
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
    }
}

/// A refusal of this crate.
pub type LedgerError = Refused<LedgerCode>;
