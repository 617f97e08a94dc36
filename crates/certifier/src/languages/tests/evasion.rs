//! Code that rules by name and by statement would pass over, each with its honest twin.

use super::*;
use CertifierCode::{DynamicCode, SourceAmbiguous, SourceIntrospection};

#[test]
fn whatever_python_could_read_in_another_encoding_is_refused() {
    for (comment, honest) in [
        (
            "# On coding style: see below. coding: raw_unicode_escape",
            false,
        ),
        ("# coding style, coding=utf-7", false),
        ("# coding:\tlatin-1", false),
        ("  # xcoding= \t utf-16", false),
        ("# coding: utf-8, coding: latin-1", false),
        ("# -*- coding: utf-8 -*-", true),
        ("# On coding style: see below.", true),
        ("# encoding = latin-1", true),
        ("# coding: (none)", true),
    ] {
        for before in ["", "#!/usr/bin/python3\n"] {
            let text = format!("{before}{comment}\nx = 1\n");
            let code = code_of(Python, "a.py", text.as_bytes());
            assert_eq!(code, (!honest).then_some(SourceAmbiguous), "{comment}");
        }
        let text = format!("x = 1\ny = 1\n{comment}\n");
        assert_eq!(code_of(Python, "a.py", text.as_bytes()), None, "{comment}");
    }
}

#[test]
fn a_line_of_python_that_is_joined_to_one_without_code_is_refused() {
    let body = |line: &str| format!("def f(n):\n    if n:\n        n = 1\n{line}\n    return n\n");
    for line in [
        "        \\\n    n = 2",
        "    \\\n        n = 2",
        "\\\n    n = 2",
        "        n = 2 \\\n",
        "        n = 2 \\\n    # two",
    ] {
        let code = code_of(Python, "a.py", body(line).as_bytes());
        assert_eq!(code, Some(SourceAmbiguous), "{line}");
    }
    for line in [
        "        n = 1 + \\\n    2",
        "    x = \"\"\"\n\\\n\"\"\"",
        "    # a comment \\\n",
        "    x = '\\\\'\n\n",
    ] {
        assert_eq!(
            code_of(Python, "a.py", body(line).as_bytes()),
            None,
            "{line}"
        );
    }
}

#[test]
fn a_name_in_a_text_is_a_name() {
    for (line, code) in [
        ("t = getattr(codecs, 'builtins')", DynamicCode),
        ("t = getattr(o, 'eval')", DynamicCode),
        ("t = getattr(o, 'ev\\x61l')", DynamicCode),
        ("t = getattr(o, 'inspect')", DynamicCode),
        ("t = getattr(o, 'e' 'val')", DynamicCode),
        ("t = getattr(o, f'ev{a}l')", DynamicCode),
        ("t = getattr(f, '__co\\x64e__')", SourceIntrospection),
        (
            "t = getattr(f, '__co\\N{LATIN SMALL LETTER D}e__')",
            SourceIntrospection,
        ),
        ("t = '{0.__co\\u0064e__}'.format(f)", SourceIntrospection),
        (
            "t = getattr(f, '__getattribute__')('x')",
            SourceIntrospection,
        ),
        ("t = o.__getattribute__('x')", SourceIntrospection),
        ("t = codecs.builtins", DynamicCode),
        ("t = dataclasses.inspect.getsource(f)", DynamicCode),
        ("from dataclasses import inspect as i", DynamicCode),
        ("from logging.config import BaseConfigurator", DynamicCode),
        ("t = dataclasses.types.FunctionType(c, {})", DynamicCode),
    ] {
        let found = fenced(Python, "a.py", None, &format!("{line}\n"));
        assert_eq!(found, Some(code), "{line}");
    }
    for line in [
        "t = getattr(o, 'price')",
        "t = getattr(o, 'pr\\x69ce', None)",
        "t = row['code'], row['types'], o.code, o.token",
        "t = 'evaluate the inspect module'",
        "t = r'\\x65val \\d+'",
        "from .errors import code",
    ] {
        assert_eq!(
            fenced(Python, "a.py", None, &format!("{line}\n")),
            None,
            "{line}"
        );
    }
}

