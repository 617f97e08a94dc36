//! Texts without each of their pieces, spelled as the language spells them.

use super::Language;
use super::syntax::Syntax;
use crate::mutation::parts::{self, Lesser};

/// The literal without each of its parts; one that is gone through, without each of its characters.
/// What it becomes, and what people read.
pub(super) fn of(syntax: &Syntax<'_>, node: usize) -> Vec<(String, String)> {
    let Some(text) = Text::of(syntax.said(node)) else {
        return Vec::new();
    };
    let mut lesser: Vec<(&str, Lesser)> = Vec::new();
    let all = parts::without_parts(text.inner).into_iter();
    lesser.extend(all.map(|one| ("part", one)));
    if text.prefix.contains(['b', 'B']) || is_gone_through(syntax, node) {
        let all = parts::without_each(&text.characters(syntax.language)).into_iter();
        lesser.extend(all.map(|one| ("character", one)));
    }
    let whole = lesser.into_iter().filter(|(_, one)| {
        let tail = one.rest.len() - one.rest.trim_end_matches('\\').len();
        tail % 2 == 0 || text.is_raw()
    });
    let made = whole.map(|(piece, one)| (text.with(&one.rest), one.said(piece)));
    made.collect()
}

/// One literal: `r"…"`.
struct Text<'a> {
    prefix: &'a str,
    quote: &'a str,
    inner: &'a str,
}

impl<'a> Text<'a> {
    /// Nothing for a text that is filled in.
    fn of(said: &'a str) -> Option<Self> {
        let (prefix, rest) = said.split_at(said.find(['"', '\'', '`'])?);
        let quotes = ["\"\"\"", "'''", "\"", "'", "`"];
        let quote = quotes.into_iter().find(|quote| {
            let inner = rest.strip_prefix(quote);
            inner.is_some_and(|inner| inner.ends_with(quote))
        })?;
        let inner = rest.strip_prefix(quote)?.strip_suffix(quote)?;
        let filled = prefix.contains(['f', 'F', 't', 'T']) || quote == "`" && inner.contains("${");
        (!filled).then_some(Self {
            prefix,
            quote,
            inner,
        })
    }

    fn with(&self, inner: &str) -> String {
        let Self { prefix, quote, .. } = self;
        format!("{prefix}{quote}{inner}{quote}")
    }

    fn is_raw(&self) -> bool {
        self.prefix.contains(['r', 'R'])
    }

    /// The characters, each as it is written.
    fn characters(&self, language: Language) -> Vec<&'a str> {
        let raw = self.is_raw() || language == Language::Go && self.quote == "`";
        let mut rest = self.inner;
        let mut found = Vec::new();
        while let Some(first) = rest.chars().next() {
            let length = match (first, raw) {
                ('\\', false) => escaped(rest, language),
                _ => first.len_utf8(),
            };
            let (one, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            found.push(one);
            rest = after;
        }
        found
    }
}

/// How long the escape is that a text begins with.
fn escaped(text: &str, language: Language) -> usize {
    let Some(kind) = text.chars().nth(1) else {
        return text.len();
    };
    let digits = |from: usize, radix: u32, most: usize| {
        let rest = text.get(from..).unwrap_or_default().chars();
        from + rest.take(most).take_while(|c| c.is_digit(radix)).count()
    };
    match kind {
        'x' if language == Language::C => digits(2, 16, usize::MAX),
        'x' => digits(2, 16, 2),
        'u' | 'N' if text[2..].starts_with('{') => text.find('}').map_or(text.len(), |at| at + 1),
        'u' => digits(2, 16, 4),
        'U' => digits(2, 16, 8),
        '0'..='7' => digits(1, 8, 3),
        _ => 1 + kind.len_utf8(),
    }
}

/// Functions and methods that go through a text, or look one character up in it.
const GOING_THROUGH: &[&str] = &[
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "encode",
    "find",
    "includes",
    "index",
    "indexOf",
    "memchr",
    "strchr",
    "strcspn",
    "strpbrk",
    "strrchr",
    "strspn",
    "strings.Contains",
    "strings.ContainsAny",
    "strings.ContainsRune",
    "strings.IndexAny",
    "strings.IndexByte",
    "strings.IndexRune",
];

