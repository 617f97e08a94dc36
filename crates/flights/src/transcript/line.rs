//! One line of a transcript, and the chain that binds it to the line before.

use flightproof_core::{Digest, Hasher, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The format's name, on the first line.
pub const TRANSCRIPT_FORMAT: &str = "flightproof/flight";

/// `major.minor` of what this program writes. History: 1.0, the first.
pub const TRANSCRIPT_VERSION: (u32, u32) = (1, 0);

/// Longest line in bytes. Bytes live in blobs, so a line holds names, numbers and compiler messages.
pub(super) const MAX_LINE: usize = 4 << 20;
/// Most lines of a transcript: a flight makes two per exchange, and at most some thousand runs.
pub(super) const MAX_LINES: usize = 200_000;

/// What every line carries beside its own content.
///
/// Unknown fields cannot hide: a reader compares the line with its own canonical form of it, unless
/// the recording is of a newer minor version, whose new fields it passes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Position, from 0.
    pub i: u64,
    /// The content.
    #[serde(flatten)]
    pub content: Content,
    /// `sha256(h of the line before || canonical form of this line without h)`.
    pub h: Digest,
}

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "k", rename_all = "kebab-case")]
pub(super) enum Content {
    /// First line.
    Header(Header),
    /// Any line between.
    Invoke(Event),
    /// The answer to an invoke.
    Ok(Event),
    /// The refusal of an invoke.
    Fail(Event),
    /// Last line.
    End(End),
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`TRANSCRIPT_FORMAT`].
    pub format: String,
    /// `major.minor`.
    pub version: String,
    /// Name of the plan.
    pub flight: String,
    /// Digest of the plan's canonical form and of its witness, keyed with nothing: both are in the
    /// same repository as the recording.
    pub plan: Digest,
    /// Recordings with blobs are marked as fixtures: their inputs are meant to be public.
    pub fixture: bool,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The operation, for an invoke.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub op: Option<String>,
    /// The line of the invoke this answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<u64>,
    /// Input, answer or refusal.
    pub v: Value,
}

/// The last line. Without it a recording is incomplete and proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Number of exchanges: every invoke has its answer.
    pub exchanges: u64,
    /// The verdict's code, or the decision.
    pub verdict: String,
    /// SHA-256 of the unsigned predicate, where the flight came that far.
    pub predicate: Option<Digest>,
    /// DSSE envelope over the root statement, signed by the recorder.
    pub root: String,
}

/// The in-toto statement that a recorder signs: its subject is the digest of the last event's hash
/// and of what the last line claims.
pub(super) fn root_statement(
    before: &Digest,
    flight: &str,
    exchanges: u64,
    verdict: &str,
    predicate: Option<&Digest>,
) -> Result<Vec<u8>, String> {
    let claims = json!({"before": before, "exchanges": exchanges, "verdict": verdict, "predicate": predicate});
    let digest = Digest::of(&canonical_json(&claims).map_err(|e| e.to_string())?);
    canonical_json(&json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": flight, "digest": {"sha256": digest}}],
        "predicateType": "https://flightproof.dev/recording/v1",
        "predicate": {},
    }))
    .map_err(|e| e.to_string())
}

/// The hash of a line that follows one with hash `before`; `rest` is the line without its hash.
pub(super) fn chain(before: &Digest, rest: &Value) -> Result<Digest, String> {
    let bytes = canonical_json(rest).map_err(|e| e.to_string())?;
    let mut hasher = Hasher::new();
    hasher.update(before.as_bytes());
    hasher.update(&bytes);
    Ok(hasher.finish())
}
