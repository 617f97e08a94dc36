use serde::Serialize;
use serde_json::ser::Formatter;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::{fmt, io};

/// Largest integer that every JSON reader keeps exactly: 2^53 - 1 (RFC 7493).
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Why a value has no canonical form here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CanonicalError {
    /// A number that is not an integer of magnitude at most 2^53 - 1.
    Number(String),
    /// The value could not be turned into JSON at all.
    Serialize(String),
}

impl fmt::Display for CanonicalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n} is not an integer of at most 2^53-1"),
            Self::Serialize(e) => write!(f, "not JSON: {e}"),
        }
    }
}

impl std::error::Error for CanonicalError {}

/// The canonical form of a value: RFC 8785 restricted to integers.
///
/// Keys sort by UTF-16 code units, no white space, the fewest escapes. Two equal values give equal
/// bytes, so the bytes can be hashed or signed.
///
/// # Errors
/// A float, or an integer beyond 2^53 - 1: such numbers change on their way through other readers. An
/// object with a key twice.
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let out = RefCell::new(Vec::new());
    let sorting = Sorting {
        out: &out,
        open: Vec::new(),
        fields: Vec::new(),
    };
    // serde_json writes the RFC 8785 escapes: \b \t \n \f \r \" \\ and \u00xx in lower case.
    let mut writer = serde_json::Serializer::with_formatter(Out(&out), sorting);
    value.serialize(&mut writer).map_err(why)?;
    Ok(out.into_inner())
}

/// What is written, which is put in order where an object ends.
struct Out<'a>(&'a RefCell<Vec<u8>>);

impl io::Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compact JSON whose objects are sorted when they end.
struct Sorting<'a> {
    out: &'a RefCell<Vec<u8>>,
    /// How many fields there were before each object that is open.
    open: Vec<usize>,
    /// Those of the objects that are open.
    fields: Vec<Field>,
}

/// Places in the bytes: a key with its quotes from `start` to `colon`, its value up to `end`.
struct Field {
    start: usize,
    colon: usize,
    end: usize,
}

impl Formatter for Sorting<'_> {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(self.fields.len());
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            w.write_all(b",")?;
        }
        let start = self.out.borrow().len();
        self.fields.push(Field {
            start,
            colon: start,
            end: start,
        });
        Ok(())
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.field()?.colon = self.out.borrow().len();
        writer.write_all(b":")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.field()?.end = self.out.borrow().len();
        Ok(())
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let before = self.open.pop().ok_or_else(out_of_order)?;
        let fields = self.fields.get_mut(before..).ok_or_else(out_of_order)?;
        sort(&mut self.out.borrow_mut(), fields).map_err(io::Error::other)?;
        self.fields.truncate(before);
        writer.write_all(b"}")
    }

    fn write_i64<W: ?Sized + io::Write>(&mut self, writer: &mut W, n: i64) -> io::Result<()> {
        number(writer, n, n.unsigned_abs() <= MAX_SAFE)
    }

    fn write_u64<W: ?Sized + io::Write>(&mut self, writer: &mut W, n: u64) -> io::Result<()> {
        number(writer, n, n <= MAX_SAFE)
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, writer: &mut W, n: i128) -> io::Result<()> {
        number(writer, n, n.unsigned_abs() <= u128::from(MAX_SAFE))
    }

    fn write_u128<W: ?Sized + io::Write>(&mut self, writer: &mut W, n: u128) -> io::Result<()> {
        number(writer, n, n <= u128::from(MAX_SAFE))
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, n: f32) -> io::Result<()> {
        number(writer, n, false)
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, n: f64) -> io::Result<()> {
        number(writer, n, false)
    }
}

impl Sorting<'_> {
    fn field(&mut self) -> io::Result<&mut Field> {
        self.fields.last_mut().ok_or_else(out_of_order)
    }
}

/// serde_json calls a formatter in order; if it did not, nothing would be written.
fn out_of_order() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

fn number<W: ?Sized + io::Write>(
    writer: &mut W,
    n: impl fmt::Display,
    safe: bool,
) -> io::Result<()> {
    if safe {
        write!(writer, "{n}")
    } else {
        Err(io::Error::other(CanonicalError::Number(n.to_string())))
    }
}

/// Brings the fields at the end of the bytes into their order.
fn sort(out: &mut Vec<u8>, fields: &mut [Field]) -> Result<(), CanonicalError> {
    let key = |field: &Field| out.get(field.start..field.colon).unwrap_or_default();
    let order = |a: &Field, b: &Field| by_utf16(key(a), key(b));
    if fields.is_sorted_by(|a, b| order(a, b).is_lt()) {
        return Ok(());
    }
    let begin = fields.first().map_or(out.len(), |field| field.start);
    fields.sort_by(order);
    let mut pairs = fields.windows(2);
    if let Some([field, _]) = pairs.find(|pair| matches!(pair, [a, b] if order(a, b).is_eq())) {
        let key = String::from_utf8_lossy(key(field)).into_owned();
        return Err(CanonicalError::Serialize(format!(
            "the key {key} stands twice"
        )));
    }
    let unsorted = out.split_off(begin);
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let place = field.start - begin..field.end - begin;
        let field = unsorted.get(place);
        let field =
            field.ok_or_else(|| CanonicalError::Serialize("a field out of place".to_owned()))?;
        out.extend_from_slice(field);
    }
    Ok(())
}

