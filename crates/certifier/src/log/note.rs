//! Signed notes and the checkpoints in them.

use crate::key::{PublicKey, SecretKey};
use crate::{CertifierCode, CertifierError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_core::{Digest, escape};
use std::fmt;
use std::str::FromStr;

/// Largest checkpoint in bytes: a hundred times a real one.
const MAX_BYTES: usize = 16 * 1024;
/// Most signatures looked at. The format demands that sixteen be accepted.
const MAX_SIGNATURES: usize = 32;
/// The type of an Ed25519 signature over a note.
const ED25519: u8 = 1;

/// The name of a log: what checkpoints begin with and sign as. No spaces, no `+`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogName(String);

impl FromStr for LogName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
        if (1..=120).contains(&text.len()) && text.chars().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a log's name is 1 to 120 letters, digits and . / _ -")
        }
    }
}

impl fmt::Display for LogName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A log by name and key, written `NAME+HASH+KEY` as other programs write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogKey {
    name: LogName,
    key: PublicKey,
}

impl LogKey {
    /// The log of this name whose checkpoints this key signs.
    pub fn new(name: LogName, key: PublicKey) -> Self {
        Self { name, key }
    }

    /// Its name.
    pub fn name(&self) -> &LogName {
        &self.name
    }

    /// The first bytes of a signature by it: a hint, as any hash of four bytes.
    fn hint(&self) -> [u8; 4] {
        let key = self.key.as_bytes();
        let text = [self.name.0.as_bytes(), b"\n", &[ED25519], key].concat();
        let [a, b, c, d, ..] = *Digest::of(&text).as_bytes();
        [a, b, c, d]
    }
}

impl fmt::Display for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = u32::from_be_bytes(self.hint());
        let key = STANDARD.encode([&[ED25519], &self.key.as_bytes()[..]].concat());
        write!(f, "{}+{hint:08x}+{key}", self.name)
    }
}

impl FromStr for LogKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a log's key is NAME+HASH+KEY, as `flights cert log show` prints it";
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(_), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(WRONG);
        };
        let bytes = STANDARD.decode(key).map_err(|_| WRONG)?;
        let Some((&ED25519, key)) = bytes.split_first() else {
            return Err(WRONG);
        };
        let key = <&[u8; 32]>::try_from(key).map_err(|_| WRONG)?;
        let key = PublicKey::from_bytes(key).map_err(|_| "the log's key is weak or none")?;
        let found = Self::new(name.parse()?, key);
        // The hash in the middle, and the one spelling.
        if found.to_string() == text {
            Ok(found)
        } else {
            Err(WRONG)
        }
    }
}

/// The head of a log: its name, how many entries it has, and the root over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log.
    pub origin: LogName,
    /// Number of entries.
    pub size: u64,
    /// Root of the tree.
    pub root: Digest,
}

