//! One line of a transcript, and the chain that binds it to the line before.

use flightproof_core::{Digest, Hasher, canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The format's name, on the first line.
pub const TRANSCRIPT_FORMAT: &str = "flightproof/flight";

/// `major.minor` of what this program writes. History: 1.0, the first.
pub const TRANSCRIPT_VERSION: (u32, u32) = (1, 0);

/// Longest line in bytes. Bytes live in blobs, so a line holds names, numbers and compiler messages.
pub(super) const MAX_LINE: usize = 4 << 20;
/// Most lines of a transcript: a flight makes two per exchange, and at most some thousand runs.
pub(super) const MAX_LINES: usize = 200_000;

/// What every line carries beside its own content.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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

impl Content {
    /// The content of a line whose `i` and `h` were taken out.
    ///
    /// A field that its kind does not have is refused, unless the recording is of a newer minor
    /// version: then it is passed over.
    pub(super) fn read(mut fields: Map<String, Value>, newer_minor: bool) -> Result<Self, String> {
        let kind = fields.remove("k");
        let known: &[&str] = match kind.as_ref().and_then(Value::as_str) {
            Some("header") => &["fixture", "flight", "format", "plan", "version"],
            Some("invoke") => &["op", "v"],
            Some("ok" | "fail") => &["of", "v"],
            Some("end") => &["exchanges", "predicate", "root", "verdict"],
            _ => return Err("of no known kind".to_owned()),
        };
        if newer_minor {
            fields.retain(|name, _| known.contains(&name.as_str()));
        } else if fields.len() != known.len() || !known.iter().all(|f| fields.contains_key(*f)) {
            return Err("its fields are not those of its kind".to_owned());
        }
        let whole = |e: serde_json::Error| e.to_string();
        match kind.as_ref().and_then(Value::as_str) {
            Some("header") => serde_json::from_value(fields.into())
                .map(Self::Header)
                .map_err(whole),
            Some("end") => serde_json::from_value(fields.into())
                .map(Self::End)
                .map_err(whole),
            Some("invoke") => Event::asked(fields).map(Self::Invoke),
            Some("ok") => Event::answered(fields).map(Self::Ok),
            _ => Event::answered(fields).map(Self::Fail),
        }
    }
}

impl Event {
    fn asked(mut fields: Map<String, Value>) -> Result<Self, String> {
        match (fields.remove("op"), fields.remove("v")) {
            (Some(Value::String(op)), Some(v)) => Ok(Self {
                op: Some(op),
                of: None,
                v,
            }),
            _ => Err("an invoke without an operation".to_owned()),
        }
    }

    fn answered(mut fields: Map<String, Value>) -> Result<Self, String> {
        match (fields.get("of").and_then(Value::as_u64), fields.remove("v")) {
            (Some(of), Some(v)) => Ok(Self {
                op: None,
                of: Some(of),
                v,
            }),
            _ => Err("an answer to nothing".to_owned()),
        }
    }
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The operation, for an invoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The line of the invoke this answers.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// The hash of a line that follows one with hash `before`; `rest` is the canonical form of the line
/// without its hash.
pub(super) fn chain(before: &Digest, rest: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(before.as_bytes());
    hasher.update(rest);
    hasher.finish()
}
