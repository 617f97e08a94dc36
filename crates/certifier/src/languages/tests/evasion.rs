//! Code that rules by name and by statement would pass over, each with its honest twin.

use super::*;
use CertifierCode::{DynamicCode, SourceAmbiguous, SourceIntrospection};
use Silence::{Effect, NoOperator, Rebound};

/// What a tree makes of a change: reasons alone.
fn reasons(
    language: Language,
    path: &str,
    old: Option<&str>,
    new: &str,
    others: &[(&str, &str)],
) -> Vec<Silence> {
    let (plan, _, _) = planned(language, path, old, new, others).unwrap();
    plan.unjudged.iter().map(|u| u.why).collect()
}

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
    let hidden = "import os\ngetattr(os, 'sys\\x74em')('a')\n";
    assert!(reasons(Python, "a.py", None, hidden, &[]).contains(&Effect));
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
fn every_name_of_a_declaration_must_be_new() {
    let c = "int f(int full) {\n  if (full > 9) {\n    return full;\n  }\n  return 0;\n}\n";
    let js =
        "function f(full) {\n  if (full > 9) {\n    return full;\n  }\n  return 0;\n}\nf(1);\n";
    let go = "package a\n\nfunc f(full int) int {\n\tif full > 9 {\n\t\treturn full\n\t}\n\treturn 0\n}\n";
    for (language, path, old, line, hides) in [
        (C, "src/a.c", c, "int full;", true),
        (C, "src/a.c", c, "static int full, half;", true),
        (C, "src/a.c", c, "static int half, full;", true),
        (C, "src/a.c", c, "int half = 0, full;", true),
        (C, "src/a.c", c, "int (full);", true),
        (C, "src/a.c", c, "int *half, *(full)[2];", true),
        (C, "src/a.c", c, "typedef int half, full;", true),
        (C, "src/a.c", c, "int half, third;", false),
        (C, "src/a.c", c, "int half = 0, third;", false),
        (C, "src/a.c", c, "typedef int half, third;", false),
        (JavaScript, "a.js", js, "let full, half;", true),
        (JavaScript, "a.js", js, "let half, full;", true),
        (JavaScript, "a.js", js, "let half = 1, full;", true),
        (JavaScript, "a.js", js, "let half, third;", false),
        (TypeScript, "a.ts", js, "let full: number, half;", true),
        (Go, "a/a.go", go, "var half, full int", true),
        (Go, "a/a.go", go, "var full, half int", true),
        (Go, "a/a.go", go, "var half, third int", false),
    ] {
        let (at, indent) = match language {
            Go => ("\t\treturn full\n", "\t\t"),
            _ => ("    return full;\n", "    "),
        };
        let new = old.replace(at, &format!("{indent}{line}\n{at}"));
        let found = reasons(language, path, Some(old), &new, &[]);
        assert_eq!(found.contains(&Rebound), hides, "{line}");
    }
    // A name beside old ones.
    let old = "int f(void) {\n  int end;\n  return g(&end);\n}\n";
    let new = old.replace("int end;", "int end, more;");
    assert_eq!(reasons(C, "src/a.c", Some(old), &new, &[]), vec![]);
    let python = "full = 1\n\n\ndef f(n):\n    full = n\n    return full\n";
    let new = python.replace("    full = n", "    global half, full\n    full = n");
    assert!(reasons(Python, "a.py", Some(python), &new, &[]).contains(&Rebound));
}

