//! TypeScript: what is nothing but types, and code that hides where types are looked for.

use super::*;
use crate::languages::types;

/// Without what is taken for types.
fn bare(text: &str) -> Option<String> {
    let path: RelPath = "a.ts".parse().unwrap();
    let syntax = Syntax::of(TypeScript, &path, text.as_bytes()).unwrap();
    types::bare(&syntax)
}

/// The classes of the lines that a change has, and how many mutants.
fn judged(old: &str, new: &str) -> (Vec<LineClass>, usize) {
    let (plan, _, lines) = planned(TypeScript, "a.ts", Some(old), new, &[]).unwrap();
    let classes = lines.into_iter().map(|(_, class)| class).collect();
    (classes, plan.mutants.len())
}

/// What Node 24 leaves of each, byte for byte.
const TAKEN_OFF: &[(&str, &str)] = &[
    (
        "const f = (x: number): number => x;",
        "const f = (x        )         => x;",
    ),
    ("f<string>(x)", "f        (x)"),
    ("const g = <T,>(x: T) => x;", "const g =     (x   ) => x;"),
    ("let x = y as any;", "let x = y       ;"),
    ("let x = y as const;", "let x = y         ;"),
    ("let x = y satisfies T", "let x = y            "),
    ("let x = y!", "let x = y "),
    ("let x!: number", "let x         "),
    ("x = `${x as any}`;", "x = `${x       }`;"),
    ("let x: { a: 1 } = { a: 2 }", "let x           = { a: 2 }"),
    (
        "let x: \"\u{e9}\u{65e5}\" = 1",
        "let x   \u{a0}\u{2002}  = 1",
    ),
    (
        "abstract class A { abstract m(): void; abstract x: number; n() {} }",
        "         class A {                                         n() {} }",
    ),
    (
        "class A { declare x: number; y?: string; z!: number; readonly w = 1; private v = 2; }",
        "class A {                    y         ; z         ;          w = 1;         v = 2; }",
    ),
    (
        "class A { [k: string]: any; f(): void; f() {} }",
        "class A {                              f() {} }",
    ),
    (
        "class A<T> extends B<T> implements C {}",
        "class A    extends B                 {}",
    ),
    (
        "import type { A } from \"./a.ts\";",
        "                                ",
    ),
    (
        "export type { A };\nexport type B = 1;\nexport interface C {}",
        "                  \n                  \n                     ",
    ),
    (
        "function f(x: number): void; function f(x: any) { return x }",
        "                             function f(x     ) { return x }",
    ),
    ("declare const x: number;", "                        "),
    (
        "type T = `a${string}`;\ninterface A {\n  /* c */ x: 1; // d\n}",
        "                      \n             \n                    \n ",
    ),
    (
        "try { f() } catch (e: unknown) {}",
        "try { f() } catch (e         ) {}",
    ),
    ("new A<B>()", "new A   ()"),
    (
        "function f(a?: number, ...r: T[]): asserts a is number {}",
        "function f(a         , ...r     )                      {}",
    ),
];

#[test]
fn what_is_taken_for_types_is_what_node_takes_off() {
    for (text, left) in TAKEN_OFF {
        assert_eq!(bare(text).as_deref(), Some(*left), "{text}");
        assert_eq!(bare(left), None, "{left}");
    }
}

#[test]
fn a_change_of_nothing_but_types_is_inert_and_has_no_mutant() {
    let old = "type P = { n: 1 | 2 };\ninterface Q { f(x: number): string }\nfunction price(n: number): number {\n  return n * 2;\n}\nclass A<T> {\n  private n = 1;\n  f(x: T) { return x; }\n}\nconsole.log(price(3) as number);\n";
    for (from, to) in [
        ("1 | 2", "1 | 3 | 'x'"),
        ("f(x: number): string", "g(y: () => typeof eval): Function"),
        ("n: number): number", "n: string): asserts n is 'toString'"),
        ("(n: number)", "(n)"),
        ("private n", "readonly n"),
        ("x: T", "x?: T"),
        (
            "A<T>",
            "A<T extends object = { [k in keyof P]: P[k] }> implements Q",
        ),
        (" as number", ""),
        ("price(3) as number", "price(3)!"),
        ("price(3) as number", "price<7>(3) satisfies number"),
        (
            "type P",
            "declare const eval: Function;\nexport type R = import('fs').Stats;\ntype P",
        ),
        (
            "type P",
            "import type { String } from './types.ts';\ntype P",
        ),
        ("function price", "function price(n: 7): 8;\nfunction price"),
    ] {
        let new = old.replacen(from, to, 1);
        assert_ne!(old, new);
        let (classes, mutants) = judged(old, &new);
        assert!(
            classes.iter().all(|class| *class == LineClass::Inert),
            "{to}: {classes:?}"
        );
        assert_eq!(mutants, 0, "{to}");
        assert_eq!(fenced(TypeScript, "a.ts", Some(old), &new), None, "{to}");
        // It is built without them all the same.
        let (_, rewrites, _) = planned(TypeScript, "a.ts", Some(old), &new, &[]).unwrap();
        assert_eq!(rewrites.forms().len(), 3);
    }
}

