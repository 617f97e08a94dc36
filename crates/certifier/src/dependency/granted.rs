//! A package that may come into the lock file, by its content.

use flightproof_core::{Digest, escape};
use flightproof_evidence::Package;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest text of a grant in bytes: name, version and digest.
const MAX: usize = 400;

/// A package by name, version and checksum, as `NAME@VERSION#SHA256`. Somebody agreed to exactly these
/// bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GrantedPackage(Package);

impl GrantedPackage {
    /// Whether it is this one.
    pub(super) fn is(&self, package: &Package) -> bool {
        self.0 == *package
    }
}

impl From<Package> for GrantedPackage {
    fn from(package: Package) -> Self {
        Self(package)
    }
}

impl FromStr for GrantedPackage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let shown = escape(text, MAX);
            format!("{shown}: a package is NAME@VERSION#SHA256, as its lock file has them")
        };
        let (name, rest) = text.split_once('@').ok_or_else(wrong)?;
        let (version, checksum) = rest.split_once('#').ok_or_else(wrong)?;
        let sha256: Digest = checksum.parse().map_err(|_| wrong())?;
        if name.is_empty() || version.is_empty() || text.len() > MAX {
            return Err(wrong());
        }
        Ok(Self(Package {
            name: name.to_owned(),
            version: version.to_owned(),
            sha256,
        }))
    }
}

impl TryFrom<String> for GrantedPackage {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<GrantedPackage> for String {
    fn from(granted: GrantedPackage) -> Self {
        granted.to_string()
    }
}

impl fmt::Display for GrantedPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Package {
            name,
            version,
            sha256,
        } = &self.0;
        write!(f, "{name}@{version}#{sha256}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_spelled_in_one_way() {
        let sum = Digest::of(b"dep");
        let text = format!("dep-x@1.0.0+a#{sum}");
        let granted: GrantedPackage = text.parse().unwrap();
        assert_eq!(granted.to_string(), text);
        assert!(granted.is(&Package {
            name: "dep-x".to_owned(),
            version: "1.0.0+a".to_owned(),
            sha256: sum,
        }));
        for wrong in [
            "",
            "dep",
            "dep@1.0.0",
            &format!("dep#{sum}"),
            &format!("@1.0.0#{sum}"),
            &format!("dep@#{sum}"),
            &format!("dep@1.0.0#{}", sum.to_string().to_uppercase()),
            &format!("{}@1.0.0#{sum}", "d".repeat(MAX)),
        ] {
            assert!(wrong.parse::<GrantedPackage>().is_err(), "{wrong}");
        }
    }
}