#[test]
fn what_an_include_or_import_finds_stays_what_it_was() {
    let main = "#include <stdlib.h>\n#include \"price.h\"\n\nint main(void) {\n  return strtoul(\"1\", 0, 10);\n}\n";
    let header = "int strtoul(const char *text, char **rest, int base);\n";
    for (language, path, other, text, takes) in [
        (C, "include/stdlib.h", "src/main.c", main, true),
        (C, "src/stdlib.h", "src/main.c", main, true),
        (C, "include/price.h", "src/main.c", main, true),
        (C, "src/price.h", "src/main.c", main, true),
        (C, "src/a/price.h", "src/a/main.c", main, true),
        (C, "include/stddef.h", "src/main.c", main, true),
        (C, "include/bits/types.h", "src/main.c", main, true),
        (C, "src/a/price.h", "src/b/main.c", main, false),
        (C, "include/rates.h", "src/main.c", main, false),
        (C, "src/tools/stddef.h", "src/main.c", main, false),
        (
            JavaScript,
            "lib/a.js",
            "main.js",
            "f(require('./lib/a'));\n",
            true,
        ),
        (
            JavaScript,
            "lib/a.js",
            "lib/b.js",
            "f(require('./b'));\n",
            false,
        ),
        (Python, "random.py", "main.py", "import os, random\n", true),
        (
            Python,
            "random/__init__.py",
            "main.py",
            "from random import choice\n",
            true,
        ),
        (
            Python,
            "shop/random.py",
            "main.py",
            "import random\n",
            false,
        ),
        (Python, "rates.py", "main.py", "import random\n", false),
    ] {
        let new = match language {
            C => header.to_owned(),
            Python => "def f(n):\n    return n\n".to_owned(),
            _ => "exports.f = (n) => n;\n".to_owned(),
        };
        let found = reasons(language, path, None, &new, &[(other, text)]);
        assert_eq!(found.contains(&Rebound), takes, "{path} {other}");
    }
    // Where it stands, and whether it goes.
    let old = "#include <stdlib.h>\n#include \"price.h\"\n\nint f(int n) {\n  if (n > 9) {\n    return n;\n  }\n  return atoi(\"1\");\n}\n";
    for (from, to, refused) in [
        ("    return n;", "#include \"bulk.h\"\n    return n;", true),
        ("  return atoi", "#include \"bulk.h\"\n  return atoi", true),
        ("#include <stdlib.h>\n", "", true),
        ("<stdlib.h>", "<tgmath.h>", true),
        (
            "#include <stdlib.h>\n",
            "#include <stdlib.h>\n#include <string.h>\n",
            false,
        ),
        (
            "#include \"price.h\"\n",
            "#include \"price.h\"\n#include \"bulk.h\"\n",
            false,
        ),
    ] {
        let new = old.replace(from, to);
        assert_ne!(old, new);
        let found = reasons(C, "src/a.c", Some(old), &new, &[]);
        assert_eq!(found.contains(&Rebound), refused, "{to}");
    }
    // A function that nothing declares any more.
    let header = "#ifndef A_H\n#define A_H\nlong g(long n);\nlong h(long n);\n#endif\n";
    let new = header.replace("long g(long n);\n", "");
    let caller = [(
        "src/b.c",
        "#include \"a.h\"\nlong k(long n) { return g(n); }\n",
    )];
    assert!(reasons(C, "src/a.h", Some(header), &new, &caller).contains(&Rebound));
    assert_eq!(reasons(C, "src/a.h", Some(header), &new, &[]), vec![]);
    let guarded = "#ifndef A_H\n#define A_H\n#include <stddef.h>\nint g(int n);\n#endif\n";
    assert_eq!(reasons(C, "src/a.h", None, guarded, &[]), vec![]);
}