/// The order of two keys as they are written, by the UTF-16 code units of what they say.
fn by_utf16(a: &[u8], b: &[u8]) -> Ordering {
    // Without their last quote: it would come after what is less than it.
    let text = |key: &[u8]| key.len().saturating_sub(1);
    let (left, right) = (
        a.get(..text(a)).unwrap_or_default(),
        b.get(..text(b)).unwrap_or_default(),
    );
    match left.iter().zip(right).find(|(a, b)| a != b || **a == b'\\') {
        Some((b'\\', _) | (_, b'\\')) => {
            let said = |key| serde_json::from_slice::<String>(key).unwrap_or_default();
            said(a).encode_utf16().cmp(said(b).encode_utf16())
        }
        // U+10000 and above are surrogates in UTF-16, which come before U+E000.
        Some((0xee | 0xef, 0xf0..)) => Ordering::Greater,
        Some((0xf0.., 0xee | 0xef)) => Ordering::Less,
        Some((a, b)) => a.cmp(b),
        None => left.len().cmp(&right.len()),
    }
}

fn why(error: serde_json::Error) -> CanonicalError {
    if !error.is_io() {
        return CanonicalError::Serialize(error.to_string());
    }
    io::Error::from(error)
        .downcast()
        .unwrap_or_else(|e| CanonicalError::Serialize(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn canon(v: Value) -> String {
        String::from_utf8(canonical_json(&v).unwrap()).unwrap()
    }

    #[test]
    fn keys_sort_by_utf16_code_units() {
        // U+10000 is D800 DC00 in UTF-16 and so comes before U+E000, though not in UTF-8.
        let v = json!({"\u{e000}": 1, "\u{10000}": 2, "b": 3, "a": 4});
        assert_eq!(canon(v), "{\"a\":4,\"b\":3,\"\u{10000}\":2,\"\u{e000}\":1}");
    }

    #[test]
    fn escapes_are_minimal() {
        assert_eq!(
            canon(json!("\u{8}\t\n\u{c}\r\"\\\u{1f}/\u{7f}é")),
            "\"\\b\\t\\n\\f\\r\\\"\\\\\\u001f/\u{7f}é\""
        );
    }

    #[test]
    fn numbers_other_readers_would_change_are_refused() {
        assert_eq!(canon(json!(9_007_199_254_740_991u64)), "9007199254740991");
        assert!(canonical_json(&json!(9_007_199_254_740_992u64)).is_err());
        assert!(canonical_json(&json!(-9_007_199_254_740_992i64)).is_err());
        assert!(canonical_json(&json!(1.0)).is_err());
    }

    #[test]
    fn a_struct_is_sorted_as_the_value_it_is() {
        #[derive(Serialize)]
        struct Outer {
            z: u8,
            a: Inner,
            m: Vec<Inner>,
        }
        #[derive(Serialize)]
        #[serde(tag = "kind")]
        enum Inner {
            Two { y: i64, b: Option<bool> },
        }
        let inner = |y| Inner::Two { y, b: None };
        let value = Outer {
            z: 1,
            a: inner(-2),
            m: vec![inner(3), inner(4)],
        };
        assert_eq!(
            String::from_utf8(canonical_json(&value).unwrap()).unwrap(),
            r#"{"a":{"b":null,"kind":"Two","y":-2},"m":[{"b":null,"kind":"Two","y":3},{"b":null,"kind":"Two","y":4}],"z":1}"#
        );
    }

    #[test]
    fn a_key_that_stands_twice_and_numbers_of_other_types_are_refused() {
        struct Twice;
        impl Serialize for Twice {
            fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
                writer.collect_map([("b", 1), ("a", 2), ("b", 3)])
            }
        }
        let refused = canonical_json(&Twice).unwrap_err();
        assert_eq!(
            refused,
            CanonicalError::Serialize("the key \"b\" stands twice".to_owned())
        );
        assert_eq!(
            canonical_json(&1.5f32),
            Err(CanonicalError::Number("1.5".to_owned()))
        );
        assert!(canonical_json(&u128::from(MAX_SAFE)).is_ok());
        assert!(canonical_json(&(u128::from(MAX_SAFE) + 1)).is_err());
        assert!(canonical_json(&(-i128::from(MAX_SAFE) - 1)).is_err());
        assert!(
            canonical_json(&BTreeMap::from([((1, 2), 3)])).is_err(),
            "a key that is no text"
        );
    }

    /// The definition, word for word.
    fn slowly(value: &Value) -> String {
        match value {
            Value::Object(map) => {
                let mut keys: Vec<_> = map.keys().collect();
                keys.sort_by_key(|key| key.encode_utf16().collect::<Vec<_>>());
                let field = |key: &&String| format!("{}:{}", json!(key), slowly(&map[*key]));
                format!(
                    "{{{}}}",
                    keys.iter().map(field).collect::<Vec<_>>().join(",")
                )
            }
            Value::Array(items) => {
                format!(
                    "[{}]",
                    items.iter().map(slowly).collect::<Vec<_>>().join(",")
                )
            }
            plain => plain.to_string(),
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = "[a\"\\\\/\u{1}\u{7f}é\u{d7ff}\u{e000}\u{ffff}\u{10000}]{0,3}";
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-9_007_199_254_740_991i64..=9_007_199_254_740_991).prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        plain.prop_recursive(4, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text, inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_the_definition_says(value in values()) {
            prop_assert_eq!(canon(value.clone()), slowly(&value));
        }
    }
}
