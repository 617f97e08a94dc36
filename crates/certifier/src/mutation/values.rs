use syn::{GenericArgument, PathArguments, PathSegment, ReturnType, Type};

/// Plain values of a return type, as expressions. Empty where there is none to write down: `!`,
/// `impl Trait`, references to anything but `str` and slices.
pub(super) fn of_return(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, ty) => of(ty),
    }
}

fn of(ty: &Type) -> Vec<String> {
    match ty {
        Type::Paren(inner) => of(&inner.elem),
        Type::Group(inner) => of(&inner.elem),
        Type::Tuple(tuple) if tuple.elems.is_empty() => texts(&["()"]),
        Type::Tuple(tuple) => of_tuple(tuple.elems.iter()),
        Type::Reference(reference) => of_reference(&reference.elem),
        Type::Path(path) if path.qself.is_none() => match path.path.segments.last() {
            Some(last) => of_segment(last),
            None => Vec::new(),
        },
        Type::Path(_) | Type::Array(_) => texts(&["Default::default()"]),
        _ => Vec::new(),
    }
}

fn of_segment(segment: &PathSegment) -> Vec<String> {
    let inner = arguments(segment);
    match (segment.ident.to_string().as_str(), inner.as_slice()) {
        ("bool", []) => texts(&["true", "false"]),
        ("i8" | "i16" | "i32" | "i64" | "i128" | "isize", []) => texts(&["0", "1", "-1"]),
        ("u8" | "u16" | "u32" | "u64" | "u128" | "usize", []) => texts(&["0", "1"]),
        ("f32" | "f64", []) => texts(&["0.0", "1.0", "-1.0"]),
        ("String", []) => texts(&["Default::default()", "\"xyzzy\".into()"]),
        ("Option", [inner]) => with_first(&["None"], wrapped("Some", inner)),
        // `Result<T>` and `fmt::Result` are aliases whose error type is elsewhere.
        ("Result", []) => texts(&["Ok(())"]),
        ("Result", [good]) => wrapped("Ok", good),
        ("Result", [good, bad]) => {
            let mut out = wrapped("Ok", good);
            out.extend(simple(bad).map(|value| format!("Err({value})")));
            out
        }
        ("Vec", [inner]) => with_first(
            &["Default::default()"],
            simple(inner)
                .map(|v| format!("Vec::from([{v}])"))
                .into_iter()
                .collect(),
        ),
        ("Box", [inner]) => wrapped("Box::new", inner),
        _ => texts(&["Default::default()"]),
    }
}

fn of_reference(inner: &Type) -> Vec<String> {
    match inner {
        Type::Path(path) if path.path.is_ident("str") => texts(&["\"\"", "\"xyzzy\""]),
        Type::Slice(_) => texts(&["Default::default()"]),
        _ => Vec::new(),
    }
}

/// The first value of each element, then the second of each: enough to change every element.
fn of_tuple<'a>(elements: impl Iterator<Item = &'a Type>) -> Vec<String> {
    let values: Vec<Vec<String>> = elements.map(of).collect();
    let pick = |at: usize| {
        let chosen: Option<Vec<&str>> = values
            .iter()
            .map(|v| v.get(at).or(v.first()).map(String::as_str))
            .collect();
        chosen.map(|c| format!("({},)", c.join(", ")))
    };
    let mut out: Vec<String> = [pick(0), pick(1)].into_iter().flatten().collect();
    out.dedup();
    out
}

fn arguments(segment: &PathSegment) -> Vec<&Type> {
    match &segment.arguments {
        PathArguments::AngleBracketed(list) => list
            .args
            .iter()
            .filter_map(|arg| match arg {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn wrapped(constructor: &str, inner: &Type) -> Vec<String> {
    of(inner)
        .into_iter()
        .map(|value| format!("{constructor}({value})"))
        .collect()
}

/// A value that surely has the type: for places where `Default` may not be implemented.
fn simple(ty: &Type) -> Option<String> {
    of(ty).into_iter().find(|v| !v.contains("Default::"))
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|v| (*v).to_owned()).collect()
}

fn with_first(first: &[&str], rest: Vec<String>) -> Vec<String> {
    let mut out = texts(first);
    out.extend(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(ty: &str) -> Vec<String> {
        of(&syn::parse_str(ty).unwrap())
    }

    #[test]
    fn each_type_gets_values_a_compiler_accepts() {
        assert_eq!(values("bool"), ["true", "false"]);
        assert_eq!(values("Option<u8>"), ["None", "Some(0)", "Some(1)"]);
        assert_eq!(
            values("Result<(), String>"),
            ["Ok(())", "Err(\"xyzzy\".into())"]
        );
        assert_eq!(values("fmt::Result"), ["Ok(())"]);
        assert_eq!(values("&'static str"), ["\"\"", "\"xyzzy\""]);
        assert_eq!(values("(u8, bool)"), ["(0, true,)", "(1, false,)"]);
        assert_eq!(values("Vec<u8>"), ["Default::default()", "Vec::from([0])"]);
        assert_eq!(values("Self"), ["Default::default()"]);
    }

    #[test]
    fn types_without_a_plain_value_get_none() {
        for ty in [
            "!",
            "impl Iterator<Item = u8>",
            "&Foo",
            "(u8, &Foo)",
            "fn()",
        ] {
            assert!(values(ty).is_empty(), "{ty}");
        }
    }
}