impl Checkpoint {
    fn text(&self) -> String {
        let root = STANDARD.encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// The checkpoint as a note that the log's key signed. A note begins with the log's name, so its
    /// signature passes for no other document's.
    pub fn sign(&self, key: &SecretKey) -> String {
        let text = self.text();
        let log = LogKey::new(self.origin.clone(), key.public());
        let signature = [&log.hint()[..], &key.sign(text.as_bytes())].concat();
        format!(
            "{text}\n\u{2014} {} {}\n",
            self.origin,
            STANDARD.encode(signature)
        )
    }

    /// Reads a checkpoint that the log's key signed. Other signatures are of no account.
    ///
    /// # Errors
    /// `CHECKPOINT_INVALID`.
    pub fn open(note: &[u8], log: &LogKey) -> Result<Self, CertifierError> {
        if note.len() > MAX_BYTES {
            return Err(invalid(format_args!("more than {MAX_BYTES} bytes")));
        }
        let note = std::str::from_utf8(note).map_err(|_| invalid("not UTF-8"))?;
        if note.chars().any(|c| c < ' ' && c != '\n') {
            return Err(invalid("a control character"));
        }
        let end = note.rfind("\n\n").ok_or_else(|| invalid("no signature"))?;
        let (text, signatures) = (&note[..=end], &note[end + 2..]);
        signed(text, signatures, log)?;
        let checkpoint = Self::parse(text)?;
        if checkpoint.origin != log.name {
            return Err(invalid(format_args!("of log {}", checkpoint.origin)));
        }
        Ok(checkpoint)
    }

    /// No extension lines: nothing here would look at them.
    fn parse(text: &str) -> Result<Self, CertifierError> {
        let lines: Vec<&str> = text.lines().collect();
        let [origin, size, root] = lines[..] else {
            return Err(invalid(format_args!("{} lines, expected 3", lines.len())));
        };
        let root = STANDARD.decode(root).ok();
        let root = root.and_then(|root| <[u8; 32]>::try_from(root).ok());
        let checkpoint = Self {
            origin: origin.parse().map_err(invalid)?,
            size: size.parse().map_err(|_| invalid("no size"))?,
            root: Digest::from_bytes(root.ok_or_else(|| invalid("no root"))?),
        };
        // Leading zeros, signs, other spellings.
        if checkpoint.text() == text {
            Ok(checkpoint)
        } else {
            Err(invalid("not in its one spelling"))
        }
    }
}

/// Whether the log's key signed. One bad signature in its name spoils the note.
fn signed(text: &str, signatures: &str, log: &LogKey) -> Result<(), CertifierError> {
    if !signatures.ends_with('\n') {
        return Err(invalid("a signature that is cut off"));
    }
    let mut good = false;
    for (count, line) in signatures.lines().enumerate() {
        if count >= MAX_SIGNATURES {
            return Err(invalid(format_args!(
                "more than {MAX_SIGNATURES} signatures"
            )));
        }
        let mut parts = line.splitn(3, ' ');
        let (Some("\u{2014}"), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid(format_args!("no signature: {}", escape(line, 60))));
        };
        let bytes = STANDARD.decode(rest).map_err(|_| invalid("a signature"))?;
        let Some((hint, signature)) = bytes.split_first_chunk::<4>() else {
            return Err(invalid("a signature without its hint"));
        };
        if name != log.name.0 || *hint != log.hint() {
            continue;
        }
        if !log.key.verifies(text.as_bytes(), signature) {
            return Err(invalid("the log's signature does not verify"));
        }
        good = true;
    }
    match good {
        true => Ok(()),
        false => Err(invalid(format_args!("not signed by {}", log.name))),
    }
}

