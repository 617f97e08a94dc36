use super::MAX_SAFE;
use super::grammar::{Cursor, unescape};
use std::borrow::Cow;

pub(crate) use super::grammar::Fault;

/// The fields of an object as pieces of the text: nothing is kept but where they stand, so that
/// 64 MiB of `[[],[],…]` cost nothing.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    keys: &'static [&'static str],
    fields: [Option<&'a str>; MAX_KEYS],
    unknown: bool,
}

/// The items of a list, each a piece of the text.
#[derive(Clone)]
pub(crate) struct List<'a> {
    cursor: Cursor<'a>,
    first: bool,
}

/// How the fields of an object compare to those it should have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FieldSet {
    Exact,
    Missing(&'static str),
    Extra,
}

/// Most keys an object is asked for: those of a manifest.
const MAX_KEYS: usize = 8;

/// Reads one document and looks for these keys in it, 8 at most. `None` if it is no object.
///
/// # Errors
/// Not JSON, nesting beyond 128, or something after the document.
pub(crate) fn read<'a>(
    text: &'a str,
    keys: &'static [&'static str],
) -> Result<Option<Object<'a>>, Fault> {
    let document = Cursor::new(text).document()?;
    Ok(Object::of(document, keys))
}

impl<'a> Object<'a> {
    /// A value that was found to be JSON, if it is an object.
    pub(crate) fn of(value: &'a str, keys: &'static [&'static str]) -> Option<Self> {
        let mut cursor = Cursor::new(value);
        if !cursor.take(b'{') {
            return None;
        }
        let mut object = Self {
            keys,
            fields: [None; MAX_KEYS],
            unknown: false,
        };
        if cursor.take(b'}') {
            return Some(object);
        }
        while let (Ok(key), Ok(value)) = (cursor.key(), cursor.value()) {
            object.put(&unescape(key), value);
            if !cursor.take(b',') {
                break;
            }
        }
        Some(object)
    }

    /// A key that stands twice has its last value.
    fn put(&mut self, key: &str, value: &'a str) {
        let known = self.keys.iter().zip(&mut self.fields);
        match known.into_iter().find(|(name, _)| **name == key) {
            Some((_, field)) => *field = Some(value),
            None => self.unknown = true,
        }
    }

    fn field(&self, key: &str) -> Option<&'a str> {
        let index = self.keys.iter().position(|name| *name == key)?;
        self.fields.get(index).copied().flatten()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.field(key)
            .filter(|value| value.starts_with('"'))
            .map(unescape)
    }

    /// A number that is whole and at most 2^53 - 1, however it is spelt.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        let value = self.field(key)?;
        if value.bytes().all(|byte| byte.is_ascii_digit()) {
            return value.parse().ok().filter(|number| *number <= MAX_SAFE);
        }
        value.parse().ok().and_then(whole)
    }

    pub(crate) fn object(&self, key: &str, keys: &'static [&'static str]) -> Option<Object<'a>> {
        Object::of(self.field(key)?, keys)
    }

    pub(crate) fn list(&self, key: &str) -> Option<List<'a>> {
        let mut cursor = Cursor::new(self.field(key)?);
        cursor.take(b'[').then_some(List {
            cursor,
            first: true,
        })
    }

    /// A missing field is named before an extra one.
    pub(crate) fn field_set(&self, wanted: &[&'static str]) -> FieldSet {
        if let Some(missing) = wanted.iter().find(|key| !self.has(key)) {
            return FieldSet::Missing(missing);
        }
        let present = self.fields.iter().flatten().count();
        if self.unknown || present != wanted.len() {
            return FieldSet::Extra;
        }
        FieldSet::Exact
    }
}

impl<'a> Iterator for List<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let follows = if self.first {
            !self.cursor.take(b']')
        } else {
            self.cursor.take(b',')
        };
        self.first = false;
        follows.then(|| self.cursor.value().ok()).flatten()
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "2^53 - 1 is exact as a double, and what is cast is whole and between 0 and it"
)]
fn whole(value: f64) -> Option<u64> {
    (value.fract() == 0.0 && value >= 0.0 && value <= MAX_SAFE as f64).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &["a", "list"];

    fn object(text: &str) -> Object<'_> {
        read(text, KEYS).unwrap().unwrap()
    }

    #[test]
    fn only_an_object_is_one() {
        for other in ["[]", "1", "\"{}\"", "null"] {
            assert!(read(other, KEYS).unwrap().is_none(), "{other}");
        }
        for broken in ["", "{", "{}}", "{]", "{\"a\":[}"] {
            assert!(read(broken, KEYS).is_err(), "{broken}");
        }
    }

    #[test]
    fn fields_are_found_whatever_surrounds_them() {
        let found = object(" { \"x\" : [[ ]] , \"a\" : \"b\" ,\"list\":[ 1 , [2] ] } ");
        assert_eq!(found.text("a").as_deref(), Some("b"));
        assert_eq!(
            found.list("list").unwrap().collect::<Vec<_>>(),
            ["1", "[2]"]
        );
        assert_eq!(found.field_set(KEYS), FieldSet::Extra);
        assert!(!found.has("x"));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts_however_it_is_spelt() {
        let found = object(r#"{"a":1,"\u0061":"é\n","list":1,"list":[]}"#);
        assert_eq!(found.text("a").as_deref(), Some("é\n"));
        assert_eq!(found.number("a"), None);
        assert_eq!(found.list("list").unwrap().count(), 0);
    }

    #[test]
    fn a_field_of_another_kind_is_not_found_as_one() {
        let found = object(r#"{"a":{"b":1},"list":"[1]"}"#);
        assert_eq!(found.text("a"), None);
        assert_eq!(found.number("a"), None);
        assert!(found.list("a").is_none());
        assert_eq!(found.object("a", &["b"]).unwrap().number("b"), Some(1));
        assert!(found.list("list").is_none());
        assert!(found.object("list", &[]).is_none());
        assert!(found.object("b", &[]).is_none());
    }

    #[test]
    fn numbers_are_whole_or_none() {
        for (text, value) in [
            ("0", Some(0)),
            ("1e1", Some(10)),
            ("10.0", Some(10)),
            ("-0", Some(0)),
            ("9007199254740991", Some(MAX_SAFE)),
            ("9007199254740991.0", Some(MAX_SAFE)),
            ("0.5", None),
            ("-1", None),
            ("9007199254740992", None),
            ("9007199254740992.0", None),
            ("18446744073709551616", None),
            ("1e16", None),
            ("1e999", None),
            ("true", None),
            ("null", None),
            ("\"1\"", None),
            ("[1]", None),
        ] {
            let text = format!("{{\"a\":{text}}}");
            assert_eq!(object(&text).number("a"), value, "{text}");
        }
    }

    #[test]
    fn field_sets_are_compared_exactly() {
        assert_eq!(object(r#"{"a":1}"#).field_set(&["a"]), FieldSet::Exact);
        assert_eq!(object("{}").field_set(&["a"]), FieldSet::Missing("a"));
        assert_eq!(object("{}").field_set(&[]), FieldSet::Exact);
        for more in [r#"{"a":1,"list":1}"#, r#"{"a":1,"x":1}"#] {
            assert_eq!(object(more).field_set(&["a"]), FieldSet::Extra, "{more}");
        }
    }

    #[test]
    fn as_many_items_are_counted_as_there_are() {
        for (list, count) in [("[]", 0), ("[ ]", 0), ("[1]", 1), ("[[],{},\",\"]", 3)] {
            let text = format!("{{\"list\":{list}}}");
            assert_eq!(object(&text).list("list").unwrap().count(), count, "{list}");
        }
    }
}
