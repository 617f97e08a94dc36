flightproof_core::refusal_codes! {
    /// Refusals of the program itself: plans, recordings, keys, files.
    pub enum FlightsCode in "flights" {
        /// A plan cannot be read.
        PlanUnreadable = "PLAN_UNREADABLE", Usage,
            "there is no readable plan at this path", "a flight without a plan has nothing to prove", "check the path; without names every plan in flights/ is meant";
        /// A plan breaks the schema.
        PlanInvalid = "PLAN_INVALID", Configuration,
            "the plan breaks its schema", "a plan that could be read in two ways would be flown in one of them", "compare the plan with the schema in docs/formats.md";
        /// A plan, or a gate's policy, of a later version.
        PlanTooNew = "PLAN_TOO_NEW", TooNew,
            "the plan, or the gate's policy, is of a newer format than this program reads", "guessing at what it does not know could pass what must fail", "use a newer release of flights, or write the file in the version that docs/formats.md shows";
        /// A plan's source cannot be laid out.
        SourceUnavailable = "SOURCE_UNAVAILABLE", Environment,
            "the plan's source is not on this machine", "a flight needs the exact bytes its plan names", "for a published crate run `cargo fetch --locked` on the manifests in fixtures/published; for a repository check the path and the commits";
        /// The witness file cannot be read.
        WitnessUnreadable = "WITNESS_UNREADABLE", Usage,
            "the witness file, or the driver it names, cannot be read", "nothing can be judged without it", "check the path, given with --witness or in the plan, and the driver beside the file";
        /// No key to sign with.
        KeyMissing = "KEY_MISSING", Configuration,
            "there is no key to sign the certificate with", "an unsigned certificate proves nothing to anybody else", "make one with `flights key new`, or name one with --key FILE";
        /// A key file cannot be written or read.
        KeyFile = "KEY_FILE", Environment,
            "the key file could not be read or written, or others may read it", "a signing key that others can read is not a key", "check the path and its permissions (chmod 600 for what is secret); `key new` takes another path with --out";
        /// A new key needs a passphrase.
        PassphraseMissing = "PASSPHRASE_MISSING", Usage,
            "a new key needs a passphrase", "a key file without one signs for whoever copies it", "give one of at least 8 characters at a terminal, twice the same, or in a file with --passphrase-file FILE; say --no-passphrase if the key's file is protected otherwise";
        /// The agent has no such key.
        KeyUnknown = "KEY_UNKNOWN", Usage,
            "no key, or more than one, has this name", "what is signed must be signed by exactly the key that was meant", "see `flights key list` for the ids";
        /// No SSH agent answers.
        AgentUnavailable = "AGENT_UNAVAILABLE", Environment,
            "no SSH agent answers", "a key in an agent cannot be used without it", "start one with `eval $(ssh-agent)`, add the key with ssh-add, and check SSH_AUTH_SOCK";
        /// The SSH agent does not sign.
        AgentRefused = "AGENT_REFUSED", Environment,
            "the SSH agent did not sign", "without its signature there is no certificate", "check that the agent is not locked and that whoever confirms did so";
        /// Entropy or state directory unavailable.
        StateUnavailable = "STATE_UNAVAILABLE", Environment,
            "the state directory or the output directory cannot be used", "receipts and session records must be durable before anything happens", "check the path that is named, its permissions and free space; FLIGHTPROOF_STATE names another state directory, --out another output directory";
        /// Nothing to look at.
        StateMissing = "STATE_MISSING", Usage,
            "there is no such state to look at", "an empty one that was made now would look like one in which nothing is wrong", "check FLIGHTPROOF_STATE, and that this is the machine and the user meant; what is kept there begins with the first command that has something to keep";
        /// The clock cannot be right.
        ClockWrong = "CLOCK_WRONG", Environment,
            "the clock of this machine cannot be right", "what expires, how fresh evidence is and which day money is booked to are told by it", "set it (timedatectl set-ntp true); where money was booked to a later day, confirm today with `flights spend confirm-day DAY`";
        /// The toolchain was not found.
        ToolchainMissing = "TOOLCHAIN_MISSING", Environment,
            "no Rust toolchain was found to bind into the session", "the candidate is compiled by exactly one attested toolchain", "install one with rustup; where rustup says that none is chosen, `rustup default stable` does both; where it lies elsewhere, name its directory with --toolchain DIR to the command that flies";
        /// A program the host needs is missing.
        ProgramMissing = "PROGRAM_MISSING", Environment,
            "a program this machine must have is not installed", "there is no weaker way to do what it does", "install the Debian package the message names";
        /// The rules for generated files lie in the repository.
        GeneratedExposed = "GENERATED_EXPOSED", Configuration,
            "the rules for generated files lie inside the repository", "whoever can write there could let anything pass for generated", "keep the file outside of the repository";
        /// A Rust file changes in a flight of another language.
        LanguageMixed = "LANGUAGE_MIXED", Input,
            "a Rust file changes in a flight whose witness names another language", "the gates of Rust are not passed there, and the change would look as if they were", "judge the Rust part with a witness of its own, in a change of its own";
        /// No image for sessions on an engine was named.
        ImageUnnamed = "IMAGE_UNNAMED", Environment,
            "it is not said which image sessions on the engine run in", "a certificate names the image by its content, so it is not guessed", "build one and name its id: flights run --live --image $(scripts/session-image)";
        /// A plan has no recording.
        TranscriptMissing = "TRANSCRIPT_MISSING", Evidence,
            "there is no recording of this flight", "a replay without a recording would prove nothing", "record it with `flights run --local --record PLAN`";
        /// A recording cannot be written.
        TranscriptWrite = "TRANSCRIPT_WRITE", Environment,
            "the recording could not be written", "a flight whose record is incomplete cannot be checked later, so it fails", "check free space and permissions of the recordings folder";
        /// A recording is damaged or forged.
        TranscriptBroken = "TRANSCRIPT_BROKEN", Evidence,
            "the recording is damaged, incomplete or not signed by its recorder", "a recording that can be edited proves nothing", "restore it from version control, or put its recorder's public key beside it, or record the flight again";
        /// A recording of a newer format.
        TranscriptTooNew = "TRANSCRIPT_TOO_NEW", TooNew,
            "the recording is of a newer format than this program reads", "guessing at fields it does not know could pass what must fail", "use the release of flights that wrote it, or a newer one";
        /// Two recordings differ in meaning.
        TranscriptsDiffer = "TRANSCRIPTS_DIFFER", Evidence,
            "the two recordings differ in meaning", "a new recording replaces an old one only when somebody has seen what it changes", "read the differences; keep the new recording if they are meant";
        /// Nobody's key to hold a recording against.
        RecorderUnknown = "RECORDER_UNKNOWN", Usage,
            "there is no key to hold the recording's signature against", "a recording that anybody may have made proves nothing", "name the recorder's public key with --key FILE, or put it beside the recording as a file that ends in .pub";
        /// Recordings here are another recorder's.
        RecorderOther = "RECORDER_OTHER", Configuration,
            "the recordings here are held against the keys of other recorders", "a recording that replaces one of theirs could not be replayed by anybody who trusts them", "sign with a recorder's key (--key), or first put your public key into flights/recordings as NAME.pub for others to review";
        /// A line that a recording does not have.
        LineMissing = "LINE_MISSING", Usage,
            "the recording has no question on this line", "there is nothing to show", "take a number from the first column of `flights show`";
        /// The gate's demands are not all met.
        GateUnmet = "GATE_UNMET", Policy,
            "not every demand of the gate's policy is met by signed evidence", "a release that lacks a measurement is not known to be good, and what nobody measured is no pass", "measure what the rows name on exactly this commit with exactly this program, then ask again";
        /// The working directory is not HEAD's tree.
        TreeDiffers = "TREE_DIFFERS", Usage,
            "the working directory is not what HEAD has", "evidence and acceptance speak of a commit, and plans and policy are read from its files", "commit or undo what differs, and ask again in a clean checkout";
        /// Evidence for the gate that is none.
        EvidenceInvalid = "EVIDENCE_INVALID", Evidence,
            "a file given as evidence, or as the last acceptance, is none", "only signed statements of the right kind count", "give what `flights run --evidence`, `flights evidence` and `flights gate` wrote";
        /// A gate policy breaks its schema.
        GatePolicyInvalid = "GATE_POLICY_INVALID", Configuration,
            "the gate's policy breaks its schema, demands nothing, or names no trusted key", "a gate without demands lets everything pass", "compare it with the gate policy in docs/formats.md";
        /// A replay asks something else than was recorded.
        TranscriptDiverged = "TRANSCRIPT_DIVERGED", Evidence,
            "the flight asks something else than the recorded one did", "only the recorded exchanges have recorded answers", "if the plan, the witness or the program changed on purpose, record the flight again and review the difference";
        /// A replay reaches another predicate.
        PredicateDiffers = "PREDICATE_DIFFERS", Evidence,
            "the replay reached another predicate than the recorded flight", "the same observations must lead to the same claims", "find the change that made the difference; record the flight again only if it is meant";
        /// A commit, flown again, is not what its certificate says.
        RecertifyDiffers = "RECERTIFY_DIFFERS", Evidence,
            "flown again, the commit does not come to what its certificate claims", "whoever signed it saw something else, or was given something else", "read the fields that differ; another toolchain, witness or tree is another flight, and its certificate claims other things";
        /// A flight ended otherwise than its plan expects.
        VerdictUnexpected = "VERDICT_UNEXPECTED", Input,
            "the flight ended otherwise than its plan expects", "a plan states what must come of it, and every other end is a failure", "read the stage and the code in the table, then fix the candidate, the witness or the plan";
        /// Something of a flight is still there.
        FlightLeaked = "FLIGHT_LEAKED", Environment,
            "something that a flight began is still there after its end", "a session, lease, directory or process that is left could go on acting, and the flight says nothing about it", "end what is named; when this program has ended, `flights reap` removes what sessions left";
        /// The candidate ran on the host.
        CanaryFound = "CANARY_FOUND", Ours,
            "a file that only the candidate's own program writes was found on the host", "nothing of the candidate may run outside the session", "stop using this version and report the plan";
        /// Another plan for the same name, no plans at all.
        NothingToRun = "NOTHING_TO_RUN", NothingRan,
            "no plan was found", "a run without flights must not look like success", "name plans, or run from a directory that has flights/*.toml";
        /// A repository that `init` can do nothing with.
        NothingToInit = "NOTHING_TO_INIT", Usage,
            "nothing that could be judged was found", "a plan for a program that is not there would never fly", "name the top of a repository with a Cargo.toml that has a program or a library, with --repo DIR; for a program in another language write a witness by hand that names it (\"language\": \"python\")";
        /// Several programs or libraries, or another one than there is.
        TargetUnclear = "TARGET_UNCLEAR", Usage,
            "it is not clear which program or library is to be judged", "a witness speaks about one program", "name one of those listed with --bin NAME or --lib PACKAGE";
        /// The branch is at the candidate already.
        AlreadyAdmitted = "ALREADY_ADMITTED", Usage,
            "the branch is at the candidate already", "a commit comes in once; certifying it again cannot let it in again", "its certificate and receipt were written when it came in; leave --admit away for a new certificate";
        /// A policy that asks for more than a flight can give.
        PolicyWantsMore = "POLICY_WANTS_MORE", Configuration,
            "the policy wants something that the certificate of this flight cannot have, or not yet", "a flight whose branch could not move at its end is not flown for it", "sign with a key that the policy names; for what others add, leave --admit away, then let the commit in with `flights admit`";
        /// A wrong command line.
        UsageInvalid = "USAGE_INVALID", Usage,
            "the command line is wrong", "what was meant is not guessed", "see --help of the program or of the command";
        /// A schema of no document.
        SchemaUnknown = "SCHEMA_UNKNOWN", Usage,
            "no document of the program has this schema", "a schema that is guessed describes nothing", "run `flights schema` to see the names";
        /// A form of output that a command does not have.
        FormatUnsupported = "FORMAT_UNSUPPORTED", Usage,
            "the command does not print this format", "another format than the asked one would be misread", "choose one of the formats the message names";
        /// `explain` was asked for an unknown code.
        UnknownCode = "UNKNOWN_CODE", Usage,
            "there is no such refusal code", "codes are a closed list", "run `flights explain` to see all of them";
        /// A subject of `cert verify` is neither a directory nor a revision.
        SubjectUnreadable = "SUBJECT_UNREADABLE", Usage,
            "the subject is neither a directory nor a commit that can be read", "a certificate is about exact bytes, so they must be at hand", "give an exported tree (git archive REV | tar -x -C DIR) or a revision with --repo DIR";
        /// Nothing that is asked for can be mutated.
        ScopeEmpty = "SCOPE_EMPTY", Usage,
            "nothing that was asked for can be mutated", "a survey of nothing must not look like a survey that found nothing", "check the names given with --package and --file; without --package the package at the top is meant; for a program in another language than Rust, `certify` with its witness makes mutants of the change";
        /// Cases contradict each other or do not repeat.
        WitnessUnsound = "WITNESS_UNSOUND", Configuration,
            "cases of the witness contradict each other, or do not answer the same way each time", "no program can meet two answers to one question, and a case that wavers accuses the innocent", "take the cases that are named out of the witness, or correct them";
        /// A witness is not filled in.
        WitnessUnfilled = "WITNESS_UNFILLED", Configuration,
            "the witness still has a place to fill in", "what stands there is no answer that anybody expects, so every program would be refused", "write in place of each REPLACE what must come out, or why a waiver holds; in a driver write the call, and take the comment with REPLACE away";
        /// No test passes without a mutant.
        NothingJudges = "NOTHING_JUDGES", NothingRan,
            "no test or case passes without a mutant", "what fails anyway, or is not there, notices nothing", "write tests if there are none, or judge by a witness (--witness FILE); else make them pass: in a session there is no network, no other program, no /proc, and of the tree only what git would track";
        /// A file the command needs cannot be read.
        FileUnreadable = "FILE_UNREADABLE", Usage,
            "a file named on the command line cannot be read", "nothing is assumed in its place", "check the path";
        /// Another day than the clock's is confirmed.
        DayDiffers = "DAY_DIFFERS", Usage,
            "the day that is confirmed is not the clock's", "a day that is not today would open or close a budget", "set the clock right, then confirm the day that it says";
        /// A file of the command line cannot be written.
        OutputUnwritable = "OUTPUT_UNWRITABLE", Usage,
            "the output cannot be written", "a result that is not where it was asked for is lost", "name a new path in a directory that exists and may be written to";
        /// An amount of money is none.
        AmountInvalid = "AMOUNT_INVALID", Usage,
            "an amount of money on the command line is none", "money is counted exactly, or not at all", "state --usd AMOUNT, or --eur AMOUNT with --rate RATE";
        /// A certificate is of another request.
        CertificateDiffers = "CERTIFICATE_DIFFERS", Policy,
            "the certificate is not of this request", "a certificate lets in one commit, on one baseline, into one branch of one repository", "compare what is named here with --name, --branch, --baseline and --policy; for another request certify the commit again";
        /// A certificate that lets nothing in by itself.
        CertificateHeld = "CERTIFICATE_HELD", Policy,
            "the certificate is held: it does not let its commit in by itself", "who made it did not say where the commit goes", "certify it again for this place, in another clone whose branch may move: with this policy, --admit BRANCH and --name as here; or fetch the commit from the bundle (git fetch BUNDLE BRANCH) and let it in here with `flights admit`";
        /// A policy that leaves it open who signs.
        PolicyUnpinned = "POLICY_UNPINNED", Policy,
            "the policy does not name the keys that may sign", "whoever has any key would let commits in", "name the ids of the keys under \"keys\" in the policy";
        /// A revocation list that is not there, or is.
        ListMissing = "LIST_MISSING", Usage,
            "the revocation list is not there, or a new one would replace it", "a list that begins again forgets what was revoked", "name the existing list with --list, or begin one with --new NAME";
        /// A certificate that is not in the log.
        NotInLog = "NOT_IN_LOG", Usage,
            "the certificate is not in the log of this machine", "what was never written there cannot be proven to be there", "add it with `flights cert log append`, or make the proof where it was certified";
        /// An opening that cannot be read.
        OpeningUnreadable = "OPENING_UNREADABLE", Usage,
            "the opening cannot be read", "without salt and key a commitment stays closed", "give the opening.json that the flight wrote beside the certificate";
        /// A written certificate does not verify.
        SelfCheck = "SELF_CHECK", Ours,
            "the certificate just signed does not verify", "what was written is not what was meant", "report this with the output directory attached";
    }
}
