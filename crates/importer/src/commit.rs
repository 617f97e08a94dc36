use crate::{ImportError, ImporterCode};
use flightproof_core::{CommitId, ObjectId, escape, is_default_ignorable};

/// A commit that says exactly what the grammar lets it say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<CommitId>,
    /// `Name <mail>`.
    pub(crate) author: String,
    /// `Name <mail>`.
    pub(crate) committer: String,
}

/// Most bytes of a message; the longest sensible ones are a few pages.
const MESSAGE: usize = 16 << 10;
/// Most bytes of its first line.
const SUBJECT: usize = 1 << 10;
/// Most bytes of a name and mail.
const IDENTITY: usize = 512;
/// 2005-01-01: before the first git commit.
const EARLIEST: u64 = 1_104_537_600;
/// A clock may be ahead by a day, in seconds.
const AHEAD: u64 = 86_400;

impl Commit {
    /// Reads a commit object. `now` is in unix seconds.
    ///
    /// The order is fixed: tree, parents, author, committer, empty line, message. Whatever git
    /// would also read (signatures, encodings, merge tags, unknown headers) is refused.
    pub(crate) fn parse(body: &[u8], now: u64) -> Result<Self, ImportError> {
        if body.contains(&0) {
            return Err(malformed("a NUL byte"));
        }
        let text =
            std::str::from_utf8(body).map_err(|_| ImporterCode::CommitText.refuse("not UTF-8"))?;
        let (head, message) = text
            .split_once("\n\n")
            .ok_or_else(|| malformed("no empty line after the headers"))?;
        let mut lines = head.split('\n').peekable();
        let tree = object(field(lines.next(), "tree")?)?;
        let mut parents = Vec::new();
        while let Some(parent) = lines.next_if(|line| line.starts_with("parent ")) {
            parents.push(object(field(Some(parent), "parent")?)?);
        }
        let author = identity(field(lines.next(), "author")?, now)?;
        let committer = identity(field(lines.next(), "committer")?, now)?;
        if let Some(line) = lines.next() {
            return Err(ImporterCode::CommitHeader.refuse(escape(line, 80)));
        }
        check_message(message)?;
        Ok(Self {
            tree,
            parents,
            author,
            committer,
        })
    }
}

/// The tree of a commit that is not judged: the baseline may have any headers it likes.
pub(crate) fn tree_of(body: &[u8]) -> Result<ObjectId, ImportError> {
    let line = body.split(|b| *b == b'\n').next().unwrap_or_default();
    object(field(std::str::from_utf8(line).ok(), "tree")?)
}

fn field<'a>(line: Option<&'a str>, name: &str) -> Result<&'a str, ImportError> {
    line.and_then(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .ok_or_else(|| {
            malformed(format!(
                "expected {name}, got {}",
                escape(line.unwrap_or("nothing"), 80)
            ))
        })
}

fn object(text: &str) -> Result<ObjectId, ImportError> {
    text.parse().map_err(malformed)
}

/// `Name <mail> seconds +hhmm`, checked; the first two parts are returned.
fn identity(text: &str, now: u64) -> Result<String, ImportError> {
    let bad = || malformed(format!("identity {}", escape(text, 120)));
    let (who, when) = text.rsplit_once("> ").ok_or_else(bad)?;
    let (name, mail) = who.split_once(" <").ok_or_else(bad)?;
    let plain = |part: &str| !part.contains(['<', '>']) && part.trim() == part;
    if !plain(name) || !plain(mail) || name.is_empty() || mail.is_empty() {
        return Err(bad());
    }
    let is_unfit = |c| is_active(c) || is_default_ignorable(c);
    if who.len() > IDENTITY || who.chars().any(is_unfit) {
        return Err(ImporterCode::CommitText.refuse(escape(who, 120)));
    }
    let (seconds, zone) = when.split_once(' ').ok_or_else(bad)?;
    check_date(seconds, zone, now)?;
    Ok(format!("{who}>"))
}