#[test]
fn what_runs_where_something_is_defined_is_judged_or_named() {
    for (language, path, text, acts) in [
        (
            Python,
            "a.py",
            "class A([object, w(1)][0]):\n    pass\n",
            true,
        ),
        (
            Python,
            "a.py",
            "class A(B, metaclass=w(1)):\n    pass\n",
            true,
        ),
        (Python, "a.py", "def f(n=w(1)):\n    return n\n", true),
        (
            Python,
            "a.py",
            "def f(n: int = w(1)):\n    return n\n",
            true,
        ),
        (Python, "a.py", "def f(n: w(1)):\n    return n\n", true),
        (Python, "a.py", "def f(n) -> w(1):\n    return n\n", true),
        (
            JavaScript,
            "a.js",
            "class A extends w(1) {}\nnew A();\n",
            true,
        ),
        (
            JavaScript,
            "a.js",
            "class A { [w(1)]() { return 1; } }\n",
            true,
        ),
        (
            JavaScript,
            "a.js",
            "function f(n = w(1)) { return n; }\n",
            true,
        ),
        (
            TypeScript,
            "a.ts",
            "function f(n: number = w(1)) { return n; }\n",
            true,
        ),
        (
            C,
            "src/a.c",
            "int f(void) {\n  int spare[w(1)];\n  return 1;\n}\n",
            true,
        ),
        (
            C,
            "src/a.c",
            "int f(int n, int a[w(1)]) {\n  return 1;\n}\n",
            true,
        ),
        (
            C,
            "src/a.c",
            "int f(void) {\n  typedef int spare[w(1)];\n  return 1;\n}\n",
            true,
        ),
        (
            Python,
            "a.py",
            "class A(B, C[int], metaclass=D):\n    pass\n",
            false,
        ),
        (
            Python,
            "a.py",
            "class A(namedtuple('B', 'c d')):\n    pass\n",
            false,
        ),
        (
            Python,
            "a.py",
            "def f(n: 'int | None' = None, m=3, k=()) -> list[int]:\n    return n\n",
            false,
        ),
        (
            Python,
            "a.py",
            "def f(n=Decimal('1')):\n    return n\n",
            false,
        ),
        (
            JavaScript,
            "a.js",
            "class A extends B {}\nnew A();\n",
            false,
        ),
        (
            JavaScript,
            "a.js",
            "function f(n = 1, m = new Map(), k = []) { return n; }\n",
            false,
        ),
        (
            TypeScript,
            "a.ts",
            "function f(n: number = 1, m?: string) { return n; }\n",
            false,
        ),
        (
            C,
            "src/a.c",
            "int f(int n, int a[n + 1], int (*g)(int)) {\n  int spare[9];\n  return 1;\n}\n",
            false,
        ),
    ] {
        let found = reasons(language, path, None, text, &[]);
        assert_eq!(found.contains(&NoOperator), acts, "{text} {found:?}");
    }
    // A text with a call in it documents nothing.
    let documented = |text: &str| format!("def f(n):\n    {text}\n    return n\n");
    let ids = |text: &str| ids(Python, "a.py", None, &documented(text));
    let deleted = |text: &str| {
        ids(text)
            .iter()
            .any(|id| id.starts_with("2:") && id.contains("statement-delete"))
    };
    assert!(deleted("'Price.' f'{w(n)}'"));
    assert!(deleted("f'{w(n)}'"));
    assert!(!deleted("'Price.' ' And more.'"));
    assert!(!deleted("'''Price.'''"));
}

#[test]
fn effects_are_known_with_the_rest_of_their_family() {
    for (language, path, line) in [
        (C, "src/a.c", "int f(void) { return !pututxline(0); }"),
        (C, "src/a.c", "int f(void) { return !updwtmpx(0, 0); }"),
        (C, "src/a.c", "int f(void) { syslog(1, \"a\"); return 1; }"),
        (
            C,
            "src/a.c",
            "int f(void) { return mq_send(1, \"a\", 1, 1); }",
        ),
        (C, "src/a.c", "int f(void) { return shmget(1, 1, 1); }"),
        (
            C,
            "src/a.c",
            "int f(void) { return memfd_create(\"a\", 0); }",
        ),
        (
            Go,
            "a/a.go",
            "package a\n\nimport \"os\"\n\nfunc f() { os.Clearenv() }",
        ),
        (JavaScript, "a.js", "process.report.writeReport('a');"),
        (
            Python,
            "a.py",
            "import readline\nreadline.write_history_file('a')",
        ),
        (Python, "a.py", "import distutils.file_util"),
        (Python, "a.py", "import uuid\nprint(uuid.getnode())"),
        (
            Python,
            "a.py",
            "from xml.etree.ElementTree import ElementTree\nprint(ElementTree(e).write('a'))",
        ),
        (
            Python,
            "a.py",
            "from pathlib import Path\nprint(Path('a').replace('b'))",
        ),
    ] {
        let found = reasons(language, path, None, &format!("{line}\n"), &[]);
        assert!(found.contains(&Effect), "{line}");
    }
    let dynamic = "void *f(void) { return dlmopen(0, \"a\", 0); }\n";
    assert_eq!(fenced(C, "src/a.c", None, dynamic), Some(DynamicCode));
    for line in [
        "import sys\nsys.stdout.write('a'.replace('a', 'b'))",
        "import xml.etree.ElementTree as ET, sys\nsys.stdout.write(ET.tostring(ET.fromstring(t)))",
        "import uuid\nprint(uuid.UUID('a'))",
        "import datetime\nprint(d.replace(year=2020))",
    ] {
        let found = reasons(Python, "a.py", None, &format!("{line}\n"), &[]);
        assert!(!found.contains(&Effect), "{line}");
    }
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
