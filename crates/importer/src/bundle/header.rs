use crate::{ImportError, ImporterCode};
use flightproof_core::{CommitId, escape};
use std::borrow::Cow;

/// Most bytes of a bundle: 128 KiB.
pub(crate) const BUNDLE: usize = 131_072;
/// Most bytes of its header: two ids, a name, and a subject of at most 1 KiB fit many times. A
/// header line of 64 MiB kept git busy for half a minute.
const HEADER: usize = 4_096;
/// The one reference in it.
pub(crate) const REFERENCE: &str = "refs/export/head";
/// The first line.
const SIGNATURE: &str = "# v2 git bundle";

/// A bundle whose header says exactly what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bundle<'a> {
    /// What it brings.
    pub(crate) head: CommitId,
    /// What follows the header.
    pub(crate) pack: &'a [u8],
}

impl<'a> Bundle<'a> {
    /// The header of one commit on a baseline.
    pub(crate) fn header(baseline: CommitId, head: CommitId) -> Vec<u8> {
        format!("{SIGNATURE}\n-{baseline}\n{head} {REFERENCE}\n\n").into_bytes()
    }

    /// Reads the header: signature, the baseline as the one prerequisite, the one reference.
    pub(crate) fn read(bytes: &'a [u8], baseline: CommitId) -> Result<Self, ImportError> {
        if bytes.is_empty() {
            return Err(ImporterCode::BundleMissing.refuse("0 bytes"));
        }
        if bytes.len() > BUNDLE {
            let detail = format!("got {} bytes, at most {BUNDLE}", bytes.len());
            return Err(ImporterCode::BundleOverLimit.refuse(detail));
        }
        let (header, pack) = split(bytes, HEADER)?;
        let header = text(header)?;
        let mut lines = header.split('\n');
        if lines.next() != Some(SIGNATURE) {
            return Err(malformed(format!("expected {SIGNATURE:?} as first line")));
        }
        check_places(lines.clone())?;
        let mut lines = lines.peekable();
        let prerequisites: Vec<&str> =
            std::iter::from_fn(|| lines.next_if(|line| line.starts_with('-'))).collect();
        let references: Vec<&str> = lines.collect();
        check_prerequisite(&prerequisites, baseline)
            .map_err(|refused| note_repetition(refused, &references, baseline))?;
        let head = read_reference(&references)?;
        Ok(Self { head, pack })
    }
}

/// Header without its empty line, and the rest.
fn split(bytes: &[u8], most: usize) -> Result<(&[u8], &[u8]), ImportError> {
    let end = bytes
        .windows(2)
        .take(most - 1)
        .position(|pair| pair == b"\n\n")
        .ok_or_else(|| malformed(format!("it does not end within {most} bytes")))?;
    let header = bytes.get(..end).unwrap_or_default();
    Ok((header, bytes.get(end + 2..).unwrap_or_default()))
}

/// Git writes the subject of the baseline beside its id, and an old one may be in any encoding. No
/// other part of a header has a character that is not plain, so none equals what is left out here.
fn text(header: &[u8]) -> Result<Cow<'_, str>, ImportError> {
    let text = String::from_utf8_lossy(header);
    match text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
        Some(at) => Err(malformed(format!("a control character at offset {at}"))),
        None => Ok(text),
    }
}

/// The same bundle without the subject of its prerequisite, which may be anything.
pub(super) fn without_subject(bundle: &[u8]) -> Vec<u8> {
    /// A sign and an id.
    const LINE: usize = 1 + 40;
    let Ok((header, pack)) = split(bundle, BUNDLE) else {
        return bundle.to_vec();
    };
    let mut out = Vec::with_capacity(bundle.len());
    for line in header.split(|byte| *byte == b'\n') {
        let is_prerequisite = line.starts_with(b"-") && line.get(LINE) == Some(&b' ');
        out.extend(line.get(..LINE).filter(|_| is_prerequisite).unwrap_or(line));
        out.push(b'\n');
    }
    out.push(b'\n');
    out.extend(pack);
    out
}

/// Prerequisites come first, references after them; there are no capabilities in this version.
fn check_places<'a>(lines: impl Iterator<Item = &'a str>) -> Result<(), ImportError> {
    let mut late = lines.skip_while(|line| line.starts_with('-'));
    match late.find(|line| line.starts_with(['@', '-', '#'])) {
        Some(line) => Err(malformed(format!(
            "a line out of place: {}",
            escape(line, 80)
        ))),
        None => Ok(()),
    }
}

/// `-<baseline>`, and whatever text git puts behind it.
fn check_prerequisite(lines: &[&str], baseline: CommitId) -> Result<(), ImportError> {
    let wrong = |detail: String| Err(ImporterCode::BundlePrerequisite.refuse(detail));
    let [line] = lines else {
        return wrong(format!("got {}, expected one", lines.len()));
    };
    let line = line.strip_prefix('-').unwrap_or_default();
    let rest = line.strip_prefix(&baseline.to_string());
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) {
        return Ok(());
    }
    wrong(format!("got {}, expected {baseline}", escape(line, 80)))
}

