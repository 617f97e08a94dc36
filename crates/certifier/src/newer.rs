//! Documents of a later version than the one that is read.

use crate::{CertifierCode, CertifierError};
use flightproof_core::escape;
use serde::Deserialize;

/// Largest document that is looked at.
const MAX_BYTES: usize = 8 << 20;

#[derive(Deserialize)]
struct Head {
    schema: String,
}

/// The schema of a document in JSON or TOML that was refused, if it is a later version of the known one: its
/// name, and a greater number.
pub fn schema(document: &[u8], known: &str) -> Option<String> {
    let text = std::str::from_utf8(document).ok()?;
    if text.len() > MAX_BYTES {
        return None;
    }
    let head: Head = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).ok()?,
        false => toml::from_str(text).ok()?,
    };
    let (name, number) = known.rsplit_once('/')?;
    let later = head.schema.strip_prefix(name)?.strip_prefix('/')?;
    let plain = !later.starts_with('0') && later.bytes().all(|b| b.is_ascii_digit());
    let newer = later.parse::<u32>().ok()? > number.parse().ok()?;
    (plain && newer).then(|| escape(&head.schema, 60))
}

/// What a file is refused for: as too new, where that is why it could not be read.
pub(crate) fn too_new(file: &[u8], known: &str, refused: CertifierError) -> CertifierError {
    match schema(file, known) {
        Some(found) => CertifierCode::FormatTooNew.refuse(format_args!("{found}, here {known}")),
        None => refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_is_known_by_its_number_whatever_else_it_says() {
        let known = "flightproof/plan/2";
        for newer in [
            "{\"schema\": \"flightproof/plan/3\", \"more\": [null, 1.5]}",
            "schema = \"flightproof/plan/10\"\n[more]\nof = 1.5\n",
        ] {
            assert!(schema(newer.as_bytes(), known).is_some(), "{newer}");
        }
        for other in [
            "{\"schema\": \"flightproof/plan/2\"}",
            "{\"schema\": \"flightproof/plan/1\"}",
            "{\"schema\": \"flightproof/plan/03\"}",
            "{\"schema\": \"flightproof/plan/+3\"}",
            "{\"schema\": \"flightproof/plan/3a\"}",
            "{\"schema\": \"flightproof/plans/3\"}",
            "{\"schema\": \"flightproof/plan/3\", \"schema\": \"flightproof/plan/3\"}",
            "{\"schema\": 3}",
            "{\"schema\": \"flightproof/plan/3\"",
            "schema = \"flightproof/plan/3\"\nschema = \"flightproof/plan/3\"\n",
            "",
        ] {
            assert_eq!(schema(other.as_bytes(), known), None, "{other}");
        }
    }
}