#[test]
fn a_name_that_is_put_together_is_refused_and_a_place_in_a_list_is_not() {
    for line in [
        "const t = isFinite['const' + 'ructor']('return 1');",
        "const t = isFinite['const\\u0072uctor']('return 1');",
        "const t = isFinite['con\\structor']('return 1');",
        "const t = isFinite[`const${'r'}uctor`]('return 1');",
        "const t = isFinite[['r', 'c'].join('onst')];",
        "const k = 'const' + 'ructor';",
        "const k = a.join(''); const t = isFinite[k];",
        "function f(o, k) { return o[k]; }",
        "const f = (o) => o[k()];",
        "let i = 0; i = a.pop(); const t = isFinite[i];",
        "let i = 0; i += 'x'; const t = isFinite[i];",
        "const { [k]: F } = isFinite;",
        "const t = module['requ' + 'ire']('child_' + 'process');",
        "const o = { a: 1 }; const t = o[k][k];",
        "let o = { a: 1 }; o = isFinite; const t = o[k];",
        "for (const k in o) { f(isFinite[k]); }",
        "const t = isFinite?.['con' + s];",
        "const t = Object.getOwnPropertyDescriptors(o);",
        "const t = process.getBuiltinModule('vm');",
    ] {
        for (language, path) in [(JavaScript, "a.js"), (TypeScript, "a.ts")] {
            let found = fenced(language, path, None, &format!("{line}\n"));
            assert_eq!(found, Some(DynamicCode), "{line}");
        }
    }
    let cast = "const t = isFinite[('const' + 'ructor') as 'a'];\n";
    assert_eq!(fenced(TypeScript, "a.ts", None, cast), Some(DynamicCode));
    for line in [
        "const t = line[0] + row['price'] + row[`fee`];",
        "for (let i = 0; i < a.length; i++) { f(a[i], a[i + 1], a[a.length - 1], a[-i]); }",
        "let i = 0; let j = i; i += j; j--; f(a[j], a[i > j ? i : 0]);",
        "const RATES = { a: 1 }; const f = (k) => RATES[k] ?? 0;",
        "const RATES = Object.freeze([1, 2]); const f = (k) => RATES[k];",
        "const t = { [k]: 1 };",
        "const t = 'price' + k;",
    ] {
        for (language, path) in [(JavaScript, "a.js"), (TypeScript, "a.ts")] {
            assert_eq!(
                fenced(language, path, None, &format!("{line}\n")),
                None,
                "{line}"
            );
        }
    }
    let kept = "const t = isFinite[k];\n";
    let more = format!("{kept}f(1);\n");
    assert_eq!(fenced(JavaScript, "a.js", Some(kept), &more), None);
}

#[test]
fn a_name_of_the_linkers_is_one_where_nothing_else_has_it() {
    for (text, refused) in [
        ("int f(const char *start, const char *end);\n", false),
        ("int f(const char *end) { return *end; }\n", false),
        ("int f(void) { char *end; g(&end); return *end; }\n", false),
        (
            "struct a { int start, end; };\nint f(struct a *b) { return b->end; }\n",
            false,
        ),
        ("extern char end;\n", true),
        ("char *f(void) { return &end; }\n", true),
        ("char *f(void) { extern char end; return &end; }\n", true),
        ("char *f(void) { int end(); return (char *)end; }\n", true),
        (
            "char *f(int end) { { extern char end; return &end; } }\n",
            true,
        ),
        ("void etext(void);\n", true),
        ("#define LAST &edata\n", true),
    ] {
        let code = refused.then_some(SourceIntrospection);
        assert_eq!(fenced(C, "src/a.c", None, text), code, "{text}");
    }
}
