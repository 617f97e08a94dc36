flightproof_core::refusal_codes! {
    /// Refusals of the session room.
    pub enum SessionCode in "session" {
        /// The channel to the runner broke.
        SessionLost = "SESSION_LOST", Environment,
            "the session ended before it answered", "an answer that never came says nothing about the candidate", "run the flight again; if it repeats, look at the kernel log for an out-of-memory kill";
        /// Something was asked of a session that is closed.
        SessionClosed = "SESSION_CLOSED", Ours,
            "a closed session was asked to do something", "nothing runs after the proof that nothing is left", "report this as a bug";
        /// The runner's answer does not fit the request or the protocol.
        ProtocolBroken = "PROTOCOL_BROKEN", Environment,
            "the runner's answer does not fit what was asked", "a session that answers out of turn may be answering for somebody else", "run the flight again; report it if it repeats with the same candidate";
        /// The runner refused a request.
        RunnerRefused = "RUNNER_REFUSED", Environment,
            "the runner could not do what it was asked", "the session did not get the bytes or the program it must have", "read the runner's code in the detail; a full scratch needs a larger scratch limit";
        /// A program did not start inside the session.
        LaunchFailed = "LAUNCH_FAILED", Environment,
            "a program could not be started inside the session", "a program that never ran gave no answer", "read the reason in the detail; run `flights doctor`";
        /// The session's whole lifetime ran out.
        Deadline = "DEADLINE", Deadline,
            "the session's lifetime ran out", "work without an end would hold the machine", "give the plan a longer session lifetime, or make the build and the cases quicker";
        /// Somebody stopped the program.
        Interrupted = "INTERRUPTED", Environment,
            "the program was told to stop, and ended its sessions", "what was not finished proves nothing", "start it again";
        /// The specification makes no sense.
        SpecInvalid = "SPEC_INVALID", Configuration,
            "the session's limits or paths cannot be meant", "a limit of zero, or a scratch larger than the memory it is charged to, would fail later and worse", "correct the value named in the detail";
        /// The runner artifact is not the one program it must be.
        RunnerInvalid = "RUNNER_INVALID", Ours,
            "the artifact with the runner cannot be used", "an unknown program must not act as the runner", "report this as a bug";
        /// bubblewrap is not installed.
        BwrapMissing = "BWRAP_MISSING", Environment,
            "bubblewrap is not where it should be", "there is no sandbox without it, and never a weaker one instead", "install it: apt-get install bubblewrap";
        /// The user has no cgroup of their own.
        NoDelegation = "NO_DELEGATION", Environment,
            "there is no cgroup in which limits could be set", "a session whose memory, processes and cpu are not limited is not opened", "start it in a delegated scope: systemd-run --user --scope -p Delegate=yes -- flights …";
        /// The kernel or the mounts offer no usable controllers.
        NoControllers = "NO_CONTROLLERS", Environment,
            "the cgroup controllers memory, pids and cpu are not all available", "a limit that cannot be enforced is not asked for", "mount the missing controllers, or boot with systemd.unified_cgroup_hierarchy=1";
        /// newuidmap or a range in /etc/subuid is missing.
        NoUidRange = "NO_UID_RANGE", Environment,
            "there is no range of a million user ids for the session", "each case needs a user id of its own", "install uidmap and add a range, as root: apt-get install uidmap && usermod --add-subuids 10000000-10999999 --add-subgids 10000000-10999999 \"$USER\"";
        /// Ubuntu's rule against unprivileged user namespaces is on.
        UserNamespaceRestricted = "USER_NAMESPACE_RESTRICTED", Environment,
            "this system does not let ordinary users make user namespaces", "the sandbox is made of them", "allow bubblewrap to: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or start flights as root";
        /// The sandbox did not come up.
        StartFailed = "START_FAILED", Environment,
            "the sandbox did not start", "without it nothing of the candidate may run", "read the last lines in the detail and run `flights doctor`";
        /// A limit or privilege is weaker than asked, or cannot be read.
        Shortfall = "SHORTFALL", Environment,
            "the session is weaker than it was asked to be", "a limit counts only once it was read back", "read which limit or act in the detail; run `flights doctor` on this machine";
        /// The toolchain directory cannot be used.
        ToolchainInvalid = "TOOLCHAIN_INVALID", Environment,
            "the toolchain cannot be named by its content", "a certificate names the compiler that was used", "install the toolchain of the plan's language on this machine; for Rust, rustup's: `rustc --print sysroot` shows where it is";
        /// There is no toolchain profile of this name.
        ProfileUnknown = "PROFILE_UNKNOWN", Configuration,
            "there is no toolchain profile of this name", "what is not known how to be built, offline and without running anything first, is not built", "name one of the known languages in the witness";
        /// A tree needs something that is fetched or run before it is built.
        DependencyUnsupported = "DEPENDENCY_UNSUPPORTED", Input,
            "the tree names dependencies that this toolchain profile cannot carry into the session", "sessions have no network, and nothing of a candidate runs before its cases", "put what is needed into the tree as source, and remove the file that is named";
        /// A dependency is not in cargo's cache.
        CrateMissing = "CRATE_MISSING", Environment,
            "a dependency the lock names is not in cargo's cache", "sessions have no network; what is not here cannot be built", "fetch what the candidate's lock names, in a folder of its own (cargo runs nothing of it): dir=$(mktemp -d) && git archive CANDIDATE | tar -x -C \"$dir\" && (cd \"$dir\" && cargo fetch --locked); where the lock comes from --lock, lay it there as Cargo.lock first; a suite and generated inputs need what the baseline's lock names, too";
        /// A cached dependency has other bytes than the lock says.
        CrateMismatch = "CRATE_MISMATCH", Evidence,
            "a cached dependency has other bytes than its checksum in the lock", "the build would be of something nobody reviewed", "remove the file named in the detail and run cargo fetch --locked";
        /// What arrived inside is not what was sent.
        UploadMismatch = "UPLOAD_MISMATCH", Evidence,
            "the session received other bytes than were sent", "the verdict would be about another tree", "run the flight again; report it if it repeats";
        /// The build named a product that cannot be used.
        BuildProduct = "BUILD_PRODUCT", Input,
            "the build ended well but did not yield the program that was asked for", "there is nothing to run the cases on", "check the name of the binary or library in the witness against the package's targets";
        /// What a generator left could not be listed.
        GeneratedUnreadable = "GENERATED_UNREADABLE", Environment,
            "what a generator left could not be listed or hashed in its session", "what nobody read cannot be held against the commit", "the session needs find and sha256sum; a generator that leaves many thousand files is split into several rules";
        /// No container engine answers.
        EngineMissing = "ENGINE_MISSING", Environment,
            "no container engine answers", "a flight that shall fly on an engine is never moved to another backend in silence", "where its socket says `Permission denied`, be root or a member of its group (usermod -aG docker USER, then log in anew); else install and start one: apt-get install docker.io && dockerd; or name one that listens elsewhere in DOCKER_HOST";
        /// An engine's address makes no sense or is not safe.
        EngineAddress = "ENGINE_ADDRESS", Configuration,
            "the address of the container engine cannot be used", "who listens on the way to an engine without TLS is root there", "use unix:///…, or tcp://… with DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH";
        /// The engine's interface is older than what is spoken here.
        EngineTooOld = "ENGINE_TOO_OLD", Environment,
            "the container engine is too old", "what it cannot be asked for and asked about cannot be attested", "update it: version 1.41 of the interface (Docker Engine 20.10) is the oldest";
        /// The engine did not do or say what it was asked.
        EngineFault = "ENGINE_FAULT", Environment,
            "the container engine failed", "what an engine could not do says nothing about a candidate", "read what it said in the detail and its log; run the flight again";
        /// The engine does not have the image, or has another one.
        ImageUnfit = "IMAGE_UNFIT", Environment,
            "the session's image is not there, or is not what was pinned", "a certificate names the image by its content, and nothing is fetched", "build it with scripts/session-image, or load it into the engine, and pin the id it has there";
        /// Another owner has the session.
        LeaseLost = "LEASE_LOST", Environment,
            "the session belongs to another owner by now", "two owners would end each other's work, and neither could say what the end proves", "run the flight again; if it repeats, look for a second program that uses the same state directory";
        /// The session's own network cannot be entered.
        NetworkEntry = "NETWORK_ENTRY", Environment,
            "the session's own network could not be entered to listen there", "an agent would have no way to its provider, or another one than the counted one", "start flights as root, in a session of this machine: nobody else can enter it; or name no endpoints";
        /// Something of a session is left.
        Leak = "LEAK", Environment,
            "something of the session is still there after its end", "what was left could go on acting", "run `flights reap`; it removes sessions whose owner is gone";
        /// A record or directory of the host could not be written or read.
        HostIo = "HOST_IO", Environment,
            "a file or directory of the host could not be used", "a session that is not registered could be left behind unseen", "check permissions and free space of the path in the detail";
        /// A fake session was asked something its recording does not hold.
        FakeMismatch = "FAKE_MISMATCH", Evidence,
            "the replay asked something the recording does not hold at this place", "the flight did not take the recorded path", "find the change that made the flight ask something else; record it again only if that is meant";
        /// A fake session was closed before all of its recording was used.
        FakeUnused = "FAKE_UNUSED", Evidence,
            "the replay ended before the recording did", "the flight did not take the recorded path", "record the flight again if the change of path is meant";
        /// What a session said could not be written down.
        Unrecorded = "UNRECORDED", Environment,
            "an exchange with the session could not be recorded", "a recording with a gap would replay to something else", "check free space for the recording, then fly again";
    }
}