/// Each begins, for one reader at least, as a type. None may come in as a line that changes nothing.
#[test]
fn code_where_types_are_looked_for_is_refused_or_must_be_mutated() {
    let old =
        "let type = 1;\nlet declare = 2;\nfunction f(x) {\n  return x;\n}\nlet A = f(1);\nf(A);\n";
    for hidden in [
        // A call in a type, a default, or a template of one.
        "type T = `a${f(9)}`;",
        "type T<U = f(9)> = U;",
        "let a: f(9) = 1;",
        "let a = f as f(9);",
        // A value behind a cast, or between two.
        "let a = (f(9)) as any;",
        "let a = f as any as number + f(9);",
        "let a = 1 as any, b = f(9);",
        "let a = { b: f(9) } satisfies {};",
        // Words that are names where a line ends.
        "type\nA = 9;",
        "declare\nlet a = f(9);",
        "let a = A\nas (f(9));",
        "let a = A\n!f(9);",
        "class C {\n  declare\n  x = f(9);\n}",
        "class C {\n  readonly\n  x = f(9);\n}",
        "abstract\nclass C {}",
        "interface\nA\n{}",
        // Blanks with the end of a line in them end a statement.
        "function g() {\n  return <\n  T>(x) => f(9);\n}",
        "let a = async <\nT>(x) => x;",
        // An arrow that looks like an argument of a type, and a comparison that looks like one.
        "let a = <T,>(x) => f(9);",
        "let a = f<T>(9);",
        "let a = f < (A) > (9);",
        "let a = A ? (f) : (c) => f(9);",
        "let a = A ? (f): c => f(9) : 1;",
        // What is no type for all that: it makes an object, or a field.
        "enum E { B = f(9) }",
        "namespace N { f(9); }",
        "module N { f(9); }",
        "class C { constructor(private x = f(9)) {} }",
        "class C { x: number = f(9); }",
        "class C { [f(9)]: number; }",
        "@f\nclass C {}",
        "class C { @f declare x: number; }",
        "import a = require('./b.ts');",
        "import a = f.b;",
        "import type from './b.ts';",
        "import type, { b } from './b.ts';",
        "import { type b } from './b.ts';",
        "import { type as as } from './b.ts';",
        "export = f(9);",
        "export default f(9);",
        "let a = <any>f(9);",
        "function g(x: number): void\n{ f(9) }",
        "function g(x: number = f(9)) { return x }",
        "label: f(9);",
        // A comment obeyed by a compiler of types is none that runs.
        "// @ts-ignore\nf(9);",
        "/** @type {any} */ f(9);",
        // The end of a block of types, and code on the line behind.
        "declare global { } f(9);",
        "interface I { a: 1 } f(9);",
        "type T = { a: 1 }; f(9);",
        "type T = 1 /* */; f(9);",
        "let b = <div>{f(9)}</div>;",
    ] {
        let new = format!("{hidden}\n{old}");
        let captured = captured(vec![edit("a.ts", Some(old), &new)]);
        if super::super::fence(&captured, TypeScript).is_err() {
            continue;
        }
        let (plan, _, lines) = planned(TypeScript, "a.ts", Some(old), &new, &[]).unwrap();
        let held = lines.iter().any(|(_, class)| *class != LineClass::Inert);
        assert!(
            held && (!plan.mutants.is_empty() || !plan.unjudged.is_empty()),
            "{hidden}: {lines:?}"
        );
    }
}