/// A bundle that was imported already is asked for on its own commit.
fn note_repetition(refused: ImportError, references: &[&str], baseline: CommitId) -> ImportError {
    match read_reference(references) {
        Ok(head) if head == baseline => refused.code.refuse(format!(
            "{}: the baseline is the bundle's own commit",
            refused.detail
        )),
        _ => refused,
    }
}

fn read_reference(lines: &[&str]) -> Result<CommitId, ImportError> {
    let wrong = |detail: String| ImporterCode::BundleReference.refuse(detail);
    let [line] = lines else {
        return Err(wrong(format!("got {}, expected one", lines.len())));
    };
    let (id, name) = line.split_once(' ').unwrap_or((line, ""));
    if name != REFERENCE {
        let name = escape(name, 80);
        return Err(wrong(format!("got {name}, expected {REFERENCE}")));
    }
    id.parse()
        .map_err(|e| wrong(format!("{}: {e}", escape(id, 80))))
}

fn malformed(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::BundleHeader.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> (CommitId, CommitId) {
        (
            "1".repeat(40).parse().unwrap(),
            "2".repeat(40).parse().unwrap(),
        )
    }

    fn code(header: &str) -> ImporterCode {
        Bundle::read(header.as_bytes(), ids().0).unwrap_err().code
    }

    #[test]
    fn only_the_agreed_header_is_accepted() {
        use ImporterCode::{BundleHeader, BundlePrerequisite, BundleReference};
        let (base, head) = ids();
        let good = format!("# v2 git bundle\n-{base} subject\n{head} refs/export/head\n\nPACK");
        let read = Bundle::read(good.as_bytes(), base).unwrap();
        assert_eq!((read.head, read.pack), (head, &b"PACK"[..]));
        for (find, put, wanted) in [
            ("v2", "v3", BundleHeader),
            ("\n\n", "\n", BundleHeader),
            ("\n", "\r\n", BundleHeader),
            ("subject", "\u{1b}[31m", BundleHeader),
            ("subject", &"x".repeat(HEADER), BundleHeader),
            ("bundle\n", "bundle\n@filter=blob:none\n", BundleHeader),
            ("head\n", "head\n@filter=blob:none\n", BundleHeader),
            ("head\n", &format!("head\n-{base}\n"), BundleHeader),
            (&format!("-{base} subject\n"), "", BundlePrerequisite),
            (&format!("-{base}"), &format!("-{head}"), BundlePrerequisite),
            (" subject", "0", BundlePrerequisite),
            (
                "subject\n",
                &format!("subject\n-{base}\n"),
                BundlePrerequisite,
            ),
            ("refs/export/head", "HEAD", BundleReference),
            ("refs/export/head", "refs/export/head ", BundleReference),
            (
                "export/head\n",
                &format!("export/head\n{head} refs/heads/x\n"),
                BundleReference,
            ),
            (&format!("{head} refs/export/head\n"), "", BundleReference),
            (&format!("{head} refs"), "2222 refs", BundleReference),
        ] {
            assert_eq!(code(&good.replacen(find, put, 1)), wanted, "{put:?}");
        }
    }

    #[test]
    fn the_subject_of_an_old_baseline_may_be_in_any_encoding() {
        let (base, head) = ids();
        let mut bytes = format!("# v2 git bundle\n-{base} caf").into_bytes();
        bytes.extend(b"\xe9\tau lait");
        bytes.extend(format!("\n{head} refs/export/head\n\nPACK").bytes());
        assert_eq!(Bundle::read(&bytes, base).unwrap().head, head);
        let plain = without_subject(&bytes);
        let wanted = format!("# v2 git bundle\n-{base}\n{head} refs/export/head\n\nPACK");
        assert_eq!(plain, wanted.as_bytes());
        assert_eq!(without_subject(&plain), plain);
        assert_eq!(without_subject(b"no header"), b"no header");
    }

    #[test]
    fn nothing_and_too_much_are_not_even_looked_at() {
        let read = |bytes: &[u8]| Bundle::read(bytes, ids().0).unwrap_err().code;
        assert_eq!(read(b""), ImporterCode::BundleMissing);
        assert_eq!(
            read(&vec![b'\n'; BUNDLE + 1]),
            ImporterCode::BundleOverLimit
        );
    }

    #[test]
    fn the_header_ends_within_its_limit() {
        let (base, head) = ids();
        let sized = |text: usize| {
            let text = "x".repeat(text);
            format!("# v2 git bundle\n-{base} {text}\n{head} refs/export/head\n\n")
        };
        let fits = HEADER - sized(0).len();
        assert!(Bundle::read(sized(fits).as_bytes(), base).is_ok());
        assert_eq!(code(&sized(fits + 1)), ImporterCode::BundleHeader);
    }
}