fn check_date(seconds: &str, zone: &str, now: u64) -> Result<(), ImportError> {
    let bad =
        || ImporterCode::CommitDate.refuse(format!("{} {}", escape(seconds, 30), escape(zone, 10)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let whole: u64 = seconds.parse().map_err(|_| bad())?;
    if !digits(seconds) || seconds.starts_with('0') {
        return Err(bad());
    }
    let offset = zone.strip_prefix(['+', '-']).ok_or_else(bad)?;
    let number: u32 = offset.parse().map_err(|_| bad())?;
    // The farthest zones are +14:00 and -12:00.
    let zone_fits = digits(offset) && offset.len() == 4 && number <= 1400 && number % 100 < 60;
    if !zone_fits || !(EARLIEST..=now.saturating_add(AHEAD)).contains(&whole) {
        return Err(bad());
    }
    Ok(())
}

fn check_message(message: &str) -> Result<(), ImportError> {
    let subject = message.split('\n').next().unwrap_or_default();
    if message.len() > MESSAGE || subject.len() > SUBJECT {
        return Err(ImporterCode::CommitText.refuse(format!(
            "message of {} bytes (at most {MESSAGE}), first line {} (at most {SUBJECT})",
            message.len(),
            subject.len()
        )));
    }
    match message
        .chars()
        .find(|c| is_hidden(*c) || (is_active(*c) && !matches!(c, '\n' | '\t')))
    {
        Some(c) => Err(ImporterCode::CommitText.refuse(format!("U+{:04X}", u32::from(c)))),
        None => Ok(()),
    }
}

/// Characters a terminal acts on, or that reorder what stands beside them.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Characters that are not shown, and that programs read: orders to an agent can be written in them.
/// Joiners and selectors of variants are part of how people write words and signs.
fn is_hidden(c: char) -> bool {
    is_default_ignorable(c) && !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

fn malformed(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::CommitMalformed.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;
    const TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

    fn commit(headers: &str, message: &str) -> Result<Commit, ImporterCode> {
        let text = format!("tree {TREE}\n{headers}\n\n{message}");
        Commit::parse(text.as_bytes(), NOW).map_err(|e| e.code)
    }

    fn signed(author: &str) -> String {
        format!("parent {TREE}\nauthor {author}\ncommitter C <c@x> 1600000000 +0000")
    }

    #[test]
    fn an_ordinary_commit_is_read() {
        let read = commit(
            &signed("A B <a@x> 1600000000 -0330"),
            "Subject\n\nBödy\t✓\n",
        )
        .unwrap();
        assert_eq!(read.author, "A B <a@x>");
        assert_eq!(read.committer, "C <c@x>");
        assert_eq!(read.parents.len(), 1);
    }

    #[test]
    fn identities_and_dates_have_one_form() {
        use ImporterCode::{CommitDate, CommitMalformed, CommitText};
        for (author, code) in [
            ("A <a@x> 1600000000", CommitMalformed),
            ("A<a@x> 1600000000 +0000", CommitMalformed),
            ("<a@x> 1600000000 +0000", CommitMalformed),
            ("A <a@x>> 1600000000 +0000", CommitMalformed),
            ("A <> 1600000000 +0000", CommitMalformed),
            ("A  <a@x> 1600000000 +0000", CommitMalformed),
            ("A <a@x> 1600000000 +00000", CommitDate),
            ("A <a@x> 1600000000 +9999", CommitDate),
            ("A <a@x> 1600000000 +0060", CommitDate),
            ("A <a@x> 1600000000 ++100", CommitDate),
            ("A <a@x> 01600000000 +0000", CommitDate),
            ("A <a@x> +1600000000 +0000", CommitDate),
            ("A <a@x> 99999999999999999999 +0000", CommitDate),
            ("A <a@x> 7 +0000", CommitDate),
            ("A <a@x> 1700086401 +0000", CommitDate),
            ("A\u{1b}[31m <a@x> 1600000000 +0000", CommitText),
            ("A\u{202e} <a@x> 1600000000 +0000", CommitText),
        ] {
            assert_eq!(
                commit(&signed(author), "m").unwrap_err(),
                code,
                "{author:?}"
            );
        }
        assert!(commit(&signed("A <a@x> 1700086400 +1400"), "m").is_ok());
    }

    #[test]
    fn headers_in_another_order_or_number_are_refused() {
        let who = "A <a@x> 1600000000 +0000";
        for (headers, code) in [
            (
                format!("committer {who}\nauthor {who}"),
                ImporterCode::CommitMalformed,
            ),
            (format!("author {who}"), ImporterCode::CommitMalformed),
            (
                format!("author {who}\ncommitter {who}\ncommitter {who}"),
                ImporterCode::CommitHeader,
            ),
            (
                format!("author {who}\ncommitter {who}\nencoding ISO-2022-JP"),
                ImporterCode::CommitHeader,
            ),
            (
                format!("author {who}\ncommitter {who}\ngpgsig x\n y"),
                ImporterCode::CommitHeader,
            ),
            (
                format!("parent {}\nauthor {who}\ncommitter {who}", "A".repeat(40)),
                ImporterCode::CommitMalformed,
            ),
        ] {
            assert_eq!(commit(&headers, "m").unwrap_err(), code, "{headers}");
        }
    }

    #[test]
    fn messages_are_bounded_plain_text() {
        let headers = signed("A <a@x> 1600000000 +0000");
        for message in [
            "x".repeat(SUBJECT + 1),
            format!("s\n{}", "x\n".repeat(MESSAGE / 2)),
            "a\u{1b}]0;title\u{7}".into(),
            "a\u{9b}2J".into(),
            "a\r\n".into(),
            "a\u{2066}b".into(),
        ] {
            assert_eq!(
                commit(&headers, &message).unwrap_err(),
                ImporterCode::CommitText
            );
        }
        assert_eq!(
            commit(&headers, "a\0b").unwrap_err(),
            ImporterCode::CommitMalformed
        );
        assert!(commit(&headers, "").is_ok());
        assert!(commit(&headers, "\u{1f469}\u{200d}\u{1f680} \u{2764}\u{fe0f}").is_ok());
        assert!(commit(&headers, "a\u{e0072}\u{e0075}").is_err(), "tags");
    }

    #[test]
    fn a_baseline_may_be_any_commit_but_needs_a_tree() {
        assert_eq!(
            tree_of(format!("tree {TREE}\nwhatever").as_bytes())
                .unwrap()
                .to_string(),
            TREE
        );
        assert!(tree_of(b"parent x").is_err());
        assert!(tree_of(b"").is_err());
    }
}
