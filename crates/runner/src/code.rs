use flightproof_core::Refused;

flightproof_core::refusal_codes! {
    /// Refusals of the runner. They cross the channel as text; the host shows them as its own.
    pub enum RunnerCode in "runner" {
        /// Something is not as a session must be.
        NotASession = "NOT_A_SESSION", Environment,
            "the runner was started outside a session", "it empties directories and kills every process it can see, which is right only as the first process of a session", "start flights by its commands; it starts the runner itself";
        /// The request cannot be read, or its payload breaks the order of messages.
        BadRequest = "BAD_REQUEST", Ours,
            "the runner cannot read a request", "host and runner are one program, so their words must agree", "report it";
        /// An upload goes where something already is.
        PlaceOccupied = "PLACE_OCCUPIED", Ours,
            "an upload goes to a place that is already filled", "a session holds one candidate, and a second tree on top of it would be neither", "report it";
        /// An overlay comes before what it lies on.
        PlaceEmpty = "PLACE_EMPTY", Ours,
            "files to replace came before the tree they belong to", "an overlay alone is not the captured tree", "report it";
        /// The snapshot breaks a rule of its format or of extraction.
        UploadRefused = "UPLOAD_REFUSED", Input,
            "the uploaded snapshot is not acceptable", "what was extracted must be exactly what the host sent", "see the detail: it holds the archive's own code";
        /// An uploaded `.crate` file is absent or is not the one asked for.
        CrateMismatch = "CRATE_MISMATCH", Input,
            "a dependency is absent or has another checksum than the lock file says", "only the bytes the lock names may be built", "fetch the dependencies again on the host";
        /// A `.crate` file holds something a package does not hold.
        CrateRefused = "CRATE_REFUSED", Input,
            "a dependency's package file breaks a rule of unpacking", "links, devices and paths that leave the package could reach other files of the session", "look at the package named in the detail; a package from the registry never looks like this";
        /// Program, arguments, environment or limits are outside the rules.
        BadExec = "BAD_EXEC", Input,
            "a program run was asked for that has no meaning in a session", "programs, arguments and limits have fixed bounds so that a launch cannot fail halfway", "shorten the case's arguments, environment or files";
        /// No uid is left that no case ever had.
        UidsExhausted = "UIDS_EXHAUSTED", Environment,
            "the session has used every uid it may give to a case", "a uid is never given twice, so that no case can meet what an earlier one left", "split the flight: fewer cases or fewer mutants per session";
        /// A build product cannot be promoted.
        PromoteRefused = "PROMOTE_REFUSED", Input,
            "the build product cannot be promoted", "only a regular file below the build output becomes a program of the cases", "check that the plan names the binary target the build makes";
        /// The probe did not come to its end.
        ProbeFailed = "PROBE_FAILED", Environment,
            "the self-test of the walls did not finish", "walls that were not tried are not known to stand", "run flights doctor; the kernel may lack Landlock or seccomp";
        /// Something inside the session failed that never should.
        Inside = "INSIDE", Environment,
            "an operation inside the session failed", "the runner cannot go on without it, and nothing is known about the candidate", "look at the detail: most often the scratch of the session is full";
    }
}

/// A refusal of this crate.
pub type RunnerError = Refused<RunnerCode>;

/// Turns any error of the system into [`RunnerCode::Inside`], saying what was being done.
pub(crate) fn inside<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> RunnerError + '_ {
    move |error| RunnerCode::Inside.refuse(format!("{what}: {error}"))
}
