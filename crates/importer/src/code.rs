use flightproof_core::Refused;

flightproof_core::refusal_codes! {
    /// Refusals of the importer.
    pub enum ImporterCode in "importer" {
        /// No git program.
        GitMissing = "GIT_MISSING", Environment,
            "no usable git program was found", "commits are read and branches are moved by git", "install git 2.39 or newer";
        /// The git program is too old.
        GitTooOld = "GIT_TOO_OLD", Environment,
            "the git program is older than 2.39", "older versions lack the switches that keep a repository's own programs from running", "install git 2.39 or newer";
        /// Git failed, died, or answered in a way it should not.
        GitFailed = "GIT_FAILED", Environment,
            "git failed or gave an answer that makes no sense", "an answer that never came is not \"nothing changed\"", "run `git fsck` in the repository and try again";
        /// Git took too long.
        GitDeadline = "GIT_DEADLINE", Environment,
            "git did not answer in time", "a repository can be built to keep git busy for ever", "look at the repository's size and at the disk, then try again";
        /// A temporary directory could not be used.
        ScratchFailed = "SCRATCH_FAILED", Environment,
            "the scratch folder could not be written", "objects are checked in a place of their own", "free space in the temporary folder or name another one";
        /// The folder is no repository.
        NotARepository = "NOT_A_REPOSITORY", Usage,
            "the folder is not the top of a git repository", "only a repository has commits", "name the folder that has the .git entry, or a bare repository";
        /// A kind of repository that is not handled yet.
        HostUnsupported = "HOST_UNSUPPORTED", Environment,
            "the repository uses a feature that is not handled", "what is not understood is not judged", "use a full SHA-1 clone with ordinary refs";
        /// The repository belongs to somebody else.
        HostForeign = "HOST_FOREIGN", Environment,
            "the repository belongs to another user", "its owner could turn a write into a write elsewhere", "run as the owner of the repository";
        /// Hooks defined in configuration, on a git that cannot switch them off.
        HostHooks = "HOST_HOOKS", Environment,
            "the repository's configuration defines a hook that this git would run", "git 2.54 runs such hooks even when hooks are switched off", "use another version of git or remove the hook from the configuration";
        /// The name does not lead to a commit.
        UnknownRevision = "UNKNOWN_REVISION", Usage,
            "the revision does not name a commit of the repository", "only a commit can be certified", "check the spelling and that the commit was fetched";
        /// An object is not there.
        ObjectMissing = "OBJECT_MISSING", Input,
            "an object that the commit needs is not in the repository", "a commit that is not whole cannot be checked", "fetch the whole commit, or run `git fsck`";
        /// An object is of another kind than its place says.
        ObjectKind = "OBJECT_KIND", Input,
            "an object is of another kind than its place says", "a tree that points at a commit is a forgery", "make the commit with an ordinary git";
        /// An object's bytes do not have the hash that names it.
        ObjectHashMismatch = "OBJECT_HASH_MISMATCH", Input,
            "an object's content does not have the hash that names it", "somebody put other bytes in its place", "do not use this repository; clone again from a source you trust";
        /// The commit's form is wrong.
        CommitMalformed = "COMMIT_MALFORMED", Input,
            "the commit object is not well formed", "programs would disagree about what it says", "make the commit with an ordinary git";
        /// The commit has a header that is not allowed.
        CommitHeader = "COMMIT_HEADER", Input,
            "the commit has a header besides tree, parent, author and committer", "signatures, encodings and unknown headers change what people are shown", "make the commit without a signature and in UTF-8";
        /// A date that cannot be true.
        CommitDate = "COMMIT_DATE", Input,
            "the commit's date or time zone cannot be true", "a false date misleads those who read the history", "make the commit with the clock set right";
        /// Text with characters that act on a terminal or reorder what is shown.
        CommitText = "COMMIT_TEXT", Input,
            "the commit's names or message hold control or reordering characters, are not UTF-8, or are too long", "such text shows people something else than what it is", "write plain text";
        /// The commit is not on the baseline.
        NotOnBaseline = "NOT_ON_BASELINE", Input,
            "the commit's only parent is not the baseline", "one commit comes home at a time, on exactly the baseline", "rebase and squash the work into one commit on the baseline, and check that baseline and candidate are not swapped";
        /// More than one parent.
        MergeCommit = "MERGE_COMMIT", Input,
            "the candidate is a merge", "a merge brings history that nobody checked", "rebase and squash the work into one commit on the baseline";
        /// Nothing changed.
        NoChange = "NO_CHANGE", Input,
            "the candidate has the same tree as the baseline", "there is nothing to certify", "name the commit that holds the work";
        /// Author or committer is not who it should be.
        IdentityMismatch = "IDENTITY_MISMATCH", Input,
            "author or committer is not the identity asked for", "work must carry the name it was done under", "commit under the identity of the flight";
        /// A tree's form is wrong.
        TreeMalformed = "TREE_MALFORMED", Input,
            "a tree object is not well formed", "programs would disagree about what it holds", "make the commit with an ordinary git";
        /// A tree's order is wrong.
        TreeUnsorted = "TREE_UNSORTED", Input,
            "the entries of a tree are out of order", "programs that search it would miss some", "make the commit with an ordinary git";
        /// One name twice.
        TreeDuplicate = "TREE_DUPLICATE", Input,
            "a tree has two entries of one name", "which of the two is checked out depends on the program", "make the commit with an ordinary git";
        /// A mode that git shows as another.
        TreeMode = "TREE_MODE", Input,
            "an entry's mode is none that git writes", "git shows such a mode as another one than it is", "make the commit with an ordinary git";
        /// A directory with nothing in it.
        EmptyTree = "EMPTY_TREE", Input,
            "a directory of the candidate is empty", "it vanishes in a checkout, so the tree on disk is another one", "remove the entry";
        /// A symlink was added, changed or removed.
        SymlinkChanged = "SYMLINK_CHANGED", Input,
            "the candidate adds, changes or removes a symbolic link", "a link can lead a later write out of the tree", "leave symbolic links as they are";
        /// A submodule was added, changed or removed.
        GitlinkChanged = "GITLINK_CHANGED", Input,
            "the candidate adds, changes or removes a submodule", "a submodule brings content that is not in the commit", "leave submodules as they are";
        /// A name equal to `.git` on some file system.
        GitName = "GIT_NAME", Input,
            "a name is equal to .git on some file system", "a checkout there would overwrite the repository's own files", "use another name";
        /// A name some file system cannot hold, or that hides what it is, of a file that is new or changed.
        NameRefused = "NAME_REFUSED", Input,
            "a new or changed file has a name with characters or of a form that some file system or terminal treats specially", "it would be another file there, or shown as another", "use a plain name; a file that the baseline has under such a name can be deleted or renamed, and changed under its new name";
        /// Two names that are one on some file system.
        NameCollision = "NAME_COLLISION", Input,
            "a new name equals another one but for case or Unicode form, or two that do are both changed", "on some file systems one overwrites the other", "use a name of its own, or change only one of the two in a commit";
        /// A path is too long.
        PathTooLong = "PATH_TOO_LONG", Input,
            "a path is longer than 512 bytes or one of its names longer than 255", "it could not be unpacked everywhere", "use a shorter path";
        /// An unchanged path that a snapshot cannot hold.
        PathUnfit = "PATH_UNFIT", Input,
            "a path that the baseline already has cannot be written into a snapshot", "the session must get exactly the captured tree", "rename the file in the baseline first: UTF-8 in NFC, no control characters, no backslash";
        /// A repository hidden in the tree.
        NestedRepository = "NESTED_REPOSITORY", Input,
            "a directory of the candidate becomes a git repository of its own", "git would obey the configuration in it", "do not commit HEAD, objects and refs side by side";
        /// Too many bytes.
        BytesOverLimit = "BYTES_OVER_LIMIT", Input,
            "the change is larger than the limit", "what is judged must be small enough to be judged", "split the work, or name the paths of large files with --large; a larger file that the baseline has is deleted or made smaller by hand, in a commit that is not flown";
        /// Too many objects.
        ObjectsOverLimit = "OBJECTS_OVER_LIMIT", Input,
            "the change has more objects than the limit", "what is judged must be small enough to be judged", "split the work";
        /// Too many tree entries looked at.
        EntriesOverLimit = "ENTRIES_OVER_LIMIT", Input,
            "comparing the two trees passes the limit of entries", "a few small trees can stand for millions of paths", "split the work";
        /// Too many paths changed.
        ChangesOverLimit = "CHANGES_OVER_LIMIT", Input,
            "more paths changed than the limit", "what is judged must be small enough to be judged", "split the work";
        /// Too deep.
        DepthOverLimit = "DEPTH_OVER_LIMIT", Input,
            "directories are nested deeper than the limit", "deep nesting breaks the programs that walk it", "use a flatter layout";
        /// The whole tree is too large.
        SnapshotOverLimit = "SNAPSHOT_OVER_LIMIT", Input,
            "the whole tree is larger than a snapshot may be", "the session gets the whole tree in one piece", "keep large files out of the repository";
        /// The bundle is too large.
        BundleOverLimit = "BUNDLE_OVER_LIMIT", Input,
            "the commit does not fit into a bundle of 131,072 bytes", "what is judged must be small enough to be judged", "split the work";
        /// The bundle that git made holds something else than what was checked.
        BundleMalformed = "BUNDLE_MALFORMED", Ours,
            "the bundle that git wrote does not hold what was checked before", "only what was checked may travel", "report this as a bug with the version of git";
        /// No bytes at all.
        BundleMissing = "BUNDLE_MISSING", Input,
            "there is no bundle: it has no bytes", "a capture that failed is not \"nothing changed\"", "make the bundle again and look at what the capture said";
        /// The header is not of the one accepted form.
        BundleHeader = "BUNDLE_HEADER", Input,
            "the bundle's header is not of the agreed form", "git itself takes headers without an end, with capabilities and of any length", "make the bundle with `flights bundle create`, or with `git -c pack.useBitmaps=false bundle create --version=2 - refs/export/head ^BASELINE`";
        /// Not exactly the baseline as prerequisite.
        BundlePrerequisite = "BUNDLE_PREREQUISITE", Input,
            "the bundle's prerequisite is not exactly the baseline", "one commit comes home at a time, on exactly the baseline", "make the bundle against the baseline of the flight; if the branch is at the bundle's commit, it is in already";
        /// Not exactly the agreed reference.
        BundleReference = "BUNDLE_REFERENCE", Input,
            "the bundle does not hold exactly the one agreed reference", "another name would land in another place", "make the bundle with `flights bundle create`, or of refs/export/head and nothing else";
        /// The header ends and nothing follows, or the pack ends too early.
        PackTruncated = "PACK_TRUNCATED", Input,
            "the pack ends before what it announces", "half a commit is no commit", "make the bundle again; it was cut on the way";
        /// No pack of version 2.
        PackHeader = "PACK_HEADER", Input,
            "no pack of version 2 with at least one object follows the header", "git reads two versions and takes empty packs; one form is enough", "make the bundle with an ordinary git";
        /// The pack's own checksum is wrong.
        PackChecksum = "PACK_CHECKSUM", Input,
            "the pack does not have the checksum it ends in", "it was damaged or tampered with", "make the bundle again";
        /// Bytes that belong to nothing.
        PackTrailing = "PACK_TRAILING", Input,
            "bytes stand between the last object of the pack and its checksum", "what no reader reads can hold anything", "make the bundle with an ordinary git";
        /// An entry of a type that may not be here.
        PackEntryType = "PACK_ENTRY_TYPE", Input,
            "an entry of the pack is a tag or of no known type", "a commit needs commits, trees, files and deltas", "make the bundle of one commit, with an ordinary git";
        /// A number that is not written the shortest way.
        PackNumber = "PACK_NUMBER", Input,
            "a number in the pack is not written the shortest way, or is larger than any limit", "two readers could read two numbers", "make the bundle with an ordinary git";
        /// The stream is no zlib stream.
        InflateHeader = "INFLATE_HEADER", Input,
            "the compressed data of an object does not begin as a zlib stream without a dictionary", "a dictionary nobody has makes some versions of git abort", "make the bundle with an ordinary git";
        /// The compressed data is broken.
        InflateBroken = "INFLATE_BROKEN", Input,
            "the compressed data of an object cannot be read", "it was damaged or made to confuse readers", "make the bundle again";
        /// More comes out than was declared.
        InflateLonger = "INFLATE_LONGER", Input,
            "an object is longer than it declares", "a reader that believes the declaration reads something else", "make the bundle with an ordinary git";
        /// Less comes out than was declared.
        InflateShorter = "INFLATE_SHORTER", Input,
            "an object is shorter than it declares", "a reader that believes the declaration reads something else", "make the bundle with an ordinary git";
        /// The checksum of the content is wrong.
        InflateChecksum = "INFLATE_CHECKSUM", Input,
            "an object's content does not have the checksum its compressed form ends in", "it was damaged or tampered with", "make the bundle again";
        /// A delta that points at no entry.
        DeltaOffset = "DELTA_OFFSET", Input,
            "a delta points at a place in the pack where no earlier object begins", "it could be made of any bytes", "make the bundle with an ordinary git";
        /// A delta on an object that is neither in the pack nor in the baseline.
        DeltaBase = "DELTA_BASE", Input,
            "a delta needs an object that is neither in the pack nor in the baseline's tree", "a delta on any object of the repository could carry a secret of it away", "make the bundle on the baseline, with `git -c pack.useBitmaps=false bundle create`";
        /// A chain of deltas that is too long.
        DeltaDepth = "DELTA_DEPTH", Input,
            "deltas stand on one another more than 50 deep", "git itself writes at most 50", "make the bundle with an ordinary git";
        /// The delta's instructions are broken.
        DeltaMalformed = "DELTA_MALFORMED", Input,
            "a delta ends in the middle of an instruction or holds one that does not exist", "readers would disagree about what it makes", "make the bundle with an ordinary git";
        /// A delta copies what is not there.
        DeltaCopy = "DELTA_COPY", Input,
            "a delta copies from beyond the end of the object it stands on", "what lies there is somebody's memory", "make the bundle with an ordinary git";
        /// A delta declares other sizes than it has.
        DeltaSize = "DELTA_SIZE", Input,
            "a delta declares another size of its base or of its result than it has", "a reader that believes the declaration reads something else", "make the bundle with an ordinary git";
        /// One object twice.
        ObjectDuplicate = "OBJECT_DUPLICATE", Input,
            "the pack holds one object twice", "which of the two is kept depends on the program", "make the bundle with an ordinary git";
        /// An object nobody needs.
        ObjectUnreached = "OBJECT_UNREACHED", Input,
            "the pack holds an object that the change does not need", "what nobody looks at can hold anything", "make the bundle of one commit, with an ordinary git";
        /// Not exactly one commit.
        CommitCount = "COMMIT_COUNT", Input,
            "the pack does not hold exactly one commit, which the bundle names", "one commit comes home at a time", "squash the work into one commit on the baseline";
        /// Git reads something else in the pack than we did.
        SecondOpinion = "SECOND_OPINION", Input,
            "git's own strict check refuses the objects, or finds others in them", "what two readers do not read alike is not let in", "run `git fsck --strict` in the repository and mend what it names";
        /// A path outside the grants.
        PathNotGranted = "PATH_NOT_GRANTED", Input,
            "the candidate changes a path that was not granted", "an author may touch only what was asked for", "name every path that may change with --grant, or undo the change";
        /// A protected path that was not granted by its own name.
        ProtectedPath = "PROTECTED_PATH", Input,
            "the candidate changes a file that controls git, a build service, an editor or an agent", "such a file acts outside the program that is judged", "grant exactly this path with --grant, and with it every other path that changes, since grants replace the default; or undo the change";
        /// A large file that may not be one.
        LargeNotGranted = "LARGE_NOT_GRANTED", Input,
            "the changeset beside the bundle brings a file that may not be large", "what travels beside the bundle is not held to its limits, so the paths are named", "name the path with --large, or let the file travel in the bundle";
        /// The changeset cannot be read.
        ChangesetMalformed = "CHANGESET_MALFORMED", Input,
            "what travels beside the bundle is no whole PAWS1 changeset", "half a file is no file", "make bundle and changeset again, together";
        /// The changeset is of another commit.
        ChangesetDiffers = "CHANGESET_DIFFERS", Input,
            "the files beside the bundle are not those of the commit, or their changeset says more than the commit does", "the tree is built from them again and must be the commit's", "make bundle and changeset again, together";
        /// What should sign the commit is no signature.
        SignatureUnfit = "SIGNATURE_UNFIT", Ours,
            "the signature for the commit is none that git reads", "a commit is signed once, by one line of headers", "report this as a bug with the kind of key that signed";
        /// The session left something.
        SessionNotClean = "SESSION_NOT_CLEAN", Environment,
            "the session that judged the work left something behind", "what still runs can still act", "run the flight again; the next run reports and cleans what was left";
        /// The branch's name is not plain.
        BranchName = "BRANCH_NAME", Usage,
            "the name is not that of an ordinary local branch", "only a plain branch is moved", "name a branch such as main or topic/one";
        /// There is no such branch.
        BranchMissing = "BRANCH_MISSING", Usage,
            "the repository has no such branch", "only an existing branch is moved", "create the branch at the baseline first";
        /// The branch is a symbolic one.
        BranchUnfit = "BRANCH_UNFIT", Environment,
            "the branch is a pointer to another one, or not an ordinary file", "moving it would move something else", "name the branch it points to";
        /// The branch is checked out.
        BranchCheckedOut = "BRANCH_CHECKED_OUT", Configuration,
            "the branch is checked out in another working tree, or in use by a rebase or bisect", "its files on disk would no longer fit it", "name that working tree with --repo, switch it to another branch, or choose another branch";
        /// The branch is elsewhere.
        BranchMoved = "BRANCH_MOVED", Environment,
            "the branch is not at the baseline", "what was certified is a change of the baseline", "rebase the work onto the branch and certify again, or let `flights refly CERT --onto REV` do both";
        /// An admission was asked for again, and the branch is not where the first one put it.
        AdmittedBefore = "ADMITTED_BEFORE", Environment,
            "the commit was admitted before, and the branch is not at it any more", "a receipt says what happened once: answering from it would say that a commit is in which is not", "see with `git reflog BRANCH` who moved the branch; put it back with `git branch -f BRANCH COMMIT`, or bring the work in a new commit on what is there";
        /// Somebody holds the branch's lock file.
        BranchLocked = "BRANCH_LOCKED", Environment,
            "git could not lock the branch", "another git is at work on it, or one was killed and left its lock file", "wait; if no git runs, remove the lock file named here";
        /// The working tree is in the middle of something.
        WorktreeBusy = "WORKTREE_BUSY", Environment,
            "something is under way in the working tree", "what it will come back to would no longer fit the branch", "finish or abort it, then try again";
        /// The working tree or the index is not the baseline.
        SourceChanged = "SOURCE_CHANGED", Environment,
            "a file the commit touches, or the index, is not as the baseline has it", "what somebody did there and did not commit would be lost", "commit or stash the work, or move the file named here away, then try again";
        /// Somebody holds the lock file of the index.
        IndexLocked = "INDEX_LOCKED", Environment,
            "the index of the working tree is locked", "another git is at work in it, or one was killed and left its lock file", "wait; if no git runs, remove the index.lock in the working tree's git folder";
        /// An import that was cut off.
        ImportUnfinished = "IMPORT_UNFINISHED", Environment,
            "an earlier import into this working tree did not end", "its files may be half there, and only its journal knows", "run `flights import recover --repo DIR`; what it cannot judge it leaves alone and names";
        /// The place to fly on from is not on the way.
        OntoUnrelated = "ONTO_UNRELATED", Usage,
            "the revision is not ahead of the baseline", "work is carried forward along one history", "name a commit that the baseline leads to";
        /// The work does not fit what happened meanwhile.
        MergeConflict = "MERGE_CONFLICT", Input,
            "the work and what happened since its baseline change the same places", "nobody here may choose between them", "let the author work on the new baseline, then fly again";
        /// No identity for a commit that is written here.
        SquashIdentity = "SQUASH_IDENTITY", Usage,
            "a commit that is made of several needs an identity", "it is nobody's commit but that of who makes it", "give --identity 'NAME <MAIL>'";
        /// The branch was asked to move and nobody knows whether it did.
        AdmissionUncertain = "ADMISSION_UNCERTAIN", Environment,
            "whether the branch moved is not known yet", "an outcome is never guessed", "run again: the recovery reads the branch and records what happened";
    }
}

/// A refusal of this crate.
pub type ImportError = Refused<ImporterCode>;