/// Whether a text stands where each of its characters counts.
fn is_gone_through(syntax: &Syntax<'_>, node: usize) -> bool {
    let parent = syntax.nodes[node].parent;
    let field = syntax.nodes[node].field;
    match syntax.kind(parent) {
        "attribute" | "member_expression" => {
            let name = syntax.part(parent, "attribute");
            let name = name.or_else(|| syntax.part(parent, "property"));
            let name = name.map_or("", |name| syntax.said(name));
            // With an empty text, `split` of JavaScript tells all characters apart.
            let script = matches!(syntax.language, Language::JavaScript | Language::TypeScript);
            GOING_THROUGH.contains(&name) || script && name == "split"
        }
        "argument_list" => {
            let call = syntax.nodes[parent].parent;
            let function = syntax.part(call, "function");
            let first = syntax.first_inner(parent) == Some(node);
            let named = function.is_some_and(|of| GOING_THROUGH.contains(&syntax.said(of)));
            first && named
        }
        "comparison_operator" => {
            let children = syntax.nodes[parent].children.iter();
            let asked = children.map(|at| syntax.said(*at));
            asked
                .into_iter()
                .any(|said| matches!(said, "in" | "not in"))
                && syntax.inner(parent).last() == Some(&node)
        }
        "for_statement" | "for_in_clause" | "for_in_statement" | "range_clause" => field == "right",
        "subscript"
        | "subscript_expression"
        | "index_expression"
        | "spread_element"
        | "list_splat"
        | "type_conversion_expression" => true,
        _ => bound_name(syntax, node).is_some_and(|name| name_is_gone_through(syntax.text, name)),
    }
}

/// The name that a text is bound to.
fn bound_name<'a>(syntax: &'a Syntax<'_>, node: usize) -> Option<&'a str> {
    let mut parent = syntax.nodes[node].parent;
    if syntax.kind(parent) == "expression_list" {
        parent = syntax.nodes[parent].parent;
    }
    let fields = ["left", "name", "declarator"];
    let kinds = [
        "assignment",
        "init_declarator",
        "short_var_declaration",
        "var_spec",
        "const_spec",
        "variable_declarator",
    ];
    let bound = kinds.contains(&syntax.kind(parent));
    let name = fields
        .into_iter()
        .filter(|_| bound)
        .find_map(|field| syntax.part(parent, field))?;
    let said = syntax.said(name).trim_start_matches('*').trim();
    said.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

fn name_is_gone_through(text: &str, name: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let after = |mark: &str| text.contains(&format!("{name}{mark}"));
    let before = |mark: &str| {
        let place = format!("{mark}{name}");
        let ends = text.match_indices(&place).map(|(at, _)| at + place.len());
        let word = |c: char| c.is_alphanumeric() || c == '_';
        ends.filter(|end| !text[*end..].starts_with(word)).count()
    };
    let methods = GOING_THROUGH.iter();
    after("[")
        || [" in ", " of ", "range ", "..."].into_iter().any(|mark| before(mark) > 0)
        // A pointer is declared with one.
        || before("*") > 1
        || methods.clone().any(|method| after(&format!(".{method}(")))
        || methods.clone().any(|function| before(&format!("{function}(")) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_what_is_written_for_it() {
        let characters = |language, said| Text::of(said).unwrap().characters(language);
        let text = r#""a\x01\n\u{1f}\u00e9\101é\"""#;
        let found = characters(Language::JavaScript, text);
        assert_eq!(
            found,
            [
                "a", "\\x01", "\\n", "\\u{1f}", "\\u00e9", "\\101", "é", "\\\""
            ]
        );
        assert_eq!(characters(Language::C, r#""\x01f\\""#), ["\\x01f", "\\\\"]);
        assert_eq!(characters(Language::Python, r#"br'\x'"#), ["\\", "x"]);
        assert_eq!(characters(Language::Python, "'''a'b'''"), ["a", "'", "b"]);
        assert!(Text::of("f'{a} b'").is_none());
        assert!(Text::of("`a ${b}`").is_none());
    }
}
