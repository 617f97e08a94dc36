use crate::HoldEffect;
use flightproof_core::{Refusal, Refused};
use std::fmt;

/// A refusal before or beside a run, where no hold is at stake.
pub type AgentRefusal = Refused<AgentCode>;

/// Why a run is not successful, and what that means for the money held for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentError {
    /// Which rule, and what was found. Never text of the result.
    pub refused: Refused<AgentCode>,
    /// What becomes of the hold.
    pub hold: HoldEffect,
}

impl AgentError {
    /// Which rule.
    pub fn code(&self) -> AgentCode {
        self.refused.code
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.refused, self.hold)
    }
}

impl std::error::Error for AgentError {}

impl From<AgentError> for Refusal {
    fn from(error: AgentError) -> Self {
        let note = error.hold.to_string();
        Self::from(error.refused).with_notes([note])
    }
}

flightproof_core::refusal_codes! {
    /// Refusals of the agent room: of plans and profiles, of the program, of its terminal result,
    /// of its process, of the hold, of the provider proxy, of the repair loop.
    pub enum AgentCode in "agent" {
        /// A profile breaks a rule of profiles.
        ProfileInvalid = "PROFILE_INVALID", Configuration,
            "the agent profile breaks a rule of profiles",
            "a profile decides what an agent may do; one that is not understood decides nothing",
            "compare it with the built-in profiles";
        /// No profile has this name.
        ProfileUnknown = "PROFILE_UNKNOWN", Usage,
            "no built-in profile has this name",
            "without a profile nothing is known about a program's limits and results",
            "use `claude`, `codex` or `gemini`";
        /// A budget or a number of turns is not of its grammar.
        LimitInvalid = "LIMIT_INVALID", Usage,
            "the budget or the number of turns is not written as a limit must be",
            "NaN, exponents, signs and rounding have all been read as 'no limit' somewhere",
            "write dollars as `12` or `12.50` (at most six decimals), turns as a whole number from 1";
        /// A plan asks for more than the operator allows.
        LimitWidened = "LIMIT_WIDENED", Configuration,
            "the plan asks for more money, turns or attempts than the operator allows",
            "a plan may narrow limits, never widen them",
            "lower the plan's limits or raise the operator's";
        /// The agent's part of a plan cannot be read.
        OrderInvalid = "ORDER_INVALID", Configuration,
            "the agent's part of the plan cannot be read",
            "an order that is half understood is not the order that was given",
            "mend the field that is named";
        /// The plan can never succeed.
        PlanHopeless = "PLAN_HOPELESS", Configuration,
            "the plan demands something it cannot ever provide",
            "it would spend money on attempts that must all be refused",
            "give the plan what is named, or stop demanding it";
        /// The program reports no cost, and running it unmetered was not chosen.
        AccountingUnsupported = "ACCOUNTING_UNSUPPORTED", Configuration,
            "the program reports no cost, and running it unmetered was not chosen",
            "a price guessed from tokens is no accounting",
            "choose `metering = \"unmetered\"`: the whole hold is then settled, and the certificate says so";
        /// The task text is empty or too long.
        TaskUnfit = "TASK_UNFIT", Configuration,
            "the task is empty or longer than an agent is given",
            "an agent without a task spends money on a guess, and one cut in half on the wrong half",
            "write the task in 1 to 65,536 bytes of text";
        /// Repository instructions cannot be handed over as they are.
        InstructionsUnfit = "INSTRUCTIONS_UNFIT", Input,
            "the repository's instructions are too long or are not plain text",
            "instructions that were cut may say the opposite",
            "shorten the file, or plan the flight without instructions";

        /// The program's file is not fit to be run.
        BinaryUnfit = "BINARY_UNFIT", Environment,
            "the agent program is not one ordinary file at an absolute path that only its owner can write",
            "what was checked must be what is run",
            "name the program by its absolute path and fix its permissions";
        /// The program's file changed.
        BinaryChanged = "BINARY_CHANGED", Environment,
            "the agent program's file is not the one that was checked",
            "programs that update themselves have replaced the checked version by another",
            "turn its updates off, name in the plan the version that is meant, and run again; if it had been started, its hold stays until it is resolved";
        /// The version line is not of the expected form.
        VersionUnreadable = "VERSION_UNREADABLE", Environment,
            "the program does not answer with exactly one version line of its own form",
            "a wrapper's banner has been read as the version of the program behind it",
            "name the program itself, not a wrapper";
        /// The version is below the floor.
        VersionTooOld = "VERSION_TOO_OLD", Environment,
            "the program is older than the oldest version whose limits hold",
            "older versions let sub-agents spend past the budget and cut results short",
            "install the version that is named, or a newer one";

        /// The result is longer than any honest one.
        ResultTooLarge = "RESULT_TOO_LARGE", Input,
            "the result is longer than a result may be",
            "its size is the sender's choice",
            "nothing can be done about this run; its hold stays until it is resolved";
        /// There is no result.
        NoResult = "NO_RESULT", Input,
            "the program ended without a result",
            "what a run without a result has cost is not known",
            "look the cost up with the provider and resolve the hold";
        /// The result is not UTF-8, or starts with a byte order mark.
        ResultEncoding = "RESULT_ENCODING", Input,
            "the result is not UTF-8, or starts with a byte order mark",
            "characters cut in two were a known fault of older versions",
            "look the cost up with the provider and resolve the hold";
        /// The output is not JSON.
        ResultMalformed = "RESULT_MALFORMED", Input,
            "the output is not one JSON document",
            "text is never searched for something that looks like a result",
            "look the cost up with the provider and resolve the hold";
        /// The result ends in its middle.
        ResultTruncated = "RESULT_TRUNCATED", Input,
            "the result ends in its middle",
            "what is missing may be the cost",
            "look the cost up with the provider and resolve the hold";
        /// Something follows the result.
        TrailingBytes = "TRAILING_BYTES", Input,
            "something follows the result",
            "whatever wrote it may also have written the result",
            "look the cost up with the provider and resolve the hold";
        /// There is more than one result.
        SeveralResults = "SEVERAL_RESULTS", Input,
            "there is more than one result",
            "each has its own cost, and which one counts is a guess",
            "look the cost up with the provider and resolve the hold";
        /// The result is a list.
        ResultArray = "RESULT_ARRAY", Input,
            "the result is a list of messages",
            "some setting made the program verbose, so its settings are not the pinned ones",
            "remove managed settings that turn `verbose` on";
        /// The result is JSON, but no object.
        ResultNotObject = "RESULT_NOT_OBJECT", Input,
            "the output is JSON, but no object",
            "a result has fields",
            "look the cost up with the provider and resolve the hold";
        /// The object is not a result.
        NotAResult = "NOT_A_RESULT", Input,
            "the object does not say that it is a result",
            "another message's numbers mean something else",
            "look the cost up with the provider and resolve the hold";
        /// The result belongs to a notification turn.
        NotMainResult = "NOT_MAIN_RESULT", Input,
            "the result belongs to a notification, not to the task",
            "such a result comes before the task's own and can be an empty success",
            "look the cost up with the provider and resolve the hold";
        /// A key stands twice.
        DuplicateKey = "DUPLICATE_KEY", Input,
            "a key stands twice in the result",
            "two readers would read two different costs",
            "look the cost up with the provider and resolve the hold";
        /// NaN or Infinity.
        NotFinite = "NOT_FINITE", Input,
            "the result has NaN or Infinity where a number belongs",
            "no limit is ever exceeded by NaN",
            "look the cost up with the provider and resolve the hold";
        /// Too deep or too many values.
        TooComplex = "TOO_COMPLEX", Input,
            "the result nests deeper or has more values than a result may",
            "reading it would cost more than it can be worth",
            "look the cost up with the provider and resolve the hold";

        /// The cost is missing.
        CostMissing = "COST_MISSING", Input,
            "the result has no total cost",
            "a missing number is not zero",
            "look the cost up with the provider and resolve the hold";
        /// The cost is not a number.
        CostNotNumber = "COST_NOT_NUMBER", Input,
            "a cost is not a number",
            "null and text have both been read as zero somewhere",
            "look the cost up with the provider and resolve the hold";
        /// The cost has a sign.
        CostNegative = "COST_NEGATIVE", Input,
            "a cost has a minus sign",
            "nobody is paid for running an agent",
            "look the cost up with the provider and resolve the hold";
        /// The cost has an exponent.
        CostExponent = "COST_EXPONENT", Input,
            "a cost is written with an exponent",
            "such a number is absurdly small or absurdly large, and readers round it differently",
            "look the cost up with the provider and resolve the hold";
        /// The cost is out of range.
        CostOutOfRange = "COST_OUT_OF_RANGE", Input,
            "a cost is above 999,999.999999 dollars or has more than 24 decimals",
            "money is counted in whole micro-dollars that cannot overflow",
            "look the cost up with the provider and resolve the hold";
        /// A success that cost nothing.
        CostZero = "COST_ZERO", Input,
            "work was done and nothing was counted as its cost",
            "a gateway that reports zero makes every budget endless",
            "look the cost up with the provider and resolve the hold";
        /// Total and parts differ.
        CostMismatch = "COST_MISMATCH", Input,
            "the costs of the models do not add up to the total",
            "one of the two is wrong, and which is a guess",
            "look the cost up with the provider and resolve the hold";
        /// A price is not from the list.
        CostBasisUnknown = "COST_BASIS_UNKNOWN", Input,
            "the program does not know the price of a model it used",
            "it fell back to another model's price, so the cost is made up",
            "look the cost up with the provider and resolve the hold";
        /// The number of turns is missing.
        TurnsMissing = "TURNS_MISSING", Input,
            "the result has no number of turns",
            "a missing number is not zero",
            "look the cost up with the provider and resolve the hold";
        /// The number of turns is no positive integer.
        TurnsInvalid = "TURNS_INVALID", Input,
            "the number of turns is no positive whole number",
            "a run that did something took at least one turn",
            "look the cost up with the provider and resolve the hold";
        /// The run took more turns than it may.
        OverTurns = "OVER_TURNS", Input,
            "the run took more turns than its limit, and calls itself a success",
            "a limit that was passed did not limit",
            "raise the limit, or make the task smaller; the cost is settled";
        /// Token counts are missing.
        TokensMissing = "TOKENS_MISSING", Input,
            "the result does not say which model used how many tokens",
            "without it nothing supports the cost",
            "look the cost up with the provider and resolve the hold";
        /// A token count is no whole number.
        TokensInvalid = "TOKENS_INVALID", Input,
            "a token count is no whole number of at most 2^53 - 1",
            "null, fractions and signs have been read as zero somewhere",
            "look the cost up with the provider and resolve the hold";
        /// A success without tokens.
        TokensZero = "TOKENS_ZERO", Input,
            "work was done and no tokens were counted",
            "a gateway that reports zero makes every budget endless",
            "look the cost up with the provider and resolve the hold";
        /// A model that was not allowed.
        ModelUnknown = "MODEL_UNKNOWN", Input,
            "a model or provider was used that the profile does not list",
            "its price is not known to the program, which then guesses",
            "add the model to the profile, with its margin, if it may be used";
        /// Two fields contradict each other.
        Contradictory = "CONTRADICTORY", Input,
            "two fields of the result contradict each other",
            "a result that is wrong about one thing proves nothing about another",
            "report it to the program's makers; the hold stays or is settled as stated";
        /// A field is missing or of another type.
        FieldInvalid = "FIELD_INVALID", Input,
            "a field that a result must have is missing or of another type",
            "a result of another version means other things by its fields",
            "look the cost up with the provider and resolve the hold";
        /// The kind of ending is unknown.
        SubtypeUnknown = "SUBTYPE_UNKNOWN", Input,
            "the result's subtype is none that is known",
            "an ending that is not known is not a success",
            "look the cost up with the provider and resolve the hold";
        /// The result belongs to another session.
        SessionMismatch = "SESSION_MISMATCH", Input,
            "the result names another session than the one that was started",
            "an old result must not pay for a new run",
            "look the cost up with the provider and resolve the hold";

        /// The program stopped at its budget.
        BudgetExhausted = "BUDGET_EXHAUSTED", Input,
            "the program stopped because its budget was used up",
            "work that was cut off is not a proposal",
            "raise the budget, or make the task smaller";
        /// The program stopped at its turns.
        TurnsExhausted = "TURNS_EXHAUSTED", Input,
            "the program stopped because its turns were used up",
            "work that was cut off is not a proposal",
            "raise the number of turns, or make the task smaller";
        /// The program failed in the middle.
        ExecutionFailed = "EXECUTION_FAILED", Input,
            "the program says that it failed while it worked",
            "work that was cut off is not a proposal",
            "look at the provider's status, then run again";
        /// The structured output could not be made.
        RetriesExhausted = "RETRIES_EXHAUSTED", Input,
            "the program gave up making its output fit",
            "work that was cut off is not a proposal",
            "make the task simpler";
        /// The provider answered with an error.
        ApiError = "API_ERROR", Input,
            "the provider answered with an error, under the name of a success",
            "the word success and exit status 0 are no proof of work",
            "check the model's name, the key and the provider's limits";
        /// The run did not complete.
        NotCompleted = "NOT_COMPLETED", Input,
            "the run ended for another reason than that it was complete, or names none",
            "only a run that ended of itself has finished its work",
            "run again; a program that names no reason is too old";
        /// The model stopped early.
        StoppedEarly = "STOPPED_EARLY", Input,
            "the model's last answer did not end of itself",
            "an answer that was cut off, refused or waits for a tool is not the end of a task",
            "make the task smaller, or run again";
        /// A tool was denied.
        PermissionDenied = "PERMISSION_DENIED", Input,
            "the agent was denied a tool it asked for",
            "a run that could not do what it wanted reports success all the same",
            "add the tool to the plan's inventory if it may be used";
        /// The result has no text.
        EmptyResult = "EMPTY_RESULT", Input,
            "the result text is empty although tokens were spent",
            "a known fault returns an empty success before the work is done",
            "run again";
        /// More than the budget, within the hold.
        OverBudget = "OVER_BUDGET", Input,
            "the run cost more than its budget",
            "a limit that was passed did not limit",
            "raise the budget, or make the task smaller; the actual cost is settled";
        /// More than the hold.
        OverHold = "OVER_HOLD", Input,
            "the run cost more than was held for it",
            "the margin above the budget must cover the worst last answer, and did not",
            "the actual cost is settled; raise the model's margin in the profile before the next run";

        /// Exit status and result disagree.
        ExitDisagrees = "EXIT_DISAGREES", Input,
            "the result says success and the exit status does not",
            "all signs must agree before a run counts",
            "look at the program's own log";
        /// A signal ended the process.
        Signalled = "SIGNALLED", Input,
            "a signal ended the program",
            "what it was doing then is not known",
            "look for memory limits or another killer; where no result tells the cost, the hold stays: look the cost up with the provider and resolve it, then run again";
        /// The process stayed after its result.
        NeverExited = "NEVER_EXITED", Input,
            "the program gave its result and then did not end in time",
            "what still runs may still spend and still write",
            "run again; the reported cost is settled";
        /// Time ran out.
        DeadlinePassed = "DEADLINE_PASSED", Deadline,
            "the program was still running at its deadline and was ended",
            "what it has cost by then is not known unless it said so",
            "look the cost up with the provider and resolve the hold; raise the deadline";
        /// More output than is read.
        OutputOverflow = "OUTPUT_OVERFLOW", Input,
            "the program printed more than is read",
            "output is the agent's choice; memory is not",
            "look the cost up with the provider and resolve the hold";
        /// The program's result and the proxy's count disagree.
        ProxyDisagrees = "PROXY_DISAGREES", Input,
            "the result speaks of work, and no provider request went through the proxy",
            "either the result is made up or there is another way out",
            "check the session's network; the hold stays until it is resolved";
        /// The process could not be started.
        SpawnFailed = "SPAWN_FAILED", Environment,
            "the agent program could not be started",
            "nothing ran",
            "read the reason, mend it, run again";

        /// The hold was not granted.
        HoldRefused = "HOLD_REFUSED", Policy,
            "the ledger does not grant the hold",
            "spent and held money together would pass a cap",
            "wait for the next day, resolve old holds, or raise the cap";
        /// It is not known whether the ledger took the change.
        HoldUncertain = "HOLD_UNCERTAIN", Environment,
            "it is not known whether the ledger took the change",
            "a commit that failed may still be there after a crash",
            "open the ledger again and recover the run: the same key asks the same question";
        /// The run was settled with another amount.
        SettleConflict = "SETTLE_CONFLICT", Evidence,
            "the run was settled before, with another amount",
            "a run costs one amount",
            "the first amount stands; find out who settled it";
        /// The work could not be captured.
        CaptureFailed = "CAPTURE_FAILED", Input,
            "the agent's work could not be captured as one commit",
            "only what was captured before the session is gone can be judged",
            "read the reason; the cost is settled and the session is gone";
        /// The session's end is not certain.
        CloseUncertain = "CLOSE_UNCERTAIN", Environment,
            "it is not certain that nothing of the session is left",
            "what is left may still spend and still write",
            "find and end what is left, then resolve the hold";
        /// The run was interrupted.
        Interrupted = "INTERRUPTED", Environment,
            "the run was interrupted and what it did since is not known",
            "a run whose outcome is unknown is never started a second time",
            "look the cost up with the provider and resolve the hold; plan a new run";
        /// An event that cannot happen in this state.
        OutOfTurn = "OUT_OF_TURN", Ours,
            "an event came that cannot happen in this state of the run",
            "a driver that is out of step must not go on",
            "report it";

        /// A request head is too long.
        HeadTooLarge = "HEAD_TOO_LARGE", Input,
            "a provider request's head is longer than the proxy reads",
            "a head without an end is a way to keep the proxy waiting",
            "send fewer or shorter headers";
        /// A request head breaks the grammar.
        HeadMalformed = "HEAD_MALFORMED", Input,
            "a provider request's head breaks the one grammar the proxy reads",
            "what two readers read differently smuggles a second request",
            "send plain HTTP/1.1";
        /// The host is not the plan's.
        HostRefused = "HOST_REFUSED", Input,
            "a request names another host than the plan's endpoints",
            "the session's one way out leads to the named provider only",
            "name the host in the plan if the agent needs it";
        /// The operator's key would go to a host of the plan's own.
        CredentialHost = "CREDENTIAL_HOST", Configuration,
            "the provider's key would be given to a host that is not the provider's",
            "whoever wrote the plan would learn the operator's key",
            "allow the host with --key-for HOST if it is yours, or take the key out of the environment";
        /// The method or path is not the plan's.
        EndpointRefused = "ENDPOINT_REFUSED", Input,
            "a request names a method or a path that the plan does not list",
            "other endpoints of a provider store files, start jobs or spend elsewhere",
            "name the path in the plan if the agent needs it";
        /// The body cannot be forwarded.
        BodyRefused = "BODY_REFUSED", Input,
            "a request's body has no plain length, is too long, or is not what its length says",
            "chunked and ambiguous bodies smuggle a second request",
            "send a Content-Length and exactly that many bytes";
        /// The hold is used up.
        HoldUsedUp = "HOLD_USED_UP", Policy,
            "another request could cost more than is left of the hold",
            "what is not held must not be spent",
            "raise the budget for the next run";
        /// The count of requests is used up.
        RequestsUsedUp = "REQUESTS_USED_UP", Policy,
            "the run has made all the provider requests it may",
            "a loop of cheap requests is still a loop",
            "raise the plan's `max_requests` for the next run";
        /// The proxy has no place left, or is closed.
        ProxyClosed = "PROXY_CLOSED", Environment,
            "the proxy takes no more requests: the run is ending, or too many are open",
            "what is not counted must not be spent",
            "nothing to do if the run is over; else make fewer requests at once";
        /// The provider cannot be reached or answers wrongly.
        UpstreamFailed = "UPSTREAM_FAILED", Environment,
            "the provider cannot be reached, or its answer is too long or too slow",
            "the request counts as made: it may have cost something",
            "check the machine's network and the provider's status";

        /// All attempts are used up.
        AttemptsUsedUp = "ATTEMPTS_USED_UP", Policy,
            "every attempt was refused",
            "the number of attempts is a limit",
            "read the last refusal; change the task or the plan";
        /// An attempt repeats an earlier one.
        ProposalRepeated = "PROPOSAL_REPEATED", Policy,
            "an attempt proposed the same bytes as an earlier one",
            "the same bytes get the same answer; asking again only costs money",
            "read the refusal; change the task or the plan";
    }
}
