use flightproof_core::Refused;

flightproof_core::refusal_codes! {
    /// Refusals of the archive room: of both formats, then of what touches a file system.
    pub enum ArchiveCode in "archive" {
        /// There are no bytes at all.
        BufferEmpty = "BUFFER_EMPTY", Input,
            "there are no bytes at all",
            "nothing cannot be told from something that was lost on the way",
            "send the archive again";
        /// The archive ends before its header does.
        ShortHeader = "SHORT_HEADER", Input,
            "the archive ends before its header does",
            "without a header nothing says what the bytes are",
            "send the archive again, whole";
        /// The archive does not start with the magic of its format.
        BadMagic = "BAD_MAGIC", Input,
            "the archive does not start with the magic of its format",
            "bytes of another format must not be read as this one",
            "check that the file is the archive you meant";
        /// The manifest is longer than the format allows.
        ManifestTooLarge = "MANIFEST_TOO_LARGE", Input,
            "the manifest is longer than the format allows",
            "its length is a claim of the sender, and memory is set aside by it",
            "pack fewer files";
        /// The archive ends inside its manifest.
        ManifestTruncated = "MANIFEST_TRUNCATED", Input,
            "the archive ends inside its manifest",
            "half a manifest describes half a tree",
            "send the archive again, whole";
        /// Bytes follow the end.
        TrailingBytes = "TRAILING_BYTES", Input,
            "bytes follow the end",
            "what no manifest describes, nobody checked",
            "remove whatever was appended; a manifest that is read alone must not be followed by its payload";
        /// The archive is larger than the format allows, or empty where it must not be.
        ArchiveTooLarge = "ARCHIVE_TOO_LARGE", Input,
            "the archive is larger than the format allows, or empty where it must not be",
            "size limits are what keeps a stranger from filling the disk",
            "leave out what need not be shipped";
        /// The manifest is not UTF-8, or starts with a byte order mark.
        InvalidUtf8 = "INVALID_UTF8", Input,
            "the manifest is not UTF-8, or starts with a byte order mark",
            "readers disagree about such text",
            "make the archive again with `flights` or another conforming packer";
        /// The manifest is not one JSON object.
        InvalidJson = "INVALID_JSON", Input,
            "the manifest is not one JSON object",
            "nothing can be read from it",
            "make the archive again with `flights` or another conforming packer";
        /// The manifest says the right thing in other bytes than the canonical ones.
        NonCanonical = "NON_CANONICAL", Input,
            "the manifest says the right thing in other bytes than the canonical ones",
            "two spellings of one tree would have two hashes, or two readers two trees",
            "make the archive again with `flights` or another conforming packer";
        /// The manifest names another format.
        BadFormat = "BAD_FORMAT", Input,
            "the manifest names another format",
            "it may mean something else by the same fields",
            "check that the file is the archive you meant";
        /// The manifest has a version this reader does not know.
        BadVersion = "BAD_VERSION", Input,
            "the manifest has a version this reader does not know",
            "a later version may mean something else by the same fields",
            "use a program that knows the version";
        /// The workspace archive is not of the kind that is needed here.
        BadKind = "BAD_KIND", Input,
            "the workspace archive is not of the kind that is needed here",
            "a changeset is no tree, a tree is no changeset, and an unknown kind is nothing",
            "send a snapshot where a tree is needed, and apply a changeset with `flights archive apply`";
        /// A field is missing.
        MissingField = "MISSING_FIELD", Input,
            "a field is missing",
            "a default would be a guess",
            "make the archive again with `flights` or another conforming packer";
        /// The fields are not exactly those of the format.
        ExtraField = "EXTRA_FIELD", Input,
            "the fields are not exactly those of the format",
            "a field that one reader knows and another skips is a second meaning",
            "make the archive again with `flights` or another conforming packer";
        /// A field of the manifest has the wrong type.
        FieldTypeError = "FIELD_TYPE_ERROR", Input,
            "a field of the manifest has the wrong type",
            "it cannot be read",
            "make the archive again with `flights` or another conforming packer";
        /// An entry is not an object.
        EntryTypeError = "ENTRY_TYPE_ERROR", Input,
            "an entry is not an object",
            "it cannot be read",
            "make the archive again with `flights` or another conforming packer";
        /// A path breaks the rules for paths.
        InvalidPath = "INVALID_PATH", Input,
            "a path breaks the rules for paths",
            "it could leave the tree, or be another path to another reader",
            "rename the file";
        /// A mode is neither 100644 nor 100755.
        InvalidMode = "INVALID_MODE", Input,
            "a mode is neither 100644 nor 100755",
            "no other mode travels: no setuid, no device, no link",
            "make the archive again with `flights` or another conforming packer";
        /// A size is no whole number within the limit.
        InvalidSize = "INVALID_SIZE", Input,
            "a size is no whole number within the limit",
            "sizes decide where the next file begins",
            "leave out files above 50 MiB";
        /// A hash is not 64 lower-case hexadecimal digits.
        InvalidSha256 = "INVALID_SHA256", Input,
            "a hash is not 64 lower-case hexadecimal digits",
            "a second spelling would be a second name",
            "make the archive again with `flights` or another conforming packer";
        /// A hash of the base is not 64 lower-case hexadecimal digits.
        InvalidBaseHash = "INVALID_BASE_HASH", Input,
            "a hash of the base is not 64 lower-case hexadecimal digits",
            "a second spelling would be a second name",
            "make the archive again with `flights` or another conforming packer";
        /// An offset is not the sum of the sizes before it.
        InvalidOffset = "INVALID_OFFSET", Input,
            "an offset is not the sum of the sizes before it",
            "overlapping or skipped bytes would be checked by nobody",
            "make the archive again with `flights` or another conforming packer";
        /// A change is neither add, change nor delete.
        InvalidOperation = "INVALID_OPERATION", Input,
            "a change is neither add, change nor delete",
            "nothing else can happen to a file",
            "make the archive again with `flights` or another conforming packer";
        /// Entries do not ascend by the bytes of their paths.
        EntriesUnsorted = "ENTRIES_UNSORTED", Input,
            "entries do not ascend by the bytes of their paths",
            "one tree must have one archive",
            "make the archive again with `flights` or another conforming packer";
        /// A path stands twice.
        DuplicateEntryPath = "DUPLICATE_ENTRY_PATH", Input,
            "a path stands twice",
            "one reader would check the first and another write the second",
            "make the archive again with `flights` or another conforming packer";
        /// A file is also a directory of another file.
        PrefixConflict = "PREFIX_CONFLICT", Input,
            "a file is also a directory of another file",
            "no file system can hold both",
            "rename one of the two";
        /// The snapshot id is not the hash of the entries.
        SnapshotIdMismatch = "SNAPSHOT_ID_MISMATCH", Input,
            "the snapshot id is not the hash of the entries",
            "the id is what certificates name",
            "make the archive again from the tree";
        /// A changeset does not name its base.
        BaseSnapshotIdRequired = "BASE_SNAPSHOT_ID_REQUIRED", Input,
            "a changeset does not name its base",
            "changes without a base fit anything",
            "make the archive again with `flights` or another conforming packer";
        /// A snapshot names a base.
        BaseSnapshotIdNotAllowed = "BASE_SNAPSHOT_ID_NOT_ALLOWED", Input,
            "a snapshot names a base",
            "a snapshot is whole and stands on nothing",
            "make the archive again with `flights` or another conforming packer";
        /// The total is not the sum of the sizes.
        TotalBytesMismatch = "TOTAL_BYTES_MISMATCH", Input,
            "the total is not the sum of the sizes",
            "two lengths for one thing are one too many",
            "make the archive again with `flights` or another conforming packer";
        /// There are more than 100,000 entries.
        MaxEntriesExceeded = "MAX_ENTRIES_EXCEEDED", Input,
            "there are more than 100,000 entries",
            "each costs memory and an inode",
            "leave out what need not be shipped";
        /// The artifact is for no target that is known.
        BadTarget = "BAD_TARGET", Input,
            "the artifact is for no target that is known",
            "it could not run",
            "build for linux-x64 or linux-arm64";
        /// The source commit is not 40 lower-case hexadecimal digits.
        BadSourceCommit = "BAD_SOURCE_COMMIT", Input,
            "the source commit is not 40 lower-case hexadecimal digits",
            "it names no commit",
            "make the archive again with `flights` or another conforming packer";
        /// The protocol is not an object with exactly its fields.
        BadProtocol = "BAD_PROTOCOL", Input,
            "the protocol is not an object with exactly its fields",
            "it cannot be compared",
            "make the archive again with `flights` or another conforming packer";
        /// The artifact speaks another protocol.
        BadProtocolName = "BAD_PROTOCOL_NAME", Input,
            "the artifact speaks another protocol",
            "it would not be understood",
            "ship the right artifact";
        /// The artifact speaks another version of the protocol.
        BadProtocolVersion = "BAD_PROTOCOL_VERSION", Input,
            "the artifact speaks another version of the protocol",
            "it would be misunderstood",
            "ship the right artifact";
        /// The daemon protocol version is no whole number above zero.
        BadDaemonProtocolVersion = "BAD_DAEMON_PROTOCOL_VERSION", Input,
            "the daemon protocol version is no whole number above zero",
            "it cannot be compared",
            "make the archive again with `flights` or another conforming packer";
        /// The daemon schema revision is no whole number.
        BadDaemonSchemaRevision = "BAD_DAEMON_SCHEMA_REVISION", Input,
            "the daemon schema revision is no whole number",
            "it cannot be compared",
            "make the archive again with `flights` or another conforming packer";
        /// The files digest is not 64 lower-case hexadecimal digits.
        BadFilesDigest = "BAD_FILES_DIGEST", Input,
            "the files digest is not 64 lower-case hexadecimal digits",
            "it cannot be compared",
            "make the archive again with `flights` or another conforming packer";
        /// The build id is not 64 lower-case hexadecimal digits.
        BadBuildId = "BAD_BUILD_ID", Input,
            "the build id is not 64 lower-case hexadecimal digits",
            "it cannot be compared",
            "make the archive again with `flights` or another conforming packer";
        /// The files are not a list of at most 20,000.
        BadFiles = "BAD_FILES", Input,
            "the files are not a list of at most 20,000",
            "they cannot be read, or would cost too much",
            "make the archive again with `flights` or another conforming packer";
        /// The artifact has no file.
        FilesEmpty = "FILES_EMPTY", Input,
            "the artifact has no file",
            "an artifact without a file is a mistake",
            "pack at least one file";
        /// A file is not an object with exactly its fields.
        BadFileEntry = "BAD_FILE_ENTRY", Input,
            "a file is not an object with exactly its fields",
            "it cannot be read, or has a second meaning",
            "make the archive again with `flights` or another conforming packer";
        /// A field of the artifact's manifest is missing.
        MissingManifestField = "MISSING_MANIFEST_FIELD", Input,
            "a field of the artifact's manifest is missing",
            "a default would be a guess",
            "make the archive again with `flights` or another conforming packer";
        /// The artifact's manifest has a field the format does not know.
        ExtraManifestField = "EXTRA_MANIFEST_FIELD", Input,
            "the artifact's manifest has a field the format does not know",
            "a field that one reader knows and another skips is a second meaning",
            "make the archive again with `flights` or another conforming packer";
        /// A path of an artifact breaks the rules for paths.
        InvalidFilePath = "INVALID_FILE_PATH", Input,
            "a path of an artifact breaks the rules for paths",
            "it could leave the tree, or be another path to another reader",
            "rename the file";
        /// A mode of an artifact is neither 420 nor 493.
        InvalidFileMode = "INVALID_FILE_MODE", Input,
            "a mode of an artifact is neither 420 nor 493",
            "no other mode travels: no setuid, no device, no link",
            "make the archive again with `flights` or another conforming packer";
        /// A size of an artifact's file is no whole number within the limit.
        InvalidFileSize = "INVALID_FILE_SIZE", Input,
            "a size of an artifact's file is no whole number within the limit",
            "sizes decide where the next file begins",
            "leave out files above 256 MiB";
        /// A hash of an artifact's file is not 64 lower-case hexadecimal digits.
        InvalidFileHash = "INVALID_FILE_HASH", Input,
            "a hash of an artifact's file is not 64 lower-case hexadecimal digits",
            "a second spelling would be a second name",
            "make the archive again with `flights` or another conforming packer";
        /// An offset of an artifact's file is not the sum of the sizes before it.
        InvalidFileOffset = "INVALID_FILE_OFFSET", Input,
            "an offset of an artifact's file is not the sum of the sizes before it",
            "overlapping or skipped bytes would be checked by nobody",
            "make the archive again with `flights` or another conforming packer";
        /// Files of an artifact do not ascend by the bytes of their paths.
        FilesUnsorted = "FILES_UNSORTED", Input,
            "files of an artifact do not ascend by the bytes of their paths",
            "one artifact must have one spelling",
            "make the archive again with `flights` or another conforming packer";
        /// A path of an artifact stands twice.
        DuplicateFilePath = "DUPLICATE_FILE_PATH", Input,
            "a path of an artifact stands twice",
            "one reader would check the first and another write the second",
            "make the archive again with `flights` or another conforming packer";
        /// The files of an artifact add up to more than 1 GiB.
        PayloadOverflow = "PAYLOAD_OVERFLOW", Input,
            "the files of an artifact add up to more than 1 GiB",
            "size limits are what keeps a stranger from filling the disk",
            "leave out what need not be shipped";
        /// The files digest is not the hash of the files.
        FilesDigestMismatch = "FILES_DIGEST_MISMATCH", Input,
            "the files digest is not the hash of the files",
            "it is what the build id stands on",
            "make the artifact again";
        /// The build id is not the hash of what was built.
        BuildIdMismatch = "BUILD_ID_MISMATCH", Input,
            "the build id is not the hash of what was built",
            "it is what sessions attest",
            "make the artifact again";
        /// The artifact is longer or shorter than its manifest says.
        TotalArchiveMismatch = "TOTAL_ARCHIVE_MISMATCH", Input,
            "the artifact is longer or shorter than its manifest says",
            "what no manifest describes, nobody checked",
            "send the artifact again, whole";
        /// The archive ends before the last file does.
        PayloadTruncated = "PAYLOAD_TRUNCATED", Input,
            "the archive ends before the last file does",
            "a tree that is not whole must not be used",
            "send the archive again, whole";
        /// The bytes of a file do not have the hash the manifest gives.
        PayloadHashMismatch = "PAYLOAD_HASH_MISMATCH", Input,
            "the bytes of a file do not have the hash the manifest gives",
            "they are not the bytes that were checked",
            "make the archive again from the tree";
        /// The archive is sound but holds another tree than the one announced.
        SnapshotUnexpected = "SNAPSHOT_UNEXPECTED", Input,
            "the archive is sound but holds another tree than the one announced",
            "another tree is another candidate",
            "send the tree that was announced";
        /// A name has a meaning of its own to git or to a file system.
        UnsafeName = "UNSAFE_NAME", Input,
            "a name has a meaning of its own to git or to a file system",
            "writing it could run a hook, open a device or replace another file",
            "rename the file";
        /// Two names are the same to a file system that folds case or composition.
        NameCollision = "NAME_COLLISION", Input,
            "two names are the same to a file system that folds case or composition",
            "the second would replace the first",
            "rename one of the two";
        /// The place to extract to exists already.
        DestinationExists = "DESTINATION_EXISTS", Environment,
            "the place to extract to exists already",
            "files that were there before would become part of the tree",
            "remove it, or choose another place";
        /// Something other than plain files and directories stands where files are to be written.
        DestinationUnsafe = "DESTINATION_UNSAFE", Environment,
            "something other than plain files and directories stands where files are to be written",
            "a link or a mount there would send the bytes elsewhere",
            "look at what stands there and remove it";
        /// A directory to be packed holds a symbolic link.
        SymlinkRefused = "SYMLINK_REFUSED", Input,
            "a directory to be packed holds a symbolic link",
            "links do not travel: they point somewhere else on every machine",
            "replace the link by the file it means, or leave it out with `--deny PATH`";
        /// A directory to be packed holds something that is neither file nor directory.
        KindRefused = "KIND_REFUSED", Input,
            "a directory to be packed holds something that is neither file nor directory",
            "only bytes travel, no devices, pipes or sockets",
            "remove it, or leave its directory out";
        /// A file changed while it was packed.
        FileChanged = "FILE_CHANGED", Environment,
            "a file changed while it was packed",
            "the bytes read are of no one moment",
            "wait until nothing writes there, and pack again";
        /// A `.gitignore` is longer than any person writes it.
        IgnoreFileTooLarge = "IGNORE_FILE_TOO_LARGE", Input,
            "a .gitignore has more than 1 MiB or more than 10,000 lines",
            "every file of the tree is held against every line of it",
            "shorten it; ignore whole directories instead of their files";
        /// Holding the tree against its `.gitignore` files takes too long.
        IgnoreRulesTooSlow = "IGNORE_RULES_TOO_SLOW", Input,
            "holding the tree against its .gitignore files takes more steps than any honest rules need",
            "patterns with many stars cost their length times that of every path, and whoever writes them does not pay for it",
            "take the stars out of the named file's patterns, or write fewer of them";
        /// A pattern of what to deny or to admit says nothing.
        DenyRuleInvalid = "DENY_RULE_INVALID", Configuration,
            "a pattern of what to deny or to admit says nothing",
            "a rule that silently matches nothing would let secrets through",
            "write a name, or a path without empty segments and without `**`";
        /// A file is not what the changeset stands on.
        BaseMismatch = "BASE_MISMATCH", Environment,
            "a file is not what the changeset stands on",
            "whoever made the changes has not seen what is there now",
            "make the changeset again from the tree as it is, or restore the file";
        /// Something stands where the changeset adds a file.
        AddedExists = "ADDED_EXISTS", Environment,
            "something stands where the changeset adds a file",
            "it would be replaced, and the changeset does not know it",
            "look at what stands there; remove or rename it";
        /// Somebody edited the tree while the changeset was applied.
        EditedMeanwhile = "EDITED_MEANWHILE", Environment,
            "somebody edited the tree while the changeset was applied",
            "an edit that nobody has seen would be lost",
            "the tree is as it was, with the edit in it; wait until nothing writes there";
        /// Another process is applying to this directory.
        ApplyBusy = "APPLY_BUSY", Environment,
            "another process is applying to this directory",
            "two at once would take each other's files for somebody's edits",
            "wait for the other one";
        /// The journal of an application that was cut off cannot be read.
        JournalDamaged = "JOURNAL_DAMAGED", Environment,
            "the journal of an application that was cut off cannot be read",
            "without it nothing says which files belong where",
            "look into `.prime-agent-staging-apply`: the files of the tree before are in `slots`";
        /// A changeset could be neither finished nor rolled back.
        ApplyUnfinished = "APPLY_UNFINISHED", Environment,
            "a changeset could be neither finished nor rolled back",
            "the system refused a step of the way back; nothing is lost, the journal knows the rest",
            "mend what the error names, then apply again or recover";
        /// The directory to be packed stays home itself.
        RootDenied = "ROOT_DENIED", Input,
            "the directory to be packed lies in one that never leaves a machine",
            "all that is in a directory of keys is a key, whatever its name",
            "admit it with `--admit NAME/`, or take everything with `--everything`";
        /// A directory holds what an interrupted application or extraction left.
        StagingLeft = "STAGING_LEFT", Input,
            "the directory holds what an interrupted `apply` or `extract` left there",
            "a tree that is half one thing and half another is neither",
            "run `flights archive recover DIR` there; whatever is left after that can be removed";
        /// A file of the base is there but was left out.
        BaseLeftOut = "BASE_LEFT_OUT", Input,
            "a file of the base is there but was left out",
            "the changeset would delete a file that nobody deleted",
            "if the deny list names it, admit it; if a .gitignore does, mend that; or pack a new base";
        /// The operating system refused to read or write.
        Io = "IO", Environment,
            "the operating system refused to read or write",
            "a tree that is not wholly written must not be used",
            "look at the error: space, permissions, or a missing directory";
    }
}

/// A refusal of this crate.
pub type ArchiveError = Refused<ArchiveCode>;