fn invalid(reason: impl fmt::Display) -> CertifierError {
    CertifierCode::CheckpointInvalid.refuse(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(seed: u8) -> SecretKey {
        SecretKey::from_seed([seed; 32])
    }

    fn log() -> LogKey {
        LogKey::new("example.org/log".parse().unwrap(), secret(9).public())
    }

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            origin: log().name().clone(),
            size: 3,
            root: Digest::of(b"root"),
        }
    }

    fn refused(note: &str) -> Option<CertifierCode> {
        Checkpoint::open(note.as_bytes(), &log())
            .err()
            .map(|e| e.code)
    }

    /// Any text, signed by the log.
    fn note(text: &str) -> String {
        let signature = [&log().hint()[..], &secret(9).sign(text.as_bytes())].concat();
        format!(
            "{text}\n\u{2014} {} {}\n",
            log().name(),
            STANDARD.encode(signature)
        )
    }

    #[test]
    fn a_checkpoint_survives_its_note() {
        let note = checkpoint().sign(&secret(9));
        assert_eq!(Checkpoint::open(note.as_bytes(), &log()), Ok(checkpoint()));
        let name: LogKey = log().to_string().parse().unwrap();
        assert_eq!(name, log());
    }

    #[test]
    fn other_signatures_are_of_no_account_and_a_bad_one_in_its_name_spoils_all() {
        let good = checkpoint().sign(&secret(9));
        let other = checkpoint().sign(&secret(8));
        let line = |note: &str| note.lines().last().unwrap().to_owned() + "\n";
        let both = good.clone() + &line(&other);
        assert_eq!(refused(&both), None);
        assert_eq!(refused(&other), Some(CertifierCode::CheckpointInvalid));
        let mut bytes = [&log().hint()[..], &[7; 64]].concat();
        let bad = format!("\u{2014} {} {}\n", log().name(), STANDARD.encode(&bytes));
        assert_eq!(
            refused(&(good.clone() + &bad)),
            Some(CertifierCode::CheckpointInvalid)
        );
        bytes.truncate(3);
        let short = format!("\u{2014} {} {}\n", log().name(), STANDARD.encode(&bytes));
        assert_eq!(
            refused(&(good + &short)),
            Some(CertifierCode::CheckpointInvalid)
        );
    }

    #[test]
    fn what_is_spelt_otherwise_is_no_checkpoint_even_if_it_is_signed() {
        let root = STANDARD.encode([1; 32]);
        let twin = "example.org/log\n3\n".to_owned() + &root[..43] + "\n";
        for text in [
            format!("example.org/log\n03\n{root}\n"),
            format!("example.org/log\n+3\n{root}\n"),
            format!("example.org/log\n3\n{root}\nmore\n"),
            format!("example.org/log\n3\n\n{root}\n"),
            format!("other.org/log\n3\n{root}\n"),
            format!("example.org/log\n18446744073709551616\n{root}\n"),
            "example.org/log\n3\nAAAA\n".to_owned(),
            twin,
        ] {
            assert_eq!(
                refused(&note(&text)),
                Some(CertifierCode::CheckpointInvalid),
                "{text}"
            );
        }
        let good = checkpoint().sign(&secret(9));
        for bad in [
            good.replace('\n', "\r\n"),
            good.replacen("\n3\n", "\n4\n", 1),
            good.trim_end().to_owned(),
            good.replace('\u{2014}', "-"),
            format!("{good}{}", "x".repeat(20_000)),
            good.replace("\n\n", "\n"),
            String::new(),
        ] {
            assert_eq!(
                refused(&bad),
                Some(CertifierCode::CheckpointInvalid),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_key_of_another_program_s_log_is_read_with_its_hash() {
        // From the documentation of Go's package for signed notes.
        let key = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let log: LogKey = key.parse().unwrap();
        assert_eq!(log.name().to_string(), "PeterNeumann");
        assert_eq!(log.to_string(), key);
    }

    #[test]
    fn a_log_is_named_plainly() {
        let longest = "x".repeat(120);
        for good in ["a", "example.org/log", "A_b-9./", &longest] {
            assert_eq!(good.parse::<LogName>().unwrap().to_string(), good);
        }
        let longer = "x".repeat(121);
        for bad in ["", "a b", "a+b", "a\nb", "\u{e9}", &longer] {
            assert!(bad.parse::<LogName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_note_has_so_many_signatures_and_bytes_and_no_more() {
        let good = checkpoint().sign(&secret(9));
        let other = format!("\u{2014} other {}\n", STANDARD.encode([7; 68]));
        let with = |more: usize| good.clone() + &other.repeat(more);
        assert_eq!(refused(&with(MAX_SIGNATURES - 1)), None);
        let invalid = Some(CertifierCode::CheckpointInvalid);
        assert_eq!(refused(&with(MAX_SIGNATURES)), invalid);
        let line = |bytes: usize| {
            let name = "x".repeat(bytes - "\u{2014}  AAAAAAA=\n".len());
            format!("{good}\u{2014} {name} AAAAAAA=\n")
        };
        assert_eq!(refused(&line(16_384 - good.len())), None);
        assert_eq!(refused(&line(16_385 - good.len())), invalid);
    }

    #[test]
    fn a_key_of_a_log_has_one_spelling_and_is_strong() {
        let good = log().to_string();
        let (front, _) = good.rsplit_once('+').unwrap();
        let weak = STANDARD.encode([&[1][..], &[0; 32]].concat());
        for bad in [
            good.replace("example", "examplf"),
            good.replace('+', " "),
            format!("{front}+{weak}"),
            format!("{good}="),
            String::new(),
        ] {
            assert!(bad.parse::<LogKey>().is_err(), "{bad}");
        }
    }
}
