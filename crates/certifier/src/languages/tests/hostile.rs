//! Texts and names that hide something.

use super::*;
use crate::CertifierCode;

#[test]
fn a_text_that_two_readers_read_differently_is_refused() {
    use CertifierCode::SourceUnreadable;
    use CertifierCode::{SourceAmbiguous, SourceBidi, SourceTooDeep, SourceTooLarge};
    let latin = b"# coding: latin-1\nx = 1\n".as_slice();
    let deep = format!("x = {}1{}\n", "(".repeat(3_000), ")".repeat(3_000));
    let long = "x = 1\n".repeat(100_000);
    for (language, path, text, code) in [
        // A comment goes on, or ends, where no parser sees it.
        (
            C,
            "src/a.c",
            b"// a ??/\nint f(void) { return 1; }\n".as_slice(),
            SourceAmbiguous,
        ),
        (
            C,
            "src/a.c",
            b"// a \\\nint f(void) { return 1; }\n",
            SourceAmbiguous,
        ),
        (
            C,
            "src/a.c",
            b"/* a *\\\n/ int x = f(); /* b */\n",
            SourceAmbiguous,
        ),
        (
            C,
            "src/a.c",
            b"int f(void) { return 1 }\n",
            SourceUnreadable,
        ),
        (
            C,
            "src/a.c",
            b"int f(void) { return 1; }\xff\n",
            SourceUnreadable,
        ),
        (C, "src/a.c", "\u{feff}int x = 1;\n".as_bytes(), SourceBidi),
        (
            Go,
            "a/a.go",
            "package a\nvar x = \"\u{202e}\"\n".as_bytes(),
            SourceBidi,
        ),
        (
            Go,
            "a/a.go",
            "package a\nvar \u{430} = 1\n".as_bytes(),
            SourceBidi,
        ),
        (Go, "a/a.go", b"package a\nfunc f( {\n", SourceUnreadable),
        (JavaScript, "a.js", b"f(); <!-- g()\n", SourceAmbiguous),
        (JavaScript, "a.js", b"f();\n--> g()\n", SourceAmbiguous),
        (JavaScript, "a.js", b"ev\\u0061l('f()');\n", SourceAmbiguous),
        (
            JavaScript,
            "a.js",
            "// a\u{2028}f();\n".as_bytes(),
            SourceBidi,
        ),
        (JavaScript, "a.js", b"const = 1;\n", SourceUnreadable),
        (Python, "a.py", b"# a\rf()\n", SourceBidi),
        (Python, "a.py", b"x = 1\n\x0cy = 2\n", SourceBidi),
        (Python, "a.py", latin, SourceAmbiguous),
        (Python, "a.py", b"if x:\n\tf()\n \tg()\n", SourceAmbiguous),
        (
            Python,
            "a.py",
            "\u{ff45}val('f()')\n".as_bytes(),
            SourceBidi,
        ),
        (Python, "a.py", b"if x\n    f()\n", SourceUnreadable),
        (Python, "a.py", deep.as_bytes(), SourceTooDeep),
        (Python, "a.py", long.as_bytes(), SourceTooLarge),
    ] {
        let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        assert_eq!(code_of(language, path, text), Some(code), "{shown}");
    }
    // The twins.
    for (language, path, text) in [
        (
            C,
            "src/a.c",
            "int f(void) { return 1; } // a ?? b\n".to_owned(),
        ),
        (
            JavaScript,
            "a.js",
            "let i = 9;\nwhile (i --> 0) f();\n".replace("-->", "-- >"),
        ),
        (
            Python,
            "a.py",
            "# -*- coding: utf-8 -*-\nx = '\u{e9}'\n".to_owned(),
        ),
        (
            Python,
            "a.py",
            format!("x = {}1{}\n", "(".repeat(50), ")".repeat(50)),
        ),
    ] {
        assert_eq!(code_of(language, path, text.as_bytes()), None, "{text}");
    }
}

