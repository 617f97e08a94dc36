//! JSON as the manifests use it: a reader that is guided by a shape, and a canonical writer.
//!
//! The reader keeps only what the shape names, so that 64 MiB of `[[],[],…]` cost nothing: strings
//! (never more than the text itself), whole numbers, and as many list items as the format allows.
//! It is lenient where strictness would hide the more telling refusal (white space, escapes, key
//! order, `1e1`, a key that stands twice: the last one counts); whoever reads a manifest must
//! compare its bytes with the re-encoding, which refuses all of these.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What is looked for at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// A string or a whole number.
    Scalar,
    /// An object with keys worth keeping.
    Object(&'static [(&'static str, Shape)]),
    /// A list and the most items worth keeping.
    List(&'static Shape, usize),
}

/// What was found there.
#[derive(Debug)]
pub(crate) enum Found {
    Text(String),
    /// A number that is whole and at most 2^53 - 1, however it was spelt.
    Number(u64),
    Object(Object),
    List(List),
    /// Anything else: null, a boolean, another number, or a container where the shape has none.
    Other,
}

/// The kept fields of an object.
#[derive(Debug)]
pub(crate) struct Object {
    keys: &'static [(&'static str, Shape)],
    slots: Vec<Option<Found>>,
    unknown: bool,
}

/// The kept items of a list, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Found>,
    pub(crate) count: usize,
}

/// How the fields of an object compare to those it should have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FieldSet {
    Exact,
    Missing(&'static str),
    Extra,
}

