//! A document read into its type in one way only: an object as an object.
//!
//! What serde derives for a struct, and for an enum with a tag in it, also takes a list of the fields
//! in the order in which the source has them. No other reader knows that order, and a field that is
//! left out or unknown would not be noticed by its name.

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};
use serde_json::{Map, Value};
use std::fmt;

/// Reads a field or variant of an enum without a tag, or with one in it: serde buffers what they hold,
/// and would take a list for an object there.
///
/// # Errors
/// What the type does not know.
pub fn exact<'de, D: Deserializer<'de>, T: DeserializeOwned>(reader: D) -> Result<T, D::Error> {
    exactly(Value::deserialize(reader)?).map_err(D::Error::custom)
}

/// Reads what a variant without fields of an enum with a tag in it holds beside the tag: nothing. serde
/// would pass over whatever stands there.
///
/// # Errors
/// Something stands there.
pub fn nothing<'de, D: Deserializer<'de>>(reader: D) -> Result<(), D::Error> {
    let fields = Map::<String, Value>::deserialize(reader)?;
    match fields.keys().next() {
        None => Ok(()),
        Some(name) => Err(D::Error::unknown_field(name, &[])),
    }
}

/// Reads a value into its type.
pub(crate) fn exactly<T: DeserializeOwned>(value: Value) -> Result<T, Misfit> {
    T::deserialize(Exact(value))
}

/// Most bytes of a key in the place of a misfit.
const MAX_KEY: usize = 60;

/// What does not fit its type, and where in the document it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// A JSON pointer; empty for the document itself.
    place: String,
    what: String,
}

impl Misfit {
    /// The same, found below a step: a key, or a number in a list.
    fn below(mut self, step: &dyn fmt::Display) -> Self {
        let step = step.to_string().replace('~', "~0").replace('/', "~1");
        let step = crate::escape(&step, MAX_KEY);
        self.place.insert_str(0, &format!("/{step}"));
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.what),
            place => write!(f, "{place}: {}", self.what),
        }
    }
}

impl std::error::Error for Misfit {}

impl serde::de::Error for Misfit {
    fn custom<T: fmt::Display>(what: T) -> Self {
        let (place, what) = (String::new(), what.to_string());
        Self { place, what }
    }
}

struct Exact(Value);