#[test]
fn what_sees_or_makes_code_is_refused_in_changed_tokens_and_nowhere_else() {
    use CertifierCode::{ConditionalCode, DynamicCode, ForeignLinkage};
    use CertifierCode::{SourceIntrospection, UnsafeCode};
    let go = |body: &str| format!("package a\n\n{body}\n");
    for (language, line, code) in [
        (C, "int x = __LINE__;", SourceIntrospection),
        (C, "#define HERE __FILE__", SourceIntrospection),
        (C, "#include \"a.c\"", SourceIntrospection),
        (C, "#include \"../../etc/a.h\"", SourceIntrospection),
        (C, "#include </etc/a.h>", SourceIntrospection),
        (C, "#include SELF", SourceIntrospection),
        (C, "void f(void) { __asm__(\"nop\"); }", UnsafeCode),
        (
            C,
            "__attribute__((constructor)) void f(void) {}",
            ForeignLinkage,
        ),
        (C, "void *f(void) { return dlsym(0, \"g\"); }", DynamicCode),
        (Go, "import \"runtime\"", SourceIntrospection),
        (Go, "import \"unsafe\"", UnsafeCode),
        (Go, "import \"C\"", UnsafeCode),
        (Go, "import . \"fmt\"", SourceIntrospection),
        (Go, "import _ \"embed\"", SourceIntrospection),
        (Go, "//go:build linux", ConditionalCode),
        (Go, "// +build linux", ConditionalCode),
        (Go, "//line other.go:7", ConditionalCode),
        (Go, "//go:linkname f runtime.f", ConditionalCode),
        (JavaScript, "const t = f.toString();", SourceIntrospection),
        (
            JavaScript,
            "const t = f['toString']();",
            SourceIntrospection,
        ),
        (JavaScript, "const t = String(f);", DynamicCode),
        (
            JavaScript,
            "const t = new Error().stack;",
            SourceIntrospection,
        ),
        (JavaScript, "const t = eval('f');", DynamicCode),
        (
            JavaScript,
            "const t = f.constructor('return 1');",
            DynamicCode,
        ),
        (JavaScript, "const t = require('vm');", DynamicCode),
        (
            JavaScript,
            "const t = require('child_' + 'process');",
            DynamicCode,
        ),
        (JavaScript, "const t = import('./a.js');", DynamicCode),
        (JavaScript, "const t = __filename;", SourceIntrospection),
        (Python, "t = f.__code__.co_code", SourceIntrospection),
        (Python, "t = '{0.__code__}'.format(f)", SourceIntrospection),
        (Python, "t = ('{0.__co' + 'de__}').format(f)", DynamicCode),
        (Python, "t = getattr(f, '__co' + 'de__')", DynamicCode),
        (Python, "t = getattr(f, name)", DynamicCode),
        (Python, "t = getattr(f, '__code__')", SourceIntrospection),
        (Python, "import inspect", DynamicCode),
        (Python, "from sys import _getframe", SourceIntrospection),
        (Python, "import importlib.util as u", DynamicCode),
        (Python, "from ctypes import string_at", DynamicCode),
        (Python, "t = __file__", SourceIntrospection),
        (Python, "t = __import__('inspect')", SourceIntrospection),
        (Python, "t = eval('f')", DynamicCode),
        (Python, "t = globals()['f']", DynamicCode),
        (Python, "from operator import attrgetter as a", DynamicCode),
        (
            Python,
            "try:\n    f()\nexcept E as e:\n    t = e.tb_frame",
            SourceIntrospection,
        ),
    ] {
        let (path, text) = match language {
            C => ("src/a.c", format!("{line}\n")),
            Go => ("a/a.go", go(line)),
            JavaScript => ("a.js", format!("{line}\n")),
            Python => ("a.py", format!("{line}\n")),
            TypeScript => ("a.ts", format!("{line}\n")),
        };
        assert_eq!(fenced(language, path, None, &text), Some(code), "{line}");
        if language == JavaScript {
            assert_eq!(
                fenced(TypeScript, "a.ts", None, &text),
                Some(code),
                "{line}"
            );
        }
        // What the baseline has is not the candidate's, whatever else changes.
        let more = format!("{text}\n");
        assert_eq!(fenced(language, path, Some(&text), &more), None, "{line}");
    }
    for (language, path, text) in ALL {
        let fine = text
            .replace("String.raw", "html")
            .replace("sys.stderr", "None");
        assert_eq!(fenced(language, path, None, &fine), None, "{path}");
    }
    for line in [
        "t = '{} of {n}'.format(1, n=2)",
        "t = getattr(f, 'name', None)",
        "import re\nP = re.compile('a')",
        "from .prices import price",
        "import prices",
        "class A:\n    def __init__(self):\n        self.compile = 1",
    ] {
        assert_eq!(
            fenced(Python, "a.py", None, &format!("{line}\n")),
            None,
            "{line}"
        );
    }
    let class = "class A {\n  constructor(n) { this.n = n; }\n}\n";
    assert_eq!(fenced(JavaScript, "a.js", None, class), None);
}