impl Object {
    fn slot(&self, key: &str) -> Option<&Found> {
        let index = self.keys.iter().position(|(name, _)| *name == key)?;
        self.slots.get(index)?.as_ref()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.slot(key).is_some()
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.slot(key) {
            Some(Found::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match self.slot(key) {
            Some(Found::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn object(&self, key: &str) -> Option<&Object> {
        match self.slot(key) {
            Some(Found::Object(object)) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn list(&self, key: &str) -> Option<&List> {
        match self.slot(key) {
            Some(Found::List(list)) => Some(list),
            _ => None,
        }
    }

    /// A missing field is named before an extra one.
    pub(crate) fn field_set(&self, wanted: &[&'static str]) -> FieldSet {
        if let Some(missing) = wanted.iter().find(|key| !self.has(key)) {
            return FieldSet::Missing(missing);
        }
        let present = self.slots.iter().flatten().count();
        if self.unknown || present != wanted.len() {
            return FieldSet::Extra;
        }
        FieldSet::Exact
    }
}

/// Reads one document.
///
/// # Errors
/// Not JSON, nesting beyond 128, or something after the document.
pub(crate) fn read(text: &str, shape: &'static Shape) -> Result<Found, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = Guided(shape).deserialize(&mut reader)?;
    reader.end()?;
    Ok(found)
}

#[derive(Clone, Copy)]
struct Guided(&'static Shape);

impl<'de> DeserializeSeed<'de> for Guided {
    type Value = Found;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Guided {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Other)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::Other)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::Other)
    }
    fn visit_u64<E>(self, value: u64) -> Result<Found, E> {
        Ok(if value <= MAX_SAFE {
            Found::Number(value)
        } else {
            Found::Other
        })
    }
    fn visit_f64<E>(self, value: f64) -> Result<Found, E> {
        Ok(whole(value).map_or(Found::Other, Found::Number))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Found, E> {
        Ok(Found::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Found, A::Error> {
        let Shape::List(shape, most) = self.0 else {
            while access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Found::Other);
        };
        let mut list = List::default();
        while list.count < *most {
            let Some(item) = access.next_element_seed(Guided(shape))? else {
                return Ok(Found::List(list));
            };
            list.items.push(item);
            list.count += 1;
        }
        while access.next_element::<IgnoredAny>()?.is_some() {
            list.count += 1;
        }
        Ok(Found::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Found, A::Error> {
        let Shape::Object(keys) = self.0 else {
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Found::Other);
        };
        let mut object = Object {
            keys,
            slots: keys.iter().map(|_| None).collect(),
            unknown: false,
        };
        while let Some(key) = access.next_key::<String>()? {
            let known = keys.iter().zip(&mut object.slots);
            match known.into_iter().find(|((name, _), _)| *name == key) {
                Some(((_, shape), slot)) => {
                    *slot = None;
                    *slot = Some(access.next_value_seed(Guided(shape))?);
                }
                None => {
                    object.unknown = true;
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Found::Object(object))
    }
}

/// Largest integer every JSON reader keeps exactly: 2^53 - 1 (RFC 7493).
pub(crate) const MAX_SAFE: u64 = (1 << 53) - 1;

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "2^53 - 1 is exact as a double, and what is cast is whole and between 0 and it"
)]
fn whole(value: f64) -> Option<u64> {
    (value.fract() == 0.0 && value >= 0.0 && value <= MAX_SAFE as f64).then_some(value as u64)
}

/// Writes one object, fields in the order of the calls.
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut String,
    before: char,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn open(out: &'a mut String) -> Self {
        Self { out, before: '{' }
    }

    /// The key; the value is to be appended to what is returned.
    pub(crate) fn key(&mut self, key: &str) -> &mut String {
        self.out.push(self.before);
        self.before = ',';
        write_text(self.out, key);
        self.out.push(':');
        self.out
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        write_text(self.key(key), value);
        self
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) -> &mut Self {
        self.key(key).push_str(&value.to_string());
        self
    }

    pub(crate) fn close(&mut self) {
        self.out.push('}');
    }
}

/// Writes a list, one call per item.
pub(crate) fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write_item: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_item(out, item);
    }
    out.push(']');
}

/// Where a text leaves its canonical form.
pub(crate) fn first_difference(found: &str, canonical: &str) -> String {
    let same = found.bytes().zip(canonical.bytes());
    let at = same.take_while(|(a, b)| a == b).count();
    format!("differs from its canonical form at byte {at} of the manifest")
}

/// The fewest escapes, as RFC 8785 and `JSON.stringify` have them.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHAPE: Shape = Shape::Object(&[
        ("a", Shape::Scalar),
        ("list", Shape::List(&Shape::Scalar, 2)),
    ]);

    fn object(text: &str) -> Object {
        match read(text, &SHAPE).unwrap() {
            Found::Object(object) => object,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_the_shape_names_is_kept() {
        let found = object(r#"{"a":[[1],{"b":2}],"x":[[[]]],"list":[1,"b",3,4]}"#);
        assert!(matches!(found.slot("a"), Some(Found::Other)));
        let list = found.list("list").unwrap();
        assert_eq!((list.items.len(), list.count), (2, 4));
        assert_eq!(found.field_set(&["a", "list"]), FieldSet::Extra);
    }

    #[test]
    fn numbers_are_whole_or_other() {
        for (text, value) in [
            ("1e1", Some(10)),
            ("10.0", Some(10)),
            ("-0", Some(0)),
            ("0.5", None),
        ] {
            assert_eq!(
                object(&format!("{{\"a\":{text}}}")).number("a"),
                value,
                "{text}"
            );
        }
        for other in ["-1", "9007199254740992", "1e16", "true", "null", "\"1\""] {
            assert_eq!(
                object(&format!("{{\"a\":{other}}}")).number("a"),
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn field_sets_are_compared_exactly() {
        assert_eq!(object(r#"{"a":1}"#).field_set(&["a"]), FieldSet::Exact);
        assert_eq!(object("{}").field_set(&["a"]), FieldSet::Missing("a"));
        assert_eq!(
            object(r#"{"a":1,"list":1}"#).field_set(&["a"]),
            FieldSet::Extra
        );
    }

    proptest! {
        #[test]
        fn text_is_written_as_the_reference_writer_does(text in ".{0,40}|[\\x00-\\x7f]{0,40}") {
            let mut out = String::new();
            write_text(&mut out, &text);
            prop_assert_eq!(out, serde_json::to_string(&text).unwrap());
        }
    }
}