impl<'de> Deserializer<'de> for Exact {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Array(_) if is_tagged(&visitor) => Err(listed(&visitor)),
            Value::Array(items) => {
                let mut items = Items(items.into_iter().enumerate());
                let value = visitor.visit_seq(&mut items)?;
                all_read(items.0.len(), value)
            }
            Value::Object(fields) => {
                let mut fields = Fields::of(fields);
                let value = visitor.visit_map(&mut fields)?;
                all_read(fields.rest.len(), value)
            }
            plain => plain.deserialize_any(visitor).map_err(Misfit::custom),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Array(_) => Err(listed(&visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Object(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Fields::of(fields)))
            }
            other => other
                .deserialize_enum(name, variants, visitor)
                .map_err(Misfit::custom),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

/// The items of a list, with their numbers from 0.
struct Items(std::iter::Enumerate<std::vec::IntoIter<Value>>);

impl<'de> SeqAccess<'de> for Items {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some((number, value)) = self.0.next() else {
            return Ok(None);
        };
        let read = seed.deserialize(Exact(value));
        read.map(Some).map_err(|misfit| misfit.below(&number))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The fields of an object, and the one whose key was read last.
struct Fields {
    rest: serde_json::map::IntoIter,
    under_way: Option<(String, Value)>,
}

impl Fields {
    fn of(fields: Map<String, Value>) -> Self {
        Self {
            rest: fields.into_iter(),
            under_way: None,
        }
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misfit> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        let read = seed.deserialize(Exact(Value::String(key.clone())))?;
        self.under_way = Some((key, value));
        Ok(Some(read))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let none = || Misfit::custom("a value is asked for before its key");
        let (key, value) = self.under_way.take().ok_or_else(none)?;
        let read = seed.deserialize(Exact(value));
        read.map_err(|misfit| misfit.below(&key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A value, if nothing of its document was left unread.
fn all_read<T>(left: usize, value: T) -> Result<T, Misfit> {
    match left {
        0 => Ok(value),
        left => Err(Misfit::custom(format_args!("{left} more than are known"))),
    }
}

fn listed(expected: &dyn Expected) -> Misfit {
    Misfit::invalid_type(Unexpected::Seq, expected)
}

/// Whether what is read is an enum with its tag in it. It asks for anything at all, and nothing but
/// the name that serde gives to what it expects tells it from what may be a list.
fn is_tagged(expected: &dyn Expected) -> bool {
    expected.to_string().starts_with("internally tagged enum")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Point {
        x: u8,
        y: Option<u8>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
    enum Tagged {
        At {
            x: u8,
        },
        Many {
            places: Vec<u8>,
        },
        #[serde(deserialize_with = "exact")]
        Point(Point),
        Points {
            #[serde(deserialize_with = "exact")]
            points: Vec<Point>,
        },
        #[serde(deserialize_with = "nothing")]
        Nowhere,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Named {
        Nowhere,
        At { x: u8 },
        Point(Point),
        Pair(u8, u8),
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        #[serde(deserialize_with = "exact")]
        Point(Point),
    }

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
    struct Name(String);

    fn reads<T: DeserializeOwned>(value: Value) -> bool {
        exactly::<T>(value).is_ok()
    }

    #[test]
    fn a_list_is_no_object_wherever_it_stands() {
        let (object, list) = (json!({"x": 1, "y": 2}), json!([1, 2]));
        assert!(reads::<Point>(object.clone()) && !reads::<Point>(list.clone()));
        assert!(reads::<Vec<Point>>(json!([object])) && !reads::<Vec<Point>>(json!([list])));
        assert!(reads::<Option<Point>>(object.clone()) && !reads::<Option<Point>>(list.clone()));
        let within = |value: &Value| json!({"k": value});
        assert!(reads::<BTreeMap<Name, Point>>(within(&object)));
        assert!(!reads::<BTreeMap<Name, Point>>(within(&list)));
        assert!(!reads::<BTreeMap<Name, Point>>(json!([["k", object]])));
        assert!(
            reads::<Named>(json!({"point": object})) && !reads::<Named>(json!({"point": list}))
        );
        assert!(reads::<Named>(json!({"at": {"x": 1}})) && !reads::<Named>(json!({"at": [1]})));
        assert!(reads::<Either>(object) && !reads::<Either>(list));
    }

    #[test]
    fn an_enum_with_a_tag_in_it_is_no_list_either() {
        assert!(reads::<Tagged>(json!({"kind": "at", "x": 1})));
        assert!(!reads::<Tagged>(json!(["at", 1])));
        assert!(!reads::<Vec<Tagged>>(json!([["at", 1]])));
        assert!(reads::<Tagged>(json!({"kind": "many", "places": [1, 2]})));
        assert!(reads::<Tagged>(json!({"kind": "point", "x": 1})));
        assert!(!reads::<Tagged>(json!(["point", 1, 2])));
        let points = |point: Value| json!({"kind": "points", "points": [point]});
        assert!(
            reads::<Tagged>(points(json!({"x": 1}))) && !reads::<Tagged>(points(json!([1, 2])))
        );
    }

    #[test]
    fn a_variant_without_fields_has_nothing_beside_its_tag() {
        let nowhere = exactly::<Tagged>(json!({"kind": "nowhere"}));
        assert_eq!(nowhere.unwrap(), Tagged::Nowhere);
        for more in [json!({"kind": "nowhere", "x": 1}), json!(["nowhere"])] {
            assert!(!reads::<Tagged>(more.clone()), "{more}");
            assert!(!reads::<Vec<Tagged>>(json!([more])));
        }
        // Also where serde alone reads it.
        let read = |text: &str| serde_json::from_str::<Tagged>(text).is_ok();
        assert!(read(r#"{"kind":"nowhere"}"#) && !read(r#"{"kind":"nowhere","x":1}"#));
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let told = |value: Value| {
            let misfit = exactly::<BTreeMap<String, Vec<Point>>>(value).unwrap_err();
            misfit.to_string()
        };
        let place = |value: Value| told(value).split(": ").next().unwrap().to_owned();
        assert_eq!(
            told(json!({"a": [], "b": [{"x": 1}, {}]})),
            "/b/1: missing field `x`"
        );
        assert_eq!(place(json!({"b": [{"x": 256}]})), "/b/0/x");
        assert_eq!(place(json!({"b": [{"x": 1, "z": 1}]})), "/b/0");
        assert_eq!(place(json!({"b": [[1, 2]]})), "/b/0");
        assert_eq!(place(json!({"/~\u{1b}": 1})), "/~1~0\\u{1b}");
        // The document itself has no place.
        assert!(told(json!(1)).starts_with("invalid type"));
    }

    #[test]
    fn what_is_meant_is_read_as_ever() {
        assert_eq!(exactly::<Named>(json!("nowhere")).unwrap(), Named::Nowhere);
        assert_eq!(
            exactly::<Named>(json!({"pair": [1, 2]})).unwrap(),
            Named::Pair(1, 2)
        );
        assert_eq!(
            exactly::<Either>(json!("x")).unwrap(),
            Either::Text("x".to_owned())
        );
        assert_eq!(
            exactly::<Point>(json!({"x": 1})).unwrap(),
            Point { x: 1, y: None }
        );
        assert_eq!(
            exactly::<(u8, Name)>(json!([1, "n"])).unwrap(),
            (1, Name("n".to_owned()))
        );
        let value = json!({"a": [1, {"b": null}], "c": "d", "e": true, "f": -1});
        assert_eq!(exactly::<Value>(value.clone()).unwrap(), value);
        for bad in [
            json!({"x": 1, "z": 1}),
            json!({"y": 1}),
            json!(null),
            json!({"x": 256}),
        ] {
            assert!(!reads::<Point>(bad.clone()), "{bad}");
        }
        assert!(!reads::<(u8, u8)>(json!([1, 2, 3])));
        assert!(!reads::<Named>(json!({"nowhere": null, "at": {"x": 1}})));
    }
}