#[test]
fn what_no_mutant_can_show_is_named() {
    use Silence::{Conditional, Effect, Macro, NoOperator, Rebound, Removed};
    let header = "#ifndef A_H\n#define A_H\nint f(int n);\nstruct a { int n; };\n#endif\n";
    let c = "int g(int n) { return n; }\nint f(int n) { return g(n); }\n";
    let js = "const g = 1;\nfunction f(n, m) { return n - m; }\nconsole.log(f(g, 2));\n";
    let python = "from a import b\n\n\ndef f(n, m):\n    return round(n - m)\n\n\nprint(f(1, 2))\n";
    let go = "package a\n\nimport \"math/rand\"\n\ntype T struct {\n\tn int\n}\n\nfunc f() int {\n\treturn rand.Int()\n}\n";
    for (language, path, old, new, expected) in [
        (C, "src/a.h", None, header.to_owned(), vec![]),
        (
            C,
            "src/a.h",
            Some(header),
            header.replace("int n; }", "char n; }"),
            vec![(4, Rebound)],
        ),
        (
            C,
            "src/a.h",
            Some(header),
            header.replace("int f(int n)", "int f(char n)"),
            vec![(3, Rebound)],
        ),
        (
            C,
            "src/a.c",
            Some(c),
            format!("#define g(n) 7\n{c}"),
            vec![(1, Macro)],
        ),
        (
            C,
            "src/a.c",
            Some(c),
            c.replace("int f", "#if X\nint h;\n#endif\nint f"),
            vec![(2, Conditional), (3, Conditional), (4, Conditional)],
        ),
        (
            C,
            "src/a.c",
            Some(c),
            c.replace("int g(int n)", "int g(char n)"),
            vec![(1, Rebound)],
        ),
        (
            C,
            "src/a.c",
            Some(c),
            c.replace("return g", "fopen(\"a\", \"w\"); return g"),
            vec![(2, Effect)],
        ),
        (
            JavaScript,
            "a.js",
            Some(js),
            js.replace("f(n, m) {", "f(m, n) {"),
            vec![(2, Rebound)],
        ),
        (
            JavaScript,
            "a.js",
            Some(js),
            js.replace("console", "require('fs').writeFileSync('a', '');\nconsole"),
            vec![(3, Effect)],
        ),
        (
            Python,
            "a.py",
            Some(python),
            python.replace("f(n, m):", "f(m, n):"),
            vec![(4, Rebound)],
        ),
        (
            Python,
            "a.py",
            Some(python),
            format!("from math import floor as round\n{python}"),
            vec![(1, Rebound)],
        ),
        (
            Python,
            "a.py",
            Some(python),
            format!("from c import *\n{python}"),
            vec![(1, Rebound)],
        ),
        (
            Python,
            "a.py",
            Some(python),
            format!("from math import floor\n{python}"),
            vec![],
        ),
        (
            Go,
            "a/a.go",
            Some(go),
            go.replace("math/rand", "crypto/rand"),
            vec![(3, Rebound)],
        ),
        (
            Go,
            "a/a.go",
            Some(go),
            go.replace("n int", "n int8"),
            vec![(6, Rebound)],
        ),
        (
            Go,
            "a/a.go",
            Some(go),
            go.replace("package a", "package b"),
            vec![(1, NoOperator)],
        ),
    ] {
        assert_eq!(
            unjudged(language, path, old, &new),
            expected,
            "{path} {new}"
        );
    }
    for (language, path, old, at, acting) in [
        (C, "src/a.c", c, "return g", "posix_spawnp(0); return g"),
        (C, "src/a.c", c, "return g", "renameat2(0); return g"),
        (C, "src/a.c", c, "return g", "unlinkat(0); return g"),
        (C, "src/a.c", c, "return g", "execveat(0); return g"),
        (C, "src/a.c", c, "return g", "fexecve(0); return g"),
        (C, "src/a.c", c, "return g", "mkostemps(0); return g"),
        (C, "src/a.c", c, "return g", "fopen64(0); return g"),
        (C, "src/a.c", c, "return g", "symlinkat(0); return g"),
        (
            Go,
            "a/a.go",
            go,
            "return rand",
            "http.Get(\"a\"); return rand",
        ),
        (
            Go,
            "a/a.go",
            go,
            "return rand",
            "net.LookupHost(\"a\"); return rand",
        ),
        (
            Go,
            "a/a.go",
            go,
            "return rand",
            "d.DialContext(c); return rand",
        ),
        (
            JavaScript,
            "a.js",
            js,
            "console",
            "new fs.WriteStream('a');\nconsole",
        ),
        (
            JavaScript,
            "a.js",
            js,
            "console",
            "fs.lchownSync('a', 1, 1);\nconsole",
        ),
        (
            Python,
            "a.py",
            python,
            "print(",
            "zipfile.ZipFile(1)\nprint(",
        ),
        (
            Python,
            "a.py",
            python,
            "print(",
            "logging.FileHandler(1)\nprint(",
        ),
        (Python, "a.py", python, "print(", "os.replace(1, 2)\nprint("),
        (Python, "a.py", python, "print(", "os.spawnlp(1, 2)\nprint("),
        (
            Python,
            "a.py",
            python,
            "from a import b",
            "import urllib.request\nfrom a import b",
        ),
        (
            Python,
            "a.py",
            python,
            "from a import b",
            "from urllib import request as r",
        ),
    ] {
        let found = unjudged(language, path, Some(old), &old.replace(at, acting));
        assert!(found.iter().any(|(_, why)| *why == Effect), "{acting}");
    }
    // What an assertion does is gone where Python leaves it out.
    for (assertion, acts) in [
        ("assert b.pop(0) == n", true),
        ("assert (q := n) > 1", true),
        ("assert b(n)", true),
        ("assert isinstance(n, int) and n > 1", false),
        ("assert len(b.keys()) == max(n, m), 'a'", false),
    ] {
        let new = python.replace("    return", &format!("    {assertion}\n    return"));
        let found = unjudged(Python, "a.py", Some(python), &new);
        let named = found.iter().any(|(_, why)| *why == Silence::DebugOnly);
        assert_eq!(named, acts, "{assertion}");
    }
    let twin = c.replace("return g", "execute(format, at); return g");
    let found = unjudged(C, "src/a.c", Some(c), &twin);
    assert!(found.iter().all(|(_, why)| *why != Effect));
    let gone = captured(vec![change("src/a.c", Some(c.as_bytes()), None)]);
    let tree: Tree<'_> = std::iter::empty().collect();
    let (plan, _) = super::plan(&gone.changes, &tree, C, [1; 32]).unwrap();
    assert_eq!(plan.unjudged.first().unwrap().why, Removed);
}

