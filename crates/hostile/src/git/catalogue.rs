//! Every known trick with a bundle, a pack, a delta, a tree or a commit, by a short name, and the
//! forged ones that try it. A test holds that each row is tried, or says why it is not.

/// One known trick.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its number: a letter for what is forged (envelope, pack, tree, commit, special file).
    pub id: &'static str,
    /// What it is.
    pub trick: &'static str,
    /// What tries it.
    pub held: Held,
}

/// How a trick is dealt with.
#[derive(Debug, Clone)]
pub enum Held {
    /// Forged bundles or repositories of these names; each must be refused, its twin accepted.
    Forged(Vec<&'static str>),
    /// Harmless: bundles of these names are accepted as twins.
    Accepted(Vec<&'static str>),
    /// Not forged here, and why.
    Elsewhere(&'static str),
}

/// All rows.
///
/// # Panics
/// The table is not of its form.
pub fn catalogue() -> Vec<Row> {
    TABLE
        .lines()
        .filter(|line| !line.is_empty())
        .map(row)
        .collect()
}

fn row(line: &'static str) -> Row {
    let parts: Vec<&str> = line.split(" | ").collect();
    let [id, trick, word, rest] = parts[..] else {
        panic!("not a row: {line}")
    };
    let names = || rest.split("; ").collect();
    let held = match word {
        "refused" => Held::Forged(names()),
        "accepted" => Held::Accepted(names()),
        "elsewhere" => Held::Elsewhere(rest),
        _ => panic!("not a row: {line}"),
    };
    Row { id, trick, held }
}

/// Number, trick, answer, and the names of what is forged or the reason why nothing is.
const TABLE: &str = r#"
E1 | an empty file | refused | no bytes at all
E2 | one byte too many | refused | one byte more than a bundle may have
E3 | a header and no pack | refused | a header and no pack; a pack cut in its head
E4 | no empty line | refused | no line between header and pack
E5 | garbage for a pack | refused | garbage for a pack; another magic
E6 | an endless header line | refused | a header line of 64 KiB; a header one byte too long
E7 | a million prerequisites | refused | sixty prerequisites; a thousand prerequisites
E8 | no prerequisite | refused | no prerequisite
E9 | another prerequisite | refused | another commit as prerequisite; a file as prerequisite; a prerequisite in capitals; a prerequisite cut short; a prerequisite with a digit more
E10 | terminal escapes in the header | refused | an escape beside the prerequisite; an escape in a reference
E11 | no, two or doubled references | refused | no reference; two references; one reference twice
E12 | HEAD only | refused | the reference "HEAD"
E13 | references that are paths, options or replacements | refused | the reference "../../evil"; the reference "--upload-pack=touch x"; the reference "refs/heads/x.lock"; a tab in a reference; the reference "refs/replace/1111111111111111111111111111111111111111"
E14 | tags, notes, remotes | refused | the reference "refs/tags/v1"; the reference "refs/notes/commits"; the reference "refs/remotes/origin/main"
E15 | a head that is not in the pack | refused | a head that is not in the pack; a head that is a tree of the pack
E16 | filters | refused | a filter; a filter by ids
E17 | another hash | refused | another hash
E18 | capabilities out of place, line ends | refused | a capability after the reference; a capability in version 2; carriage returns
E19 | bytes after the pack | refused | bytes after the pack; bytes before the checksum
E20 | a bundle that names others to fetch | elsewhere | no verb that talks to a network exists; capabilities are refused
E21 | a bundle whose file name is an option | elsewhere | a bundle reaches no git, by name or by content
P1 | a compression bomb | refused | 120 MiB in 120 KB; 120 MiB that declare 100 bytes
P2 | a delta bomb | refused | 1,000 MiB of copies; copies that declare 100 bytes
P3 | many objects, each below the limit | refused | a thousand deltas of 4 KB; a thousand objects of 4 KB; one byte more than 2 MiB
P4 | a delta that declares 2^62 | refused | a result of 2^62; a result of 4 GiB
P5 | a count that cannot be | refused | a count of 2^32-1; a count of 20,000,000; a count of 1,025; a count no pack of this size has
P6 | a count that is not so | refused | one object more announced; one object less announced; a count of zero; an empty pack
P7 | a size that is not so | refused | a size of 8 GiB; a size of 1 GiB; one byte more than declared; one byte less than declared; nothing instead of what is declared
P8 | numbers longer than need be | refused | a size in more bytes than it needs; a size in sixty bytes; a result size in more bytes than it needs; a size of 2^62
P9 | a preset dictionary | refused | a preset dictionary
P10 | 20,000 empty blocks | accepted | broken data behind 20,000 empty blocks
P11 | wrong checksums, versions and types | refused | a wrong checksum of the content; a wrong checksum; a pack of version 3; a pack of version 4; an entry of type 0; an entry of type 5
P12 | distances that meet no object | refused | a distance of zero; a distance into an object; a distance to the pack's head; a distance beyond the start; a distance of 2^60
P13 | deltas on themselves, on each other, on nothing | refused | a delta on itself; deltas on each other; a delta on nothing; a delta on an object that is there twice
P14 | a delta on somebody's secret | refused | a delta on somebody's secret; somebody's unpublished file, by its id; a delta on the baseline commit
P15 | a delta on a huge file | refused | a delta on a file of 16 MiB
P16 | a deep chain | refused | a chain of 51 deltas; a chain of 1,000 deltas; a chain of 51 deltas, last one first
P17 | broken instructions | refused | a base of another size; a result shorter than declared; a result longer than declared; a copy from beyond the base; a copy from 2^32; a copy from beyond a large file; instruction zero; an empty delta; half a size; no instructions; a copy without its operands; an insertion without its bytes
P18 | a commit as a delta | refused | a second commit as a delta on the first
P19 | one object twice | refused | one object twice
P20 | tags and further commits | refused | a tag; a second commit; the baseline itself
P21 | objects nobody refers to | refused | a file nobody refers to; a directory nobody refers to; the file as it was before
P22 | a forged SHA-1 collision | elsewhere | no colliding pair of git objects is known; the hasher's mark is tried in the importer's hash module
P23 | an object the baseline has | accepted | an old file that stays as it is
P24 | objects of another kind than their place | refused | the baseline as a file; a file as the top; a commit as a file; a file as a directory; the baseline as a directory; a new directory as a file; a new file as a directory; a directory as a file
P25 | an index beside the pack | elsewhere | only the bundle is read; every index is written by git here
T1 | the directory itself | refused | the directory itself
T2 | the directory above | refused | the directory above
T3 | .git in any case | refused | git's folder; git's folder in capitals
T4 | .git as Windows reads it | refused | git's folder by its short name; git's folder and a space; git's folder and a dot; git's folder and dots and spaces; git's folder as a stream; git's folder as another stream; git's folder behind a backslash
T5 | .git as macOS reads it | refused | git's folder with a joiner; git's folder with a joiner inside; git's folder with a mark
T6 | git~2 | refused | a second short name
T7 | backslashes | refused | a backslash
T8 | slashes, no name, half an entry | refused | a name with a slash; an absolute path; no name; half an entry; a NUL more; an entry without its object; nineteen bytes of an id; an entry of nothing but an id
T9 | drives, streams, devices, ends | refused | a drive; a stream; a device; another device; a third device; a port; a dot at the end; a space at the end
T10 | control characters | refused | a line feed; a carriage return; an escape; a delete; a C1 control
T11 | not UTF-8 | refused | not UTF-8
T12 | text turned round, nothing to see | refused | text turned round; a zero-width space
T13 | names like options | accepted | an option and a stream; a long option and a stream
T14 | names too long | refused | a name of 256 bytes; a name of 5,000 bytes
T15 | too deep | refused | 2,000 directories deep; 66 directories inside one another
T16 | out of order | refused | out of order
T17 | one name twice | refused | one name twice; file and directory of one name
T18 | one name but for case | refused | the same in another case; a third of a clashing pair; two new names but for case; sharp s and two of them
T19 | one name but for Unicode form | refused | letters taken apart; the same with a joiner
T20 | modes with zeros before them | refused | a mode with a zero before it; a directory in an old spelling
T21 | modes git shows as others | refused | a new group-writable file; a file only its owner may read; a file anybody may write; a mode without permissions; a set-uid file; no mode
T22 | links | refused | a symlink added; a file made a symlink; a file made a link; a link that leads elsewhere; a link with a NUL in its target; a symlink removed; only a link removed
T23 | submodules | refused | a submodule added; a submodule removed; a submodule at another commit; a submodule made a file
T24 | submodules in disguise | refused | a submodule in disguise; another one; a mode without end
T25 | no object | refused | an entry of no object
T26 | an object that is not there | refused | a file that is not there; a file that does not travel
T27 | an empty directory | refused | an empty directory
T28 | ten million paths in nine objects | refused | ten million paths in nine objects; a wide directory many times; a directory wider than the limit; too many paths
T29 | the baseline's own trees, over and over | refused | the old top once more; an old directory 600 times
T30 | beyond the grant | refused | a file removed outside the grant; a grant that is the start of another name
T31 | file and directory change places | refused | a file made a directory outside the grant; a directory made a file beside the grant
T32 | a bit makes a file a program | elsewhere | a grant covers a path with its mode; the change is listed, and what a case runs is the certifier's
T33 | everything removed | refused | everything removed
T34 | the same content in another mode | refused | a group-writable file
C1 | no parent | refused | a root commit; no parent in a bundle
C2 | a merge | refused | a merge; two parents in a bundle; two parents, the baseline second in a bundle
C3 | an octopus | refused | eight parents in a bundle
C4 | another parent | refused | another parent in a bundle
C5 | one parent twice | refused | one parent twice; one parent twice in a bundle
C6 | a commit beside the baseline | refused | a child of the baseline's sibling; a child of the baseline's parent
C7 | headers twice | refused | two authors in a bundle; two committers; two committers in a bundle; two trees in a bundle
C8 | zones that are none | refused | a zone of five digits in a bundle; a time zone of 100 hours; a zone of 60 minutes in a bundle
C9 | identities and dates that are none | refused | no space before the date in a bundle; no space before the mail in a bundle; no mail in a bundle; no name in a bundle; a mail within a mail in a bundle; a name with a bracket in a bundle; no date in a bundle; a date with a zero before it in a bundle; a date that is no number in a bundle; a date beyond 64 bits in a bundle; an empty mail in a bundle
C10 | dates that cannot be | refused | the year 1970; the year 2200; a date of 1970 in a bundle
C11 | NULs, headers without an end | refused | a NUL in the headers in a bundle; a NUL in the message in a bundle; headers without an end in a bundle
C12 | headers missing or cut | refused | no tree in a bundle; a tree cut short in a bundle; no author in a bundle; no committer in a bundle; a parent cut short in a bundle; a parent in capitals in a bundle
C13 | signatures, merged tags, unknown headers | refused | a signature; a signature for another hash in a bundle; a merged tag in a bundle; an unknown header
C14 | encodings | refused | an encoding; an encoding in a bundle; a message that is not UTF-8
C15 | messages without end | refused | a subject of 64 KiB in a bundle; a message of 1 MiB in a bundle
C16 | terminal escapes and text turned round | refused | an escape in the message; an escape in the author; a message turned round
C17 | format strings | elsewhere | no message is ever given to git as a format
C18 | somebody else's name | elsewhere | a rule of the request, tried in the importer's tests of identity
C19 | no change | refused | no change
S1 | filters by attributes | refused | a new .gitattributes; a new .GitAttributes
S2 | conversions by attributes | refused | a new .gitattributes
S3 | attributes git itself refuses | elsewhere | granted ones are left to git's second opinion, tried in the importer's tests of arrival
S4 | control files that are links | refused | a symlink added
S5 | submodule settings git itself refuses | refused | a new .gitmodules
S6 | submodule settings git lets pass | refused | a new .gitmodules
S7 | large-file servers | refused | a new .lfsconfig
S8 | an ignore list that hides a file | refused | a new .gitignore
S9 | other files git obeys | refused | a new .mailmap; a new .git-blame-ignore-revs; a new .gitreview; a new .githooks; a new .husky
S10 | files that builds, editors and agents obey | refused | a new .envrc; a new .vscode; a new .github; a new Makefile; a new CLAUDE.md; a new AGENTS.md
S11 | a .git file that leads elsewhere | refused | git's folder
S12 | a repository in the tree | refused | a repository in the tree
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{attacks, bundle_attacks};
    use std::collections::BTreeSet;

    /// Names of everything that is forged, of bundles and of repositories.
    fn forged() -> BTreeSet<String> {
        let bundles = bundle_attacks().into_iter().map(|attack| attack.name);
        let repositories = attacks().into_iter().map(|attack| attack.name.to_owned());
        bundles.chain(repositories).collect()
    }

    /// What is wrong with a row.
    fn fault(row: &Row, forged: &BTreeSet<String>) -> Option<String> {
        match &row.held {
            Held::Forged(names) | Held::Accepted(names) => {
                let missing = names.iter().find(|name| !forged.contains(**name));
                missing.map(|name| format!("{}: {name:?} is not forged", row.id))
            }
            Held::Elsewhere(reason) if reason.len() > 15 => None,
            Held::Elsewhere(_) => Some(format!("{}: no reason", row.id)),
        }
    }

    #[test]
    fn every_known_trick_is_forged_or_says_why_not() {
        let (rows, forged) = (catalogue(), forged());
        let faults: Vec<String> = rows.iter().filter_map(|row| fault(row, &forged)).collect();
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), rows.len(), "two rows of one number");
        assert_eq!(rows.len(), 21 + 25 + 34 + 19 + 12);
        let held = rows
            .iter()
            .filter(|row| !matches!(row.held, Held::Elsewhere(_)));
        assert!(held.count() >= 102, "a row was given up");
    }

    #[test]
    fn a_row_that_nothing_tries_is_noticed() {
        let forged = forged();
        for line in [
            "X1 | x | refused | never forged",
            "X1 | x | refused | a tag; never forged",
            "X1 | x | refused | ",
            "X1 | x | elsewhere | no",
        ] {
            assert!(fault(&row(line), &forged).is_some(), "{line}");
        }
        assert!(fault(&row("X1 | x | refused | a tag"), &forged).is_none());
    }
}