/// Taking a type away, or moving the end of its line, can join two statements.
#[test]
fn a_type_that_keeps_two_statements_apart_counts_as_code() {
    for (old, new) in [
        ("let x = y as any\n(z)\n", "let x = y\n(z)\n"),
        ("let x = y\n(z)\n", "let x = y as any\n(z)\n"),
        ("let x = y\ntype T = 1\n(z)\n", "let x = y\n(z)\n"),
        ("let x = y\n(z)\n", "let x = y\ninterface T {}\n(z)\n"),
        ("let f = <T>(x) => x;\n", "let f = <\nT>(x) => x;\n"),
        (
            "let f = (x): number => x;\n",
            "let f = (x):\nnumber => x;\n",
        ),
        ("a + b * c;\n", "a + b as number * c;\n"),
    ] {
        let Ok((plan, _, lines)) = planned(TypeScript, "a.ts", Some(old), new, &[]) else {
            continue;
        };
        let code = lines.iter().any(|(_, class)| *class != LineClass::Inert);
        assert!(code, "{old} {new} {:?}", plan.mutants);
    }
}

#[test]
fn the_mutants_of_typescript_are_those_of_javascript() {
    let old = "const f = (n: number): string => {\n  return n as any;\n};\n";
    let new = "const f = (n: number): string => {\n  for (const x of n as any) { if ((x as string) === 'a') break; }\n  const m: 1 | 'b' = h<2>(n)! ?? true;\n  return `x${m}` satisfies string;\n};\n";
    insta::assert_snapshot!(ids(TypeScript, "a.ts", Some(old), new).join("\n"), @r#"
    1:35 function-value nothing -> return undefined;
    2:19 condition n as any -> []
    2:35 condition (x as string) === 'a' -> (((x as string) === 'a') || true)
    2:35 condition (x as string) === 'a' -> (((x as string) === 'a') && false)
    2:49 equality === -> !==
    2:53 string-literal 'a' -> ""
    2:58 statement-delete break; -> ;
    2:58 jump break; -> continue;
    3:31 logical ?? -> &&
    3:22 logical h<2>(n)! ?? true -> (h<2>(n)!)
    3:22 logical h<2>(n)! ?? true -> (true)
    3:34 bool-literal true -> false
    4:10 return-value `x${m}` satisfies string -> undefined
    4:10 string-literal `x${m}` -> ""
    "#);
}

#[test]
fn the_fence_of_javascript_stands_around_typescript() {
    for line in [
        "const t = f.toString() as string;",
        "const t = (f as any)['toString']();",
        "const t: string = String(f);",
        "const t = eval('f') as number;",
        "const t = (f as any).constructor('return 1');",
        "const t = require('vm') satisfies object;",
        "const t = import('./a.ts');",
        "import t from './a.ts';",
        "const t = require(('child_' + 'process') as string);",
    ] {
        let js = line
            .replace(" as string", "")
            .replace(" as any", "")
            .replace(": string", "");
        let js = js
            .replace(" as number", "")
            .replace(" satisfies object", "");
        let code = fenced(TypeScript, "a.ts", None, line);
        assert!(code.is_some(), "{line}");
        if !js.starts_with("import t") {
            assert_eq!(code, fenced(JavaScript, "a.js", None, &js), "{line}");
        }
    }
    assert_eq!(
        fenced(
            TypeScript,
            "a.ts",
            None,
            "const { p } = require('./lib/p.ts');\n"
        ),
        None
    );
}

#[test]
fn what_the_build_of_typescript_leaves_out_is_not_compiled() {
    let classed = |path: &str| {
        let change = change(path, Some(b"1\n"), Some(b"2\n"));
        let tree: Tree<'_> = std::iter::empty().collect();
        ChangedFile::all(&[change], &tree, Some(TypeScript))[0].whole_class()
    };
    use LineClass::{NotCompiled, Unjudged};
    for (path, class) in [
        ("a.ts", None),
        ("a.cts", None),
        ("a.mts", None),
        ("A.TS", None),
        ("types.d.ts", Some(NotCompiled)),
        ("tests/a.ts", Some(NotCompiled)),
        ("a.tsx", Some(NotCompiled)),
        ("a.jsx", Some(NotCompiled)),
        ("a.js", Some(NotCompiled)),
        ("tsconfig.json", Some(Unjudged)),
    ] {
        assert_eq!(classed(path), class, "{path}");
    }
}

#[test]
fn a_class_of_nothing_but_ends_is_read_in_one_go() {
    let text = format!("class A {{ {} }}\n", "declare x: 1;;".repeat(20_000));
    let left = bare(&text).unwrap();
    assert_eq!(left.matches(';').count(), 20_000);
    assert_eq!(left.len(), text.len());
}
