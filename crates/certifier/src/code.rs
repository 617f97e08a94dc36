use flightproof_core::Refused;

/// A refusal of this crate.
pub type CertifierError = Refused<CertifierCode>;

flightproof_core::refusal_codes! {
    /// Refusals of the certifier.
    pub enum CertifierCode in "certifier" {
        // files of the operator
        /// A witness, a policy or a file of rules of a later version.
        FormatTooNew = "FORMAT_TOO_NEW", TooNew,
            "the file is of a newer format than this program reads", "guessing at what it does not know could pass what must fail", "use a newer release of flights, or write the file in the version that `flights schema` shows";
        // witness
        /// The witness file breaks its schema.
        WitnessInvalid = "WITNESS_INVALID", Configuration,
            "the witness cannot be used as it is", "a witness that could be read in two ways, or that cannot be run, judges nothing", "compare the file with the witness schema in docs/formats.md";
        /// One constant answer would meet every case.
        WitnessToothless = "WITNESS_TOOTHLESS", Configuration,
            "one and the same answer meets every case of the witness", "a program that ignores its input would pass it", "add a case whose exit status or standard output differs from the others";
        /// The witness, or its driver, lies in the tree it judges.
        WitnessExposed = "WITNESS_EXPOSED", Configuration,
            "the witness lies inside the candidate's tree, or did before the change", "its author could read the expected answers, or change them", "keep the witness outside the repository, or declare it \"public\": true";
        /// The baseline gives no answers to compare with.
        BaselineUnfit = "BASELINE_UNFIT", Configuration,
            "the baseline gives no answer that a candidate could be compared with", "an answer that wavers, crashes or is cut would excuse any other", "leave such inputs out of the grammar, or declare them to differ and judge them by cases";
        /// The baseline's tests cannot judge.
        SuiteUnfit = "SUITE_UNFIT", Configuration,
            "the tests of the baseline cannot be run as a suite", "what the host cannot tell apart from a program's own words is no result", "name tests of a library that use Rust's own harness, print nothing beside it and start no program of their package (CARGO_BIN_EXE_…), or judge by cases";
        /// The candidate takes away a file of the baseline's tests.
        SuiteChanged = "SUITE_CHANGED", Input,
            "the change takes away a file that the baseline's tests need", "tests that are gone find nothing", "leave the file, or judge the change by cases";
        // source
        /// A changed Rust file beyond the size limit.
        SourceTooLarge = "SOURCE_TOO_LARGE", Input,
            "a changed source file is too large to be checked", "the work to check a stranger's file is bounded", "split the file into modules";
        /// A changed Rust file that is no UTF-8 or no Rust.
        SourceUnreadable = "SOURCE_UNREADABLE", Input,
            "a changed source file cannot be read as what it is named", "what the checks cannot read they cannot judge, and the compiler might read it differently", "correct the place that is named: close every bracket and text; a script line or a byte order mark has to go";
        /// Characters that deceive a reader.
        SourceBidi = "SOURCE_BIDI", Input,
            "a changed source file shows a reader something else than the compiler sees", "invisible, reordering or foreign-looking characters can hide what a change does", "write the character as an escape such as \\u{200d}, and names in ASCII";
        /// A text that a compiler could read in another way than the checks.
        SourceAmbiguous = "SOURCE_AMBIGUOUS", Input,
            "a changed source file can be read in two ways", "a compiler might run what the checks took for a comment or a text", "write the place that is named plainly: no trigraph, no spliced line, no escape in a name, UTF-8 alone, one kind of indentation; end a statement of TypeScript with a semicolon, and begin its types on the line of what they belong to";
        /// A changed Rust file nested too deeply for a parser.
        SourceTooDeep = "SOURCE_TOO_DEEP", Input,
            "a changed source file is nested too deeply", "parsers descend once for each level, and such a text can end them", "split the expression, type or chain at the place that is named";
        // fence
        /// `unsafe` or inline assembly in changed code.
        UnsafeCode = "UNSAFE_CODE", Input,
            "changed code is unsafe", "unsafe code can reach everything that watches it, so nothing observed of it is evidence", "write it without unsafe, or have a person review and commit it";
        /// Changed code looks at its own source or program file.
        SourceIntrospection = "SOURCE_INTROSPECTION", Input,
            "changed code looks at its own source, place or program file", "such code can tell a mutated build from the shipped one and behave well only when it is judged", "remove the construct that is named";
        /// Changed code makes or finds code while it runs.
        DynamicCode = "DYNAMIC_CODE", Input,
            "changed code makes code, or finds it by a name that it puts together", "what is only known while the program runs no rule reads and no mutant changes", "name what is used, as literal text, keep keys of the program in a map, and use modules that only answer and compute";
        /// Changed code steps outside the language's linking.
        ForeignLinkage = "FOREIGN_LINKAGE", Input,
            "changed code links in a way the language does not check", "it can run before main, replace the allocator or another crate's function", "remove the construct that is named, or have a person review and commit it";
        /// Changed code that is compiled only under a condition.
        ConditionalCode = "CONDITIONAL_CODE", Input,
            "changed code is compiled only under a condition", "the build that is judged and the build that is shipped could hold different code", "decide at run time, or have a person review and commit the condition; #[cfg(test)] alone is accepted";
        /// A changed file that the compiler reads as source though it is no `.rs` file.
        UncheckedSource = "UNCHECKED_SOURCE", Input,
            "a file is compiled as Rust though it is not named so", "the checks of changed code look at .rs files, this one would pass beside them", "give Rust sources names that end in .rs, inside the tree, and do not include! them";
        // dependencies
        /// No lock file, and the plan has none.
        LockMissing = "LOCK_MISSING", Configuration,
            "neither the repository nor the plan has a Cargo.lock", "without it nobody knows which dependencies would be built", "commit a Cargo.lock, or give one with --lock FILE (in a plan: change.lock); a program in another language than Rust has none: name the language in the witness, such as \"language\": \"python\"";
        /// A lock file changed without a grant.
        LockChanged = "LOCK_CHANGED", Input,
            "the change touches Cargo.lock", "other dependencies are other code, which somebody has to agree to", "if the new dependencies are wanted, repeat with --grant and exactly this path, and with it every other path that changes, since grants replace the default";
        /// A package that is new in the lock file was not granted.
        DependencyNotGranted = "DEPENDENCY_NOT_GRANTED", Input,
            "the change brings a package that nobody agreed to", "a lock file that may change may still bring anything: each new package is agreed to by name, version and checksum", "look at each package that is named, and repeat with these options for those that are wanted (in a plan: change.packages, without the option's name)";
        /// The lock file cannot be read.
        LockUnreadable = "LOCK_UNREADABLE", Input,
            "Cargo.lock cannot be read", "dependencies are taken only as an exact list of name, version and checksum", "let a current cargo write the file again (format version 2, 3 or 4)";
        /// The lock contradicts the tree or itself.
        LockInconsistent = "LOCK_INCONSISTENT", Input,
            "Cargo.lock does not fit the tree", "it names a local package that is not there, or one package twice", "run `cargo update --workspace` and commit the lock file";
        /// A dependency from elsewhere than crates.io.
        DependencyNotRegistry = "DEPENDENCY_NOT_REGISTRY", Input,
            "a dependency does not come from crates.io with a checksum", "only such packages can be named by content and shipped without running anything", "depend on a published version";
        /// A path dependency that is new or leaves the tree.
        DependencyPath = "DEPENDENCY_PATH", Input,
            "a path dependency is new or points out of the tree", "code outside the captured tree is not judged, and code inside it could be linked anew unnoticed", "depend on a published version, or have a person commit the new dependency first";
        /// `[patch]` or `[replace]` changed.
        DependencyPatched = "DEPENDENCY_PATCHED", Input,
            "the change replaces dependencies by others", "[patch] and [replace] put other code under a known name", "remove the section";
        /// A build script added or changed.
        BuildScriptNew = "BUILD_SCRIPT_NEW", Input,
            "the change touches a build script", "it would run on every machine that builds the code, before any test", "do without it, or have a person review and commit it";
        /// A procedural macro crate declared.
        ProcMacroNew = "PROC_MACRO_NEW", Input,
            "the change declares a procedural macro", "it would run inside the compiler on every machine that builds the code", "do without it, or have a person review and commit it";
        /// `links` declared.
        NativeLinksNew = "NATIVE_LINKS_NEW", Input,
            "the change declares a native library", "`links` lets a build script steer the linker", "remove the key";
        /// A toolchain file added, changed or removed.
        ToolchainFile = "TOOLCHAIN_FILE", Input,
            "the change touches a toolchain file", "rustup would run the compiler it names, from wherever it says", "leave the file as it is; the operator chooses the toolchain";
        /// Something below a `.cargo` directory added, changed or removed.
        CargoConfig = "CARGO_CONFIG", Input,
            "the change touches cargo's configuration", "it can name wrappers, linkers and aliases that every later cargo command runs", "leave the directory as it is, or have a person review and commit it";
        /// A manifest cannot be read.
        ManifestUnreadable = "MANIFEST_UNREADABLE", Input,
            "a changed Cargo.toml cannot be read", "what the checks cannot read they cannot judge", "correct the place that is named";
        // keys
        /// A key file or its bytes cannot be read.
        KeyMalformed = "KEY_MALFORMED", Configuration,
            "a key cannot be read", "a key that is not exactly one Ed25519 key could be taken for another", "give the file that is asked for, the secret key (FILE.pem) or the public one (FILE.pem.pub), as `flights key new` or `openssl genpkey -algorithm ed25519` write it; a public key may be the one line `ssh-ed25519 …` of OpenSSH as well";
        /// A public key of small or mixed order.
        KeyWeak = "KEY_WEAK", Configuration,
            "a public key is weak", "anybody can make signatures that some verifiers accept under such a key", "ask the signer for a real key; this one was made to deceive";
        /// A key of another algorithm.
        KeyTypeUnsupported = "KEY_TYPE_UNSUPPORTED", Configuration,
            "a key is not an Ed25519 key", "certificates are signed with Ed25519 and nothing else, so that no algorithm can be swapped for a weaker one", "use an Ed25519 key";
        /// A key under a passphrase, and no passphrase.
        KeyLocked = "KEY_LOCKED", Configuration,
            "the key is under a passphrase and none was given", "without it the key cannot be opened", "give the passphrase with --passphrase-file FILE or in FLIGHTPROOF_PASSPHRASE_FILE, or use a terminal";
        /// A passphrase that does not open the key.
        PassphraseWrong = "PASSPHRASE_WRONG", Configuration,
            "the passphrase does not open the key", "either it is another key's, or the file is damaged; the two look the same", "check the passphrase; it is the first line of the file, without the line's end";
        /// A key file that asks for more work than a real one.
        KeyCostly = "KEY_COSTLY", Configuration,
            "opening the key would take too much memory or time", "whoever wrote the file chose how much, and a stranger's choice must not stop the machine", "write the key anew with `openssl pkcs8 -topk8 -scrypt` and its defaults";
        // envelope
        /// Signatures over something else.
        PayloadDiffers = "PAYLOAD_DIFFERS", Evidence,
            "a signature is to be added to an envelope that holds something else", "two keys agree only if they sign the same bytes", "check that both speak of the same certificate, branch and repository";
        /// The envelope exceeds its limit.
        EnvelopeTooLarge = "ENVELOPE_TOO_LARGE", Evidence,
            "a certificate file is too large", "the work to read a stranger's file is bounded", "check that the file is a certificate; a real one is far smaller";
        /// The envelope is not one DSSE document that can be read in only one way.
        EnvelopeMalformed = "ENVELOPE_MALFORMED", Evidence,
            "a certificate file is not a well-formed envelope", "a document that two readers read differently proves nothing", "give the signed file itself, exactly as it was written; of a flight that is certificate.dsse.json in its directory";
        /// The payload is not an in-toto statement by its declared type.
        PayloadTypeUnsupported = "PAYLOAD_TYPE_UNSUPPORTED", Evidence,
            "the envelope holds something else than a certificate", "a signature over another kind of document says nothing about this one", "give the certificate, not another signed file";
        /// There is no signature at all.
        SignatureMissing = "SIGNATURE_MISSING", Evidence,
            "the envelope carries no signature", "an unsigned certificate is a claim of whoever wrote the file", "use the signed file";
        /// More signatures than anybody needs.
        SignaturesTooMany = "SIGNATURES_TOO_MANY", Evidence,
            "the envelope carries too many signatures", "the work to check a stranger's file is bounded", "remove the signatures that nobody trusts";
        /// No trusted key signed these bytes.
        SignatureInvalid = "SIGNATURE_INVALID", Evidence,
            "no trusted key signed this certificate", "it was signed by somebody else, or changed afterwards", "check that the right public key was given and that the file is unchanged";
        /// Fewer distinct trusted keys signed than needed.
        ThresholdNotMet = "THRESHOLD_NOT_MET", Evidence,
            "too few trusted keys signed this certificate", "the policy asks for several signers, each counted once", "let those whose signatures are missing look at it and run `flights cert cosign FILE`";
        /// A threshold of zero.
        ThresholdInvalid = "THRESHOLD_INVALID", Configuration,
            "the number of needed signatures is zero", "such a rule accepts what nobody signed", "set the threshold to at least 1";
        // statement
        /// The payload is not a statement of the known shape.
        StatementMalformed = "STATEMENT_MALFORMED", Evidence,
            "the signed payload is not a certificate of the known shape", "a field that is missing, unknown or of another type may mean something this program does not understand", "verify with the program version that made the certificate, or make a new one";
        /// The payload is not in its canonical form.
        StatementNotCanonical = "STATEMENT_NOT_CANONICAL", Evidence,
            "the signed payload is not in canonical form", "one certificate has one spelling, so that its id names it and replay can compare it", "make the certificate with this program";
        /// Another version of the in-toto statement.
        StatementTypeUnsupported = "STATEMENT_TYPE_UNSUPPORTED", Evidence,
            "the statement is of another version", "its fields may mean something else", "give a certificate of in-toto Statement v1";
        /// A statement about something else than a certified commit.
        PredicateTypeUnsupported = "PREDICATE_TYPE_UNSUPPORTED", Evidence,
            "the statement is no flight certificate", "a valid signature over another kind of statement certifies nothing", "give the certificate, not another attestation of the same signer";
        /// No subject.
        SubjectMissing = "SUBJECT_MISSING", Evidence,
            "the certificate names no subject", "it would be true of everything", "make a new certificate";
        /// More than one subject.
        SubjectAmbiguous = "SUBJECT_AMBIGUOUS", Evidence,
            "the certificate names several subjects", "a certificate is about one tree; a second one would ride along unjudged", "make one certificate per tree";
        /// The subject has no digest by a secure algorithm.
        DigestUnacceptable = "DIGEST_UNACCEPTABLE", Evidence,
            "the subject is named without SHA-256, or beside it by an algorithm that is not checked", "digests that can be forged, or that nobody compares, name nothing", "make a new certificate";
        /// A digest that is not 64 lower-case hexadecimal digits.
        DigestMalformed = "DIGEST_MALFORMED", Evidence,
            "a digest of the subject is misspelt", "a digest has one spelling: 64 lower-case hexadecimal digits", "make a new certificate";
        /// The certificate is about another tree.
        SubjectMismatch = "SUBJECT_MISMATCH", Evidence,
            "the certificate is about another tree, another commit or another baseline", "only the exact bytes that were judged are certified, and only on what they were judged on", "the message says which differs: for a tree, name a revision with --repo DIR --subject REV, since in a directory build output and files that git does not track count too; for a commit or baseline, ask about the one it was made for; or certify this one";
        /// An input kind is missing.
        InputMissing = "INPUT_MISSING", Evidence,
            "the certificate lacks an input", "every kind of evidence must be on it, or something was never shown", "make a new certificate";
        /// A claim is there and says nothing.
        ClaimEmpty = "CLAIM_EMPTY", Evidence,
            "a claim of the certificate is empty", "no cases, no mutants or no limits prove nothing, however well they are signed", "certify with a witness that has cases and reaches the change";
        /// Two places of the certificate contradict each other.
        Inconsistent = "INCONSISTENT", Evidence,
            "the certificate contradicts itself", "at least one of the two claims is false", "do not trust its signer before this is explained";
        /// Build and execution happened in different sessions.
        SessionMismatch = "SESSION_MISMATCH", Evidence,
            "the program was built in another session than it ran in", "what was attested for one session says nothing about another", "build and run in one session";
        /// More generations than anybody looks back over.
        LineageTooDeep = "LINEAGE_TOO_DEEP", Evidence,
            "too many certificates build on each other", "each generation is judged against the one before, and nobody but its author may have looked at any of them", "have a person review the baseline, and certify the next commit without a parent";
        /// A lineage that does not lead down to a commit no flight made.
        LineageBroken = "LINEAGE_BROKEN", Evidence,
            "the certificates that this one builds on do not lead down to its beginning", "a parent that is missing, of another commit or at another depth proves nothing", "give every certificate of the lineage with --parent, from the baseline's down to the one without a parent";
        // policy
        /// The policy file breaks its schema.
        PolicyInvalid = "POLICY_INVALID", Configuration,
            "the policy cannot be read", "a policy that is read in two ways permits too much", "compare the file with the policy schema in docs/formats.md";
        /// A policy without a required gate.
        PolicyEmpty = "POLICY_EMPTY", Configuration,
            "the policy requires no gate", "a policy that asks for nothing accepts everything", "name at least one gate in required_gates";
        /// None of the given keys may sign under the policy.
        KeyUnauthorized = "KEY_UNAUTHORIZED", Policy,
            "the policy trusts none of the keys that were given", "a good signature by somebody the policy does not name is worth nothing", "give a key the policy names, or have the policy changed by its owner";
        /// A gate the policy requires was not passed.
        GateMissing = "GATE_MISSING", Policy,
            "a required gate was not passed", "the policy asks for a proof that this certificate does not hold", "certify again with that gate; of a change of tests alone no mutant is made, which a policy takes with allow.tests; a language that does not have it cannot meet this policy";
        /// The certificate is for another repository.
        RepositoryMismatch = "REPOSITORY_MISMATCH", Policy,
            "the certificate is for another repository", "the policy is for one repository by name", "use the policy of that repository";
        /// The certificate used another witness than the policy names.
        WitnessMismatch = "WITNESS_MISMATCH", Policy,
            "the commit was judged by another witness", "passing somebody else's cases proves something else", "give the witness that the certificate was made with; where the policy names another, certify again with that one";
        /// The witness was public and the policy wants a private one.
        WitnessPublic = "WITNESS_PUBLIC", Policy,
            "the commit was judged by a public witness", "its author could read the expected answers", "certify with a private witness, or set allow.public_witness";
        /// The change is in a language that the policy does not name.
        LanguageNotAllowed = "LANGUAGE_NOT_ALLOWED", Policy,
            "the change is in a language that the policy does not allow", "the fence of other languages than Rust is a list of names, and sees less", "name the toolchain under allow.languages if that is enough";
        /// More waived mutants than the policy allows.
        WaiversTooMany = "WAIVERS_TOO_MANY", Policy,
            "too many mutants or places that no mutant can judge were waived", "each waived one is a change that no case was shown to notice", "add cases that kill the waived mutants; for a waived place change less there, or raise allow.waivers_max";
        /// More equivalent mutants than the policy allows.
        EquivalentTooMany = "EQUIVALENT_TOO_MANY", Policy,
            "too many mutants were taken for equivalent", "no case notices them, and that they change nothing is the word of one compiler", "raise allow.equivalent_max, or have them waived";
        /// The change brings packages.
        NewPackagesNotAllowed = "NEW_PACKAGES_NOT_ALLOWED", Policy,
            "the change brings packages that the baseline does not have", "nothing of them was read, fenced or mutated: the cases alone judge what they do", "set allow.new_packages if whoever flies a change may agree to its packages";
        /// A build script ran.
        BuildScriptRan = "BUILD_SCRIPT_RAN", Policy,
            "a build script ran while the program was built", "it could have changed what was compiled", "set allow.build_scripts if its packages are trusted";
        /// A procedural macro ran.
        ProcMacroRan = "PROC_MACRO_RAN", Policy,
            "a procedural macro ran while the program was built", "it could have changed what was compiled", "set allow.proc_macros if its packages are trusted";
        /// Less than the whole tree flew.
        NarrowedNotAllowed = "NARROWED_NOT_ALLOWED", Policy,
            "only a part of the tree flew", "whether the rest of the tree still builds with the change is not known", "set allow.narrowed if the part stands for itself, or fly the whole tree";
        /// No case failed on the baseline.
        NothingFixed = "NOTHING_FIXED", Policy,
            "no case of the witness failed on the baseline", "the policy wants a fix to fix something, and nothing shows that this commit does", "add a case that the baseline answers wrongly, or leave require.failed_on_baseline out of the policy";
        /// More attempts than the policy lets.
        AttemptsTooMany = "ATTEMPTS_TOO_MANY", Policy,
            "it was tried too often", "each refusal tells a little of the witness, and whoever may try without end learns all of it", "have a person look at what was refused; the count begins anew when a commit of the repository is let in, which a policy of more attempts can do, or with another name for the repository (--name), which stands on the certificate";
        /// Code came along that nothing compiled.
        UncompiledNotAllowed = "UNCOMPILED_NOT_ALLOWED", Policy,
            "lines came along that no build compiled and no case ran", "somebody granted them when the commit flew, and the policy does not let that count", "set allow.not_compiled if such paths are reviewed otherwise, or have them come in a commit of their own";
        /// More tests wavered than the policy lets.
        QuarantinedTooMany = "QUARANTINED_TOO_MANY", Policy,
            "too many tests wavered on the baseline", "a test that passes by luck judges nothing, and its name is all that is left of it", "mend the tests that the certificate names, or raise allow.quarantined_max";
        /// Another kind of witness than the policy lets judge.
        WitnessKindNotAllowed = "WITNESS_KIND_NOT_ALLOWED", Policy,
            "the commit was judged by a kind of witness that the policy does not name", "equal answers of a baseline show less than answers that somebody wrote down", "name the kind in allow.witness_kinds, or certify with cases";
        /// Files came along that count as generated.
        RegeneratedNotAllowed = "REGENERATED_NOT_ALLOWED", Policy,
            "lines came along that no mutant judges since a generator makes them", "a rule of whoever flew the commit vouches for them, and the policy does not let that count", "set allow.regenerated if that operator's rules are trusted, or certify without them";
        /// A key outside the time in which the policy lets it sign.
        KeyExpired = "KEY_EXPIRED", Policy,
            "a key that signed is not in force now", "the policy bounds the time in which a key counts, so that an old key cannot sign for ever", "have the document signed by a key in force, or the key's time changed in the policy by its owner";
        /// A revoked key.
        KeyRevoked = "KEY_REVOKED", Policy,
            "a key that signed was revoked", "whoever has it may not be who it was made for, and when the signature was made cannot be known", "have the commit certified again, with another key";
        /// A revoked certificate.
        CertificateRevoked = "CERTIFICATE_REVOKED", Policy,
            "the certificate was revoked", "its issuer says that it must not be relied on", "read the reason, then certify again";
        /// A clock that cannot be right.
        ClockImplausible = "CLOCK_IMPLAUSIBLE", Environment,
            "the clock shows a time before this program existed", "with a wrong clock, expired keys and old lists would count again", "set the clock";
        /// No revocation list that could be believed.
        RevocationUnavailable = "REVOCATION_UNAVAILABLE", Policy,
            "there is no revocation list signed by those the policy names", "without it nobody knows what was revoked, and that is not the same as nothing", "give the current list with --revocations FILE, and its signers' keys with --key";
        /// A list that cannot be read in one way.
        RevocationInvalid = "REVOCATION_INVALID", Evidence,
            "the revocation list is malformed, too large, good for too long, or another list", "a list that could be read in two ways revokes nothing", "get the list the policy names, as its signer issued it";
        /// A list that is expired or not yet issued.
        RevocationStale = "REVOCATION_STALE", Policy,
            "the revocation list is expired, or issued in the future", "an old list does not know what was revoked since", "get the current list, or issue one with `flights key revoke`";
        /// A list older than one that was seen before.
        RevocationRolledBack = "REVOCATION_ROLLED_BACK", Evidence,
            "a newer revocation list, or another of the same number, was seen before", "an old list that is served again undoes revocations", "get the current list, and find out who served the old one";
        /// An exception that is none.
        ExceptionInvalid = "EXCEPTION_INVALID", Policy,
            "an exception is malformed, for another certificate, or not signed by a key that may", "whoever presents it believes that it counts", "give the public key of whoever signed it with one more --key; or have one made for this certificate, as the message says, by somebody the policy names under exceptions";
        /// An exception for what has none.
        ExceptionForbidden = "EXCEPTION_FORBIDDEN", Policy,
            "an exception is made for something that cannot be excused", "a bad archive, import, session or signature leaves nobody able to say what would be let in", "mend the cause; only rules of the policy itself can be excused";
        /// An exception outside its time.
        ExceptionExpired = "EXCEPTION_EXPIRED", Policy,
            "an exception is not good now", "an exception is for a while, so that it does not become the rule", "mend the cause, or have a new exception made";
        /// No second statement.
        AdmissionMissing = "ADMISSION_MISSING", Policy,
            "the policy wants somebody to let the commit in, and nobody did", "a certificate says what was proven, not that it is wanted", "let it in with `flights admit`, which moves the branch; `flights cert verify` takes the statement that it writes with --admission FILE";
        /// A second statement about something else.
        AdmissionMismatch = "ADMISSION_MISMATCH", Evidence,
            "the admission is about another certificate, commit or branch", "what was let in elsewhere is not let in here", "give the statement that was made for this certificate";
        /// The same key certified and admitted.
        AdmissionBySigner = "ADMISSION_BY_SIGNER", Policy,
            "too few keys other than the certificate's signers let the commit in", "the policy wants a second pair of eyes", "have it admitted by somebody else";
        /// No proof that the certificate is in the log.
        InclusionMissing = "INCLUSION_MISSING", Policy,
            "there is no proof that the certificate is in the log", "the policy accepts only what was published where others can see it", "make one with `flights cert log`, then give it with --proof FILE";
        /// A proof that proves nothing.
        InclusionInvalid = "INCLUSION_INVALID", Evidence,
            "the proof does not lead from this certificate to the log's checkpoint", "a proof for another entry, or a shortened one, proves nothing", "make a new one with `flights cert log`";
        /// A checkpoint that the log's key did not sign.
        CheckpointInvalid = "CHECKPOINT_INVALID", Evidence,
            "the checkpoint is malformed or not signed by the log's key", "anybody can write down a number and a hash", "give a copy of STATE/log/checkpoint, as it was saved from this log; in a policy, check that the log's key is the one `flights cert log show` prints";
        /// A log that contradicts its own past.
        LogInconsistent = "LOG_INCONSISTENT", Evidence,
            "the log does not contain what it contained before", "a log that forgets or changes entries hides something", "keep both checkpoints as evidence, and restore the log from a copy";
        /// A file of the log that is damaged.
        LogBroken = "LOG_BROKEN", Evidence,
            "the files of the log do not fit its checkpoint", "an entry or a hash was changed after it was written", "restore the log from a copy; `flights cert log check` says whether it is whole";
        /// Something was presented that the policy does not ask for.
        BesideUnasked = "BESIDE_UNASKED", Usage,
            "something was given that the policy does not ask for", "it would change nothing, and whoever gave it believes that it does", "leave it away, or have the policy name who may sign it";
        /// A case that does not belong to the witness.
        CaseMismatch = "CASE_MISMATCH", Evidence,
            "the opened case does not lead to the certificate's witness", "another case, or one that was changed, was not among those that judged the commit", "open the case again with `flights cert open-case`";
        // narrowing
        /// The list of paths that fly is not one.
        NarrowingInvalid = "NARROWING_INVALID", Configuration,
            "the list of paths that fly is empty, too long, not sorted, or names a path twice", "one part of a tree must have one spelling", "name each path once, and a directory instead of what lies below it";
        /// A change lies outside of what flies.
        NarrowedChange = "NARROWED_CHANGE", Input,
            "a changed path lies outside of what flies", "nothing would judge it, and it would come in with the rest", "let the path fly as well";
        /// A path that is to fly names nothing.
        NarrowedNothing = "NARROWED_NOTHING", Configuration,
            "a path that is to fly is not in the tree", "a path that was misspelt would be missed in silence", "correct the path";
        // judging
        /// The session could not be closed without remains.
        SessionNotClean = "SESSION_NOT_CLEAN", Environment,
            "something of the session was left after its end", "what still runs could still change what was judged", "run `flights doctor`, then the flight again";
        /// The candidate does not compile.
        BuildFailed = "BUILD_FAILED", Input,
            "the commit does not compile", "what cannot be built cannot be judged", "fix the errors that are shown; the build is offline, with the locked dependencies only";
        /// The witness names a target that the candidate does not have.
        TargetMissing = "TARGET_MISSING", Configuration,
            "the binary or package that the witness names is not in the tree", "a witness for another program judges nothing", "check `bin` or `package` in the witness against the manifests of the tree; in another language than Rust `bin` names the file that the program begins with, without its ending, or in Go its folder in cmd/";
        /// The witness's driver does not compile.
        DriverFailed = "DRIVER_FAILED", Configuration,
            "the witness's driver does not compile against the candidate's library", "the driver is part of the witness, so this says nothing about the candidate unless it changed what the driver uses", "compile the driver by hand against the library to see the errors; if only the candidate breaks it, the candidate changed its interface";
        /// A limit of the session ended the build.
        BuildLimit = "BUILD_LIMIT", Input,
            "the build hit a limit of its session", "a build without end would hold the machine", "make the build smaller, or have the operator raise the limit";
        /// Standard output is not the expected one.
        CaseStdoutMismatch = "CASE_STDOUT_MISMATCH", Input,
            "a case gave another answer on standard output", "the witness expects exactly one answer", "compare the program's behaviour with what the witness's owner asked for; the owner sees both with the candidate checked out in DIR: `flights witness check FILE --repo DIR` (in a workspace with `-p PACKAGE`)";
        /// Standard error lacks the expected text.
        CaseStderrMismatch = "CASE_STDERR_MISMATCH", Input,
            "a case lacks the expected text on standard error", "the witness expects a certain message", "compare the program's behaviour with what the witness's owner asked for; the owner sees both with the candidate checked out in DIR: `flights witness check FILE --repo DIR` (in a workspace with `-p PACKAGE`)";
        /// The exit status is not the expected one.
        CaseExitMismatch = "CASE_EXIT_MISMATCH", Input,
            "a case ended with another exit status", "the witness expects exactly one; a panic ends with 101", "compare the program's behaviour with what the witness's owner asked for; the owner sees both with the candidate checked out in DIR: `flights witness check FILE --repo DIR` (in a workspace with `-p PACKAGE`)";
        /// A signal ended a case.
        CaseSignalled = "CASE_SIGNALLED", Input,
            "a signal ended a case", "a crash is no answer", "look for an abort, a stack overflow or an arithmetic trap";
        /// A case made a system call no case may make.
        CaseForbiddenCall = "CASE_FORBIDDEN_CALL", Input,
            "a case made a forbidden system call", "a case computes; it neither reaches the network nor the kernel's other doors", "remove the call from the program";
        /// A case ran out of time.
        CaseTimedOut = "CASE_TIMED_OUT", Input,
            "a case did not end in time", "an answer that does not come is no answer", "look for an endless loop; a case has 10 seconds, a program of a suite's tests 60, and nothing raises that: work that takes longer needs a smaller input";
        /// A case wrote too much.
        CaseOutputLimit = "CASE_OUTPUT_LIMIT", Input,
            "a case wrote more than it may", "output that was cut cannot be compared", "write less";
        /// A case started too many processes or threads.
        CaseProcessLimit = "CASE_PROCESS_LIMIT", Input,
            "a case started more processes than it may", "processes without end would hold the machine", "start fewer processes or threads";
        /// A case used too much memory.
        CaseMemoryLimit = "CASE_MEMORY_LIMIT", Input,
            "a case used more memory than it may", "memory without end would hold the machine", "use less memory";
        /// The streams of a case were not read to their end.
        CaseIncomplete = "CASE_INCOMPLETE", Input,
            "the output of a case was not read to its end", "a partial answer that looks right may go on wrongly", "do not hand the output to a process that outlives the program";
        /// A test of the baseline does not pass.
        SuiteFailed = "SUITE_FAILED", Input,
            "a test of the baseline does not pass any more", "the suite says how the program must behave, and each of its tests must run and pass", "compare the program's behaviour with the tests that are named; a program that ends the tests or prints among them passes none";
        /// A generated input is answered otherwise than by the baseline.
        UndeclaredDifference = "UNDECLARED_DIFFERENCE", Input,
            "a generated input is answered otherwise than the baseline answers it", "whatever is not declared to differ must stay as it was", "restore the behaviour, or ask the witness's owner to declare the difference";
        /// Two runs of one case differ.
        Nondeterministic = "NONDETERMINISTIC", Input,
            "the same case gave different answers", "a program that answers by chance, by time or by its own history passes tests by luck", "remove the source of chance, such as the order of a hash map";
        // mutation
        /// A change makes more mutants than are run.
        MutantsTooMany = "MUTANTS_TOO_MANY", Input,
            "the change makes too many mutants", "every changed line must be shown to matter, and the work for one change is bounded", "split the change into smaller commits";
        /// The program with the mutants does not compile, and no mutant is to blame.
        SchemataBroken = "SCHEMATA_BROKEN", Input,
            "the changed code does not compile once mutants are written into it", "code that resists being mutated cannot be shown to be tested", "look at the error: code that depends on its own text, on columns or on exact macro input does this";
        /// A mutant was not in force when its case ran.
        MutantNotLoaded = "MUTANT_NOT_LOADED", Input,
            "a run ended before its mutant was selected", "such a run says nothing about the mutant; it never counts as a kill", "make sure that the witness's program really contains the changed code";
        /// The machine was too busy to begin a run within its time.
        MutantStarved = "MUTANT_STARVED", Environment,
            "a run's time ended before its mutant was selected", "selecting comes before the program's first instruction, so the machine was too busy; such a run says nothing about the candidate", "fly again with less going on, or with fewer jobs";
        /// Changed code that nothing compiles.
        NotCompiled = "NOT_COMPILED", Input,
            "part of the change is code that no build of the flight compiles", "a script, another platform's branch or a package that is not built would come in unseen: no case runs it and no mutant judges it", "leave it to a commit of its own, or grant its path with --uncompiled (in a plan: change.uncompiled), which the certificate says";
        /// Rules for generated files that cannot be used.
        GeneratedInvalid = "GENERATED_INVALID", Configuration,
            "a rule for generated files cannot be used as it is", "what a generator may read and what it makes must be told apart without doubt", "compare the rule with the schema in docs/formats.md";
        /// The candidate changed a generator.
        GeneratorChanged = "GENERATOR_CHANGED", Input,
            "the change touches a generator and what it makes", "whoever writes the generator decides what it makes, so its output would vouch for itself", "change the generator in a commit of its own, or fly without the rule: the files are then judged as what their lines are";
        /// A generator did not end well.
        GeneratorFailed = "GENERATOR_FAILED", Input,
            "a generator failed when it was run again", "what cannot be made again is not shown to be generated", "run it by hand on its tools and inputs alone: it sees no other file, no network and no earlier output";
        /// Two runs of a generator differ.
        GeneratorWavers = "GENERATOR_WAVERS", Input,
            "two runs of a generator came to different files", "what comes out by chance or by time vouches for nothing", "let it write nothing that depends on time, order or chance";
        /// A generator makes something else than the commit holds.
        RegeneratedDiffers = "REGENERATED_DIFFERS", Input,
            "a generator makes something else than the commit holds", "files that pass for generated could hold whatever their author wrote", "run the generator and commit exactly what it makes";
        /// Changed code that nothing judges.
        UnjudgedCode = "UNJUDGED_CODE", Input,
            "part of the change cannot be judged by mutants", "a constant, a pattern of several choices, a macro or a declaration could hide behaviour that no case shows", "the notes say what was seen and what to do, for each kind (`flights explain KIND`, such as `rebound`, says it too); what cannot be written in another way the witness's owner waives: the notes are ready for the witness's `waivers`, but for a reason";
        /// There is changed code and no mutant of it.
        NoMutants = "NO_MUTANTS", Input,
            "no mutant could be made of the changed code", "without mutants nothing shows that the witness would notice a wrong change", "move the change where it runs, out of constants, unsafe code and unknown macros, or have it reviewed by a person";
        /// A function whose every mutant was refused by the compiler.
        FunctionNotMutated = "FUNCTION_NOT_MUTATED", Input,
            "a changed function accepts no mutant at all", "code that compiles only exactly as it is written could hide anything", "write the function so that it can be mutated, for example with a return type that has a default";
        /// A mutant that no case noticed.
        MutantsSurvived = "MUTANTS_SURVIVED", Input,
            "the witness does not notice changes to the changed code", "code whose change nobody notices is not shown to be right; a backdoor looks exactly like this", "remove code no case needs, or have something notice the change: a case of the witness's owner; in a suite a test that passes on the baseline too, since one that fails there judges nothing; with generated inputs more `inputs`, or the boundary as a text in `rules`; or the owner pastes what a note prints into the witness's `waivers`, with a reason";
        /// Mutants were killed only by crashes and limits.
        NoKillByValue = "NO_KILL_BY_VALUE", Input,
            "no mutant was noticed by a different answer", "crashes and time-outs alone do not show that answers are compared", "ask the witness's owner for cases whose answers depend on the change";
        /// A waiver that accepts no survivor.
        WaiverStale = "WAIVER_STALE", Configuration,
            "a waiver fits no surviving mutant", "a waiver for something else, or for another version of the file, was not given for this", "remove the waiver, or renew it for the file as it is now";
        /// The program with mutants, none selected, does not behave like the candidate.
        ControlFailed = "CONTROL_FAILED", Input,
            "the program with mutants fails a case although no mutant is selected", "then every mutant would look noticed", "look for code that depends on columns, on its own text or on time, or that is so busy that it runs out of its call budget";
        /// A mutant that changes nothing was noticed.
        PlaceboKilled = "PLACEBO_KILLED", Input,
            "a mutant that changes nothing was noticed", "the program looks for mutants instead of doing its work", "remove what inspects the running program";
        /// A change that ends the program was not noticed.
        CanarySurvived = "CANARY_SURVIVED", Input,
            "no case runs a changed file", "the program was made to end wherever the file is part of it, and every case passed: mutants of the file would show nothing", "ask the witness's owner for a case that runs it, or leave the file out of the change";
        /// An answer to another question.
        AnswerUnasked = "ANSWER_UNASKED", Ours,
            "the certification was told something it did not ask", "a verdict from answers to other questions would be none", "report this with the command that led to it";
    }
}
