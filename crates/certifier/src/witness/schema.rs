//! The shape of the file, as serde reads it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_core::{Bytes, RelPath, escape};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{Case, Differential, Suite, Target, WITNESS_SCHEMA, Waiver, invalid};
use crate::CertifierError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WitnessFile {
    schema: String,
    #[serde(default, deserialize_with = "present")]
    bin: Option<String>,
    #[serde(default, deserialize_with = "present")]
    driver: Option<RelPath>,
    #[serde(default, deserialize_with = "present")]
    package: Option<String>,
    pub(super) cases: Vec<Case>,
    #[serde(default)]
    pub(super) waivers: Vec<Waiver>,
    #[serde(default)]
    pub(super) public: bool,
    #[serde(default, deserialize_with = "present")]
    suite: Option<Suite>,
    #[serde(default, deserialize_with = "present")]
    pub(super) differential: Option<Differential>,
    /// Absent: Rust.
    #[serde(default, deserialize_with = "present")]
    language: Option<String>,
}

impl WitnessFile {
    /// The language of another toolchain than Rust's. Only programs are built in those.
    pub(super) fn language(&self) -> Result<Option<String>, CertifierError> {
        let Some(language) = &self.language else {
            return Ok(None);
        };
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let named = (1..=20).contains(&language.len()) && language.bytes().all(plain);
        match (&self.bin, named && language != "rust") {
            (Some(_), true) => Ok(Some(language.clone())),
            (None, true) => Err(invalid("\"driver\" goes with Rust only")),
            (_, false) => Err(invalid(format_args!(
                "\"language\" is \"{}\"; it names another one than Rust, or is left out",
                escape(language, 40)
            ))),
        }
    }

    pub(super) fn target(&self) -> Result<Target, CertifierError> {
        if self.schema != WITNESS_SCHEMA {
            return Err(invalid(format_args!(
                "schema \"{}\", expected \"{WITNESS_SCHEMA}\"",
                escape(&self.schema, 60)
            )));
        }
        if let Some(suite) = &self.suite {
            return match (&self.bin, &self.driver, &self.differential) {
                (None, None, None) if self.cases.is_empty() => Ok(Target::Suite {
                    package: self.package.clone(),
                    suite: suite.clone(),
                }),
                _ => Err(invalid("a \"suite\" stands alone, with \"cases\": []")),
            };
        }
        match (&self.bin, &self.driver, &self.package) {
            (Some(bin), None, None) => Ok(Target::Bin(bin.clone())),
            (Some(_), None, Some(_)) => Err(invalid("\"package\" goes with \"driver\" only")),
            (None, Some(driver), package) => Ok(Target::Driver {
                package: package.clone(),
                file: driver.clone(),
                text: None,
            }),
            _ => Err(invalid("exactly one of \"bin\" and \"driver\" is needed")),
        }
    }
}

/// A string, or an object with base64 in it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Blob {
    Text(String),
    #[serde(deserialize_with = "flightproof_core::exact")]
    Encoded(Encoded),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    base64: String,
}

impl Blob {
    fn bytes<E: serde::de::Error>(self) -> Result<Bytes, E> {
        match self {
            Self::Text(text) => Ok(text.into_bytes().into()),
            Self::Encoded(encoded) => STANDARD
                .decode(encoded.base64)
                .map(Bytes)
                .map_err(|_| E::custom("base64 that is not standard and padded")),
        }
    }
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(reader: D) -> Result<Bytes, D::Error> {
    Blob::deserialize(reader)
        .map_err(|_| D::Error::custom("expected a string or {\"base64\":\"…\"}"))?
        .bytes()
}

/// Called only for a field that is there: `null` is then no spelling of "absent".
pub(super) fn present_bytes<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<Option<Bytes>, D::Error> {
    bytes(reader).map(Some)
}

pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(reader).map(Some)
}

pub(super) fn files<'de, D: Deserializer<'de>>(
    reader: D,
) -> Result<BTreeMap<RelPath, Bytes>, D::Error> {
    let files = BTreeMap::<RelPath, Blob>::deserialize(reader)?;
    files
        .into_iter()
        .map(|(path, blob)| Ok((path, blob.bytes()?)))
        .collect()
}
