//! Bytes beside a transcript. In JSON, `{"$bytes":…}` becomes `{"$blob":"<sha256>","len":n}`.

use flightproof_core::{Bytes, Digest};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Largest blob in bytes: a captured tree.
pub(super) const MAX_BLOB: u64 = 64 << 20;
/// Deepest JSON that is looked through. Our own documents have a depth of about ten.
const MAX_DEPTH: usize = 64;

/// Moves all bytes of a document out into `blobs`.
pub(super) fn detach(value: Value, blobs: &mut BTreeMap<Digest, Vec<u8>>) -> Result<Value, String> {
    if let Some(bytes) = as_bytes(&value) {
        let bytes = bytes?;
        let digest = Digest::of(&bytes.0);
        let reference = json!({"$blob": digest, "len": bytes.0.len()});
        blobs.insert(digest, bytes.0);
        return Ok(reference);
    }
    each(value, &mut |v| detach(v, blobs))
}

/// Puts the bytes back. `read` gives the blob of a digest.
pub(super) fn attach<R>(value: Value, depth: usize, read: &mut R) -> Result<Value, String>
where
    R: FnMut(&Digest, u64) -> Result<Vec<u8>, String>,
{
    if depth > MAX_DEPTH {
        return Err(format!("nested deeper than {MAX_DEPTH}"));
    }
    if let Some((digest, len)) = as_reference(&value)? {
        let bytes = read(&digest, len)?;
        return serde_json::to_value(Bytes(bytes)).map_err(|e| e.to_string());
    }
    each(value, &mut |v| attach(v, depth + 1, read))
}

/// Notes every blob that a document refers to.
pub(super) fn references(value: &Value, found: &mut BTreeMap<Digest, u64>) -> Result<(), String> {
    // Documents were read with a bounded depth.
    if let Some((digest, len)) = as_reference(value)? {
        return match found.insert(digest, len) {
            Some(other) if other != len => Err(format!("blob {digest} has two lengths")),
            _ => Ok(()),
        };
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|v| references(v, found)),
        Value::Object(map) => map.values().try_for_each(|v| references(v, found)),
        _ => Ok(()),
    }
}

fn each(
    value: Value,
    change: &mut dyn FnMut(Value) -> Result<Value, String>,
) -> Result<Value, String> {
    Ok(match value {
        Value::Array(items) => {
            Value::Array(items.into_iter().map(change).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(k, v)| change(v).map(|v| (k, v)))
                .collect::<Result<_, String>>()?,
        ),
        other => other,
    })
}

fn as_bytes(value: &Value) -> Option<Result<Bytes, String>> {
    let map = value.as_object()?;
    map.contains_key(Bytes::KEY)
        .then(|| serde_json::from_value(value.clone()).map_err(|e| e.to_string()))
}

fn as_reference(value: &Value) -> Result<Option<(Digest, u64)>, String> {
    let Some(map) = value.as_object().filter(|m| m.contains_key("$blob")) else {
        return Ok(None);
    };
    let digest = map
        .get("$blob")
        .and_then(Value::as_str)
        .and_then(|t| t.parse().ok());
    let len = map.get("len").and_then(Value::as_u64);
    match (digest, len) {
        (Some(digest), Some(len)) if map.len() == 2 && len <= MAX_BLOB => Ok(Some((digest, len))),
        _ => Err("a blob reference that is none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_out_and_come_back_wherever_they_stand() {
        let document = json!({"a": [Bytes(vec![1, 2, 3]), {"b": Bytes(vec![])}], "c": "text"});
        let mut blobs = BTreeMap::new();
        let lean = detach(document.clone(), &mut blobs).unwrap();
        assert!(!lean.to_string().contains("$bytes"));
        assert_eq!(blobs.len(), 2);
        let back = attach(lean, 0, &mut |d, _| Ok(blobs[d].clone())).unwrap();
        assert_eq!(back, document);
    }

    #[test]
    fn references_that_lie_are_refused() {
        let digest = Digest::of(b"x");
        for bad in [
            json!({"$blob": "zz", "len": 1}),
            json!({"$blob": digest}),
            json!({"$blob": digest, "len": 1, "more": 1}),
            json!({"$blob": digest, "len": MAX_BLOB + 1}),
            json!({"$blob": "../../etc/passwd", "len": 1}),
        ] {
            assert!(attach(bad, 0, &mut |_, _| Ok(vec![])).is_err());
        }
    }
}
