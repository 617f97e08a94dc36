//! Forged archives of both formats.

mod encoder;
mod paar;
mod paws;
pub mod plan;
mod rows;
mod vectors;

pub use encoder::{File, paar, paws};
pub use paar::paar_attacks;
pub use paws::{name_attacks, paws_attacks, paws_manifest_attacks};
pub use rows::{Door, Row, rows};
pub use vectors::{Vector, paar_vectors, paws_vectors, vector_file};

use crate::Attack;

/// A change to the text of an honest manifest: what stands there, once or first, and what is put
/// in its place.
type Edit = (&'static str, &'static str, &'static str, &'static str);

/// Attacks that edit the honest manifest `text`; `wrap` makes an archive of a manifest.
fn edits(text: &str, table: &[Edit], wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Attack> {
    let attack = |(name, expect, find, put): &Edit| {
        assert!(text.contains(find), "{name}: {find} is not in {text}");
        Attack {
            name: (*name).to_owned(),
            bytes: wrap(text.replacen(find, put, 1).as_bytes()),
            expect,
            twin: wrap(text.as_bytes()),
        }
    };
    table.iter().map(attack).collect()
}

/// Texts that are no path of either format.
const BAD_PATHS: &[&str] = &[
    "",
    "/etc/passwd",
    "//a",
    "a/",
    "a//b",
    ".",
    "..",
    "./a",
    "a/.",
    "../a",
    "a/../b",
    "a/..",
    "a\\b",
    "..\\..\\a",
    "C:\\a",
    "nul\0",
    "a\nb",
    "a\u{1b}[31m",
    "a\u{7f}",
    "a\u{feff}",
    "e\u{301}",
    "\u{212b}",
    "\u{1100}\u{1161}",
    ".prime-agent-staging",
    "a/.prime-agent-staging-1/b",
];
