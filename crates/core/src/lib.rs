//! The words every other crate speaks: digests, canonical JSON, relative paths, refusal codes,
//! exit codes, and the safe display of text a stranger wrote. No IO happens here.
#![forbid(unsafe_code)]

mod bytes;
mod canonical;
mod digest;
mod display;
mod exact;
mod exit;
mod moment;
mod money;
mod path;
mod refusal;
mod strict;
mod verdict;

pub use bytes::Bytes;
pub use canonical::{CanonicalError, canonical_json};
pub use digest::{CommitId, Digest, DigestError, Hasher, ObjectId};
pub use display::{Escaped, counted, escape, plain};
pub use exact::{exact, nothing};
pub use exit::Exit;
pub use moment::{Moment, day_text, parse_day};
pub use money::{MicroEur, MicroUsd, MoneyError, UsdPerEur};
pub use path::{PathFault, RelPath, is_default_ignorable};
pub use refusal::{Code, Explanation, Fault, Refusal, Refused};
pub use strict::{StrictError, parse_strict, parse_strict_value, read_strict};
pub use verdict::{Decision, VERDICT_SCHEMA, Verdict};