#[test]
fn files_beside_the_language_are_what_they_are() {
    let classed = |language, path: &str, others: &[(&str, &str)]| {
        let change = change(path, Some(b"1\n"), Some(b"2\n"));
        let paths: Vec<RelPath> = others.iter().map(|(p, _)| p.parse().unwrap()).collect();
        let contents = others.iter().map(|(_, content)| content.as_bytes());
        let tree: Tree<'_> = paths.iter().zip(contents).collect();
        ChangedFile::all(&[change], &tree, Some(language))[0].whole_class()
    };
    use LineClass::{Data, Inert, NotCompiled, Unjudged};
    for (language, path, class) in [
        (Python, "README.md", Some(Inert)),
        (Python, "rates.csv", Some(Data)),
        (Python, "tests/test_a.py", Some(NotCompiled)),
        (Python, "run.sh", Some(NotCompiled)),
        (Python, "a.pyi", Some(NotCompiled)),
        (Python, "native.c", Some(NotCompiled)),
        (Python, "pyproject.toml", Some(NotCompiled)),
        (Python, "a/b.py", None),
        (C, "tools/a.c", Some(NotCompiled)),
        (C, "src/a.S", Some(NotCompiled)),
        (C, "Makefile", Some(NotCompiled)),
        (Go, "a/a_test.go", Some(NotCompiled)),
        (Go, "go.mod", Some(Unjudged)),
        (JavaScript, "rates.json", Some(Unjudged)),
        (JavaScript, "package.json", Some(Unjudged)),
        (JavaScript, "node_modules/a/a.js", Some(NotCompiled)),
    ] {
        assert_eq!(classed(language, path, &[]), class, "{path}");
    }
    let taken = [(
        "src/a.c",
        "static const char t[] = {\n#include \"rates.csv\"\n};\n",
    )];
    assert_eq!(classed(C, "rates.csv", &taken), Some(Unjudged));
    let taken = [("a.go", "package a\n\n//go:embed *\nvar t string\n")];
    assert_eq!(classed(Go, "rates.csv", &taken), Some(Unjudged));
}

#[test]
fn a_change_of_too_many_mutants_is_refused() {
    let lines: String = (0..200).map(|n| format!("print({n} + x)\n")).collect();
    assert_eq!(
        code_of(Python, "a.py", lines.as_bytes()),
        Some(CertifierCode::MutantsTooMany)
    );
}

/// Everything on one line is mutated like everything on many.
#[test]
fn a_file_of_one_line_hides_nothing() {
    let lines = "const f = (n) => {\n  if (n === 1337) { return 0; }\n  return n * 2;\n};\nconsole.log(f(3));\n";
    let one = lines.replace("\n", " ") + "\n";
    let made = |text: &str| {
        let ids = ids(JavaScript, "a.js", None, text);
        let mutants = ids.iter().filter_map(|id| id.split_once(' '));
        mutants
            .map(|(_, mutant)| mutant.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(made(lines), made(&one));
    assert!(made(&one).iter().any(|id| id.contains("1337 -> 1338")));
}
