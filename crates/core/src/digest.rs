use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest. Text form: 64 lower-case hexadecimal digits, nothing else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A git commit id (SHA-1). Text form: 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId([u8; 20]);

/// The id of any git object (SHA-1). Text form: 40 lower-case hexadecimal digits.
pub type ObjectId = CommitId;

/// The text is not the hexadecimal form asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestError {
    expected: usize,
    found: usize,
}

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected {} lower-case hexadecimal digits, got {} bytes",
            self.expected, self.found
        )
    }
}

impl std::error::Error for DigestError {}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A digest nobody can guess the input of without `key`: `sha256(len(key) || key || bytes)`
    /// with the length as one byte, so that no key is the prefix of another.
    ///
    /// # Panics
    /// Never: a key of more than 255 bytes is first hashed.
    pub fn keyed(key: &[u8], bytes: &[u8]) -> Self {
        let short;
        let key = if key.len() > 255 {
            short = Self::of(key).0;
            &short[..]
        } else {
            key
        };
        let mut hasher = Hasher::new();
        hasher.update(&[u8::try_from(key.len()).unwrap_or(u8::MAX)]);
        hasher.update(key);
        hasher.update(bytes);
        hasher.finish()
    }
}

impl CommitId {
    /// An id computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// The 20 bytes.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

/// SHA-256 over bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A fresh state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

macro_rules! hex_text {
    ($type:ident, $len:literal) => {
        impl $type {
            /// The text form as ASCII bytes, without an allocation: a manifest has one per file.
            pub fn hex(&self) -> [u8; 2 * $len] {
                let mut text = [0; 2 * $len];
                for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
                    pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
                }
                text
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl FromStr for $type {
            type Err = DigestError;
            fn from_str(text: &str) -> Result<Self, DigestError> {
                let bad = DigestError {
                    expected: 2 * $len,
                    found: text.len(),
                };
                let mut out = [0u8; $len];
                if text.len() != 2 * $len {
                    return Err(bad);
                }
                for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
                    *byte = match (nibble(pair[0]), nibble(pair[1])) {
                        (Some(high), Some(low)) => high << 4 | low,
                        _ => return Err(bad),
                    };
                }
                Ok(Self(out))
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                writer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} lower-case hexadecimal digits", 2 * $len)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                reader.deserialize_str(Text)
            }
        }
    };
}

hex_text!(Digest, 32);
hex_text!(CommitId, 20);

fn digit(nibble: u8) -> u8 {
    match nibble {
        0..=9 => b'0' + nibble,
        _ => b'a' + (nibble - 10),
    }
}

/// Lower case only: a second spelling of a digest would be a second name for one thing.
fn nibble(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_abc_is_the_standard_one() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), text);
        assert_eq!(text.parse::<Digest>().unwrap(), Digest::of(b"abc"));
    }

    #[test]
    fn only_one_spelling_of_a_digest_is_accepted() {
        let text = Digest::of(b"abc").to_string();
        for bad in [
            text.to_uppercase(),
            text[1..].to_owned(),
            format!("{text}0"),
            format!(" {}", &text[1..]),
            "é".repeat(32),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn keyed_digests_separate_key_and_content() {
        assert_ne!(Digest::keyed(b"a", b"bc"), Digest::keyed(b"ab", b"c"));
        assert_ne!(
            Digest::keyed(&[7; 300], b"x"),
            Digest::keyed(&[7; 301], b"x")
        );
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        let mut h = Hasher::new();
        h.update(b"a");
        h.update(b"bc");
        assert_eq!(h.finish(), Digest::of(b"abc"));
    }
}
