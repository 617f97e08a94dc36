use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that need not be UTF-8, inside a JSON document.
///
/// Shape: `{"$bytes":"<standard base64, padded>"}`. The transcript writer recognises exactly this
/// shape and may move the bytes into a blob beside the transcript.
#[derive(Clone, PartialEq, Eq, Default, Hash)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// The one key of the JSON shape.
    pub const KEY: &'static str = "$bytes";
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} bytes)", self.0.len())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(value: Vec<u8>) -> Self {
        Self(value)
    }
}

impl From<&[u8]> for Bytes {
    fn from(value: &[u8]) -> Self {
        Self(value.to_vec())
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    #[serde(rename = "$bytes")]
    base64: String,
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shape {
            base64: STANDARD.encode(&self.0),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shape = Shape::deserialize(deserializer)?;
        STANDARD
            .decode(shape.base64)
            .map(Self)
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_json_whatever_they_are() {
        let all: Bytes = (0..=255u8).collect::<Vec<_>>().into();
        let text = serde_json::to_string(&all).unwrap();
        assert!(text.starts_with(r#"{"$bytes":""#));
        assert_eq!(serde_json::from_str::<Bytes>(&text).unwrap(), all);
    }

    #[test]
    fn another_shape_is_refused() {
        assert!(serde_json::from_str::<Bytes>(r#""aGk=""#).is_err());
        assert!(serde_json::from_str::<Bytes>(r#"{"$bytes":"a"}"#).is_err());
        assert!(serde_json::from_str::<Bytes>(r#"{"$bytes":"aGk=","x":1}"#).is_err());
    }
}
