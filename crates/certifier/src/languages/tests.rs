mod evasion;
mod hostile;
mod types;

use super::plan::Edited;
use super::syntax::Syntax;
use super::*;
use crate::classes::{ChangedFile, LineClass, classes};
use crate::mutation::{MutationPlan, Silence};
use crate::samples::{captured, change};
use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};
use Language::{C, Go, JavaScript, Python, TypeScript};

const ALL: [(Language, &str, &str); 5] = [
    (C, "src/a.c", C_TEXT),
    (Go, "cmd/a/main.go", GO_TEXT),
    (JavaScript, "a.js", JS_TEXT),
    (Python, "a.py", PYTHON_TEXT),
    // What has no types is the same in both.
    (TypeScript, "a.ts", JS_TEXT),
];

const C_TEXT: &str = r#"#include <stdio.h>
#include "price.h"

enum { UNIT = 250, FEE = 300 };
static const char *names[] = {"a b", "c\td", ""};

/* Reads a quantity. */
int main(void) {
  char line[32];
  for (int i = 0; i < 3; i++) {
    if (!fgets(line, sizeof line, stdin) || line[0] == 'x') continue;
    switch (line[0]) {
      case 'a': puts(names[0]); break;
      default: break;
    }
  }
  do { line[0]--; } while (line[0] > '0' && 1.5 < 2);
  return line[0] ? -1 : 0; // done
}
"#;
const GO_TEXT: &str = r#"package main

import (
	"fmt"
	"strings"
)

const Fee = 300

type Item struct {
	name string
}

// price is a comment.
func price(n int, names ...string) (int, error) {
	total := n * 250
	for i, name := range names {
		if strings.HasPrefix(name, "a b") && i > 0 {
			total += Fee
			continue
		}
	}
	switch {
	case total > 10:
		return total, nil
	default:
		return -1, fmt.Errorf("no %d", total)
	}
}

func main() { fmt.Println(price(3)) }
"#;
const JS_TEXT: &str = r#"#!/usr/bin/env node
'use strict';
const { round } = require('./lib/round');
/* A comment. */
class Basket {
  total = 0;
  add(price, count = 1) { this.total += price * count; return this; }
}
const full = (n) => n > 9 ? `many ${n} of them` : /a b+/.test(String.raw`x`) ? 1.5 : 2;
for (const x of [1, 2, 3]) { if (x === 2) continue; console.log(round(full(x)), !x); }
try { JSON.parse('{'); } catch (e) { console.log("bad json"); }
let i = 0
i++
module.exports = { Basket, full };
"#;
const PYTHON_TEXT: &str = r#""""A module."""

import sys
from math import floor as down


class Basket:
    """Holds prices."""

    def __init__(self, fee=300):
        self.fee = fee

    @property
    def total(self):
        # A comment.
        return down(self.fee) * 2


def price(n, *, names=()):
    if n < 10 and not names:
        return n * 250 + 300
    elif n in (1, 2):
        n -= 1
    for name in names:
        if name == "a b":
            continue
        print(f"{name} {n:>3} of them", file=sys.stderr)
    try:
        return int("\t1 2\n")
    except ValueError:
        pass
    while n > 0x10:
        n //= 2
    return None


if __name__ == "__main__":
    print(price(int(sys.stdin.readline())))
"#;

fn edit(path: &str, old: Option<&str>, new: &str) -> flightproof_evidence::Change {
    change(path, old.map(str::as_bytes), Some(new.as_bytes()))
}

/// Mutants, their texts, and the classes of the lines.
type Planned = (MutationPlan, Rewrites, Vec<(u32, LineClass)>);

/// The plan of one change in a tree of the changed file and others.
fn planned(
    language: Language,
    path: &str,
    old: Option<&str>,
    new: &str,
    others: &[(&str, &str)],
) -> Result<Planned, CertifierError> {
    let captured = captured(vec![edit(path, old, new)]);
    let mut files = others.to_vec();
    files.push((path, new));
    let paths: Vec<RelPath> = files.iter().map(|(p, _)| p.parse().unwrap()).collect();
    let contents = files.iter().map(|(_, content)| content.as_bytes());
    let tree: Tree<'_> = paths.iter().zip(contents).collect();
    let (plan, rewrites) = super::plan(&captured.changes, &tree, language, [7; 32])?;
    let changed = ChangedFile::all(&captured.changes, &tree, Some(language));
    let lines = classes(&changed, &plan);
    let lines = lines.into_iter().map(|l| (l.line, l.class)).collect();
    Ok((plan, rewrites, lines))
}

fn ids(language: Language, path: &str, old: Option<&str>, new: &str) -> Vec<String> {
    let (plan, _, _) = planned(language, path, old, new, &[]).unwrap();
    let start = format!("{path}:");
    let ids = plan
        .mutants
        .iter()
        .map(|m| m.id.trim_start_matches(&start).to_owned());
    ids.collect()
}

fn unjudged(language: Language, path: &str, old: Option<&str>, new: &str) -> Vec<(u32, Silence)> {
    let (plan, _, _) = planned(language, path, old, new, &[]).unwrap();
    plan.unjudged.iter().map(|u| (u.line, u.why)).collect()
}

fn code_of(language: Language, path: &str, new: &[u8]) -> Option<CertifierCode> {
    let captured = captured(vec![change(path, None, Some(new))]);
    let tree: Tree<'_> = std::iter::empty().collect();
    let planned = super::plan(&captured.changes, &tree, language, [7; 32]).map(|_| ());
    planned.err().map(|refused| refused.code)
}

fn fenced(language: Language, path: &str, old: Option<&str>, new: &str) -> Option<CertifierCode> {
    let captured = captured(vec![edit(path, old, new)]);
    fence(&captured, language).err().map(|refused| refused.code)
}

/// Oracle: where no token differs, the two texts have the same characters outside of white space and
/// comments, in the same order.
#[test]
fn whoever_changes_a_byte_that_is_no_white_space_or_comment_changes_a_token() {
    for (language, path, text) in ALL {
        let path: RelPath = path.parse().unwrap();
        let whole = Syntax::of(language, &path, text.as_bytes()).unwrap();
        let comments: Vec<_> = whole
            .nodes
            .iter()
            .filter(|node| syntax::is_comment(node.kind))
            .map(|node| node.range.clone())
            .collect();
        let mut compared = 0;
        for at in 0..text.len() {
            let byte = text.as_bytes()[at];
            let blank = byte.is_ascii_whitespace();
            // Every place once, with one of four: what a grammar takes differs from place to place.
            let other = [b'7', b'q', b' ', b'+'][at % 4];
            if byte == other || comments.iter().any(|range| range.contains(&at)) {
                continue;
            }
            let mut changed = text.as_bytes().to_vec();
            changed[at] = other;
            let change = change(path.as_str(), Some(text.as_bytes()), Some(&changed));
            let Ok(Some(edited)) = Edited::of(language, &change) else {
                continue;
            };
            compared += 1;
            let touched = &edited.touched;
            let seen = !touched.edited.is_empty() || !touched.beside.is_empty();
            assert!(
                seen || blank && other == b' ',
                "{path}:{at} {:?}",
                char::from(other)
            );
        }
        assert!(compared > 80, "{path}: {compared}");
    }
}

#[test]
fn white_space_inside_a_text_counts_and_outside_of_one_it_does_not() {
    for (language, path, text) in ALL {
        let spaced = text.replace("a b", "a  b");
        assert_ne!(text, spaced);
        assert!(
            !ids(language, path, Some(text), &spaced).is_empty(),
            "{path}"
        );
    }
    for (language, path, from, to) in [
        (C, "src/a.c", "i < 3", "i   <\n 3"),
        (Go, "cmd/a/main.go", "n * 250", "n *\n\t\t250"),
        (JavaScript, "a.js", "price * count", "price\n * count"),
        (
            Python,
            "a.py",
            "n * 250 + 300",
            "(\n            n * 250 + 300)",
        ),
        (Python, "a.py", "        n -= 1", "          n -= 1"),
    ] {
        let text = ALL.iter().find(|(l, _, _)| *l == language).unwrap().2;
        let spaced = text.replace(from, to);
        assert_ne!(text, spaced);
        let (plan, _, lines) = planned(language, path, Some(text), &spaced, &[]).unwrap();
        let brackets = to.contains('(');
        assert_eq!(plan.mutants.is_empty(), !brackets, "{path} {to}");
        let inert = lines.iter().all(|(_, class)| *class == LineClass::Inert);
        assert_eq!(inert, !brackets, "{path} {to}");
    }
    // In these a line's end is the end of a statement.
    let js = "const f = (x) => { return x; };\n";
    assert!(
        !ids(
            JavaScript,
            "a.js",
            Some(js),
            &js.replace("return x", "return\nx")
        )
        .is_empty()
    );
    let python = "def f(x):\n    if x:\n        g()\n    h()\n";
    let moved = python.replace("    h()", "        h()");
    assert!(!ids(Python, "a.py", Some(python), &moved).is_empty());
}

#[test]
fn comments_and_documentation_are_inert() {
    for (language, path, text) in ALL {
        let more = text
            .replace("A comment", "Another comment")
            .replace("Reads a", "Takes a");
        let more = more
            .replace("price is a comment", "price is another")
            .replace("// done", "");
        assert_ne!(text, more);
        let (plan, rewrites, lines) = planned(language, path, Some(text), &more, &[]).unwrap();
        assert!(plan.is_vacuous() && rewrites.canaries() == 0, "{path}");
        assert!(
            !lines.is_empty() && lines.iter().all(|(_, c)| *c == LineClass::Inert),
            "{path}"
        );
    }
    let documented = PYTHON_TEXT.replace("Holds prices", "Held prices");
    assert_eq!(ids(Python, "a.py", Some(PYTHON_TEXT), &documented), [""; 0]);
    assert_eq!(unjudged(Python, "a.py", Some(PYTHON_TEXT), &documented), []);
    // Unless something reads it.
    let help = [("help.py", "import a\nprint(a.__doc__)\n")];
    let (plan, _, _) = planned(Python, "a.py", Some(PYTHON_TEXT), &documented, &help).unwrap();
    assert_eq!(plan.unjudged.len(), 1);
}

#[test]
fn a_remainder_becomes_what_it_is_of() {
    for (language, path, text) in [
        (C, "src/a.c", "int f(int n) {\n  return n % 7;\n}\n"),
        (Python, "a.py", "def f(n):\n  return n % 7\n"),
        (JavaScript, "a.js", "function f(n) {\n  return n % 7;\n}\n"),
        (
            TypeScript,
            "a.ts",
            "function f(n: number) {\n  return n % 7;\n}\n",
        ),
        (
            Go,
            "a.go",
            "package a\n\nfunc f(n int) int {\n\treturn n % 7\n}\n",
        ),
    ] {
        let ids = ids(language, path, None, text);
        let whole = ids.iter().any(|id| id.ends_with("arithmetic n % 7 -> (n)"));
        assert!(whole, "{ids:#?}");
    }
}

#[test]
fn an_assignment_whose_value_is_used_becomes_what_it_assigns_to() {
    for (language, path, text) in [
        (C, "src/a.c", "int f(int n) {\n  return (n %= 7);\n}\n"),
        (
            C,
            "src/a.c",
            "int f(int n) {\n  for (;; n %= 7) {\n    if (n > 3) return n;\n  }\n}\n",
        ),
        (
            JavaScript,
            "a.js",
            "function f(n) {\n  return (n %= 7) * 2;\n}\n",
        ),
        (
            TypeScript,
            "a.ts",
            "function f(n: number) {\n  return (n %= 7) * 2;\n}\n",
        ),
    ] {
        let ids = ids(language, path, None, text);
        let left = ids.iter().any(|id| id.ends_with("compound n %= 7 -> (n)"));
        assert!(left, "{ids:#?}");
    }
    let alone = ids(
        C,
        "src/a.c",
        None,
        "int f(int n) {\n  n %= 7;\n  return n;\n}\n",
    );
    assert!(!alone.iter().any(|id| id.ends_with("-> (n)")), "{alone:#?}");
}

#[test]
fn the_mutants_of_c() {
    let old = "int f(int n) {\n  return n;\n}\n";
    let new = "int f(int n) {\n  if (n > 9 && !g(n)) n += 3;\n  return n * 2UL;\n}\n";
    insta::assert_snapshot!(ids(C, "src/a.c", Some(old), new).join("\n"), @r#"
    1:15 function-value nothing -> return 0;
    2:7 condition n > 9 && !g(n) -> ((n > 9 && !g(n)) || 1)
    2:7 condition n > 9 && !g(n) -> ((n > 9 && !g(n)) && 0)
    2:13 logical && -> ||
    2:7 logical n > 9 && !g(n) -> (n > 9)
    2:7 logical n > 9 && !g(n) -> (!g(n))
    2:9 relational > -> >=
    2:9 relational > -> <=
    2:11 integer-literal 9 -> 10
    2:11 integer-literal 9 -> 8
    2:16 unary-delete !g(n) -> (g(n))
    2:23 statement-delete n += 3; -> ;
    2:25 compound += -> -=
    2:28 integer-literal 3 -> 4
    2:28 integer-literal 3 -> 2
    3:10 return-value n * 2UL -> 0
    3:12 arithmetic * -> /
    3:14 integer-literal 2UL -> 3UL
    3:14 integer-literal 2UL -> 1UL
    "#);
}

#[test]
fn the_mutants_of_go() {
    let old = "package a\n\nfunc f(n int) int {\n\treturn n\n}\n";
    let new = "package a\n\nfunc f(n int) int {\n\tfor n > 9 {\n\t\tn--\n\t}\n\tdefer g(n)\n\treturn n + 2\n}\n";
    insta::assert_snapshot!(ids(Go, "a/a.go", Some(old), new).join("\n"), @r#"
    3:20 function-value nothing -> return *new(int);
    4:6 condition n > 9 -> ((n > 9) && false)
    4:8 relational > -> >=
    4:8 relational > -> <=
    4:10 integer-literal 9 -> 10
    4:10 integer-literal 9 -> 8
    5:3 statement-delete n-- -> {}
    7:2 statement-delete defer g(n) -> {}
    8:11 arithmetic + -> -
    8:13 integer-literal 2 -> 3
    8:13 integer-literal 2 -> 1
    "#);
}

#[test]
fn the_mutants_of_javascript() {
    let old = "const f = (n) => {\n  return n;\n};\n";
    let new = "const f = (n) => {\n  for (const x of n) { if (x === 'a') break; }\n  switch (n) { case 1: g(); }\n  const m = h(n) ?? true;\n  return `x${m}`;\n};\n";
    insta::assert_snapshot!(ids(JavaScript, "a.js", Some(old), new).join("\n"), @r#"
    1:19 function-value nothing -> return undefined;
    2:19 condition n -> []
    2:28 condition x === 'a' -> ((x === 'a') || true)
    2:28 condition x === 'a' -> ((x === 'a') && false)
    2:30 equality === -> !==
    2:34 string-literal 'a' -> ""
    2:39 statement-delete break; -> ;
    2:39 jump break; -> continue;
    3:23 branch nothing -> process.exit(113);
    3:21 integer-literal 1 -> 2
    3:21 integer-literal 1 -> 0
    3:24 statement-delete g(); -> ;
    4:18 logical ?? -> &&
    4:13 logical h(n) ?? true -> (h(n))
    4:13 logical h(n) ?? true -> (true)
    4:21 bool-literal true -> false
    5:10 return-value `x${m}` -> undefined
    5:10 string-literal `x${m}` -> ""
    "#);
}

#[test]
fn the_mutants_of_python() {
    let old = "def f(n):\n    return n\n";
    let new = "from b import g\n\n\ndef f(n):\n    if n in (1, 2) or not g(n):\n        raise ValueError(\"x\")\n    m = g(n)\n    try:\n        m -= 1.5\n    except KeyError:\n        pass\n    return [x for x in m if x]\n";
    insta::assert_snapshot!(ids(Python, "a.py", Some(old), new).join("\n"), @r#"
    1:1 statement-delete from b import g -> pass
    5:5 function-value if n in (1, 2) or not g(n): raise ValueError("x") m = g(n) t… (61 bytes more) -> return None
    5:8 condition n in (1, 2) or not g(n) -> ((n in (1, 2) or not g(n)) or True)
    5:8 condition n in (1, 2) or not g(n) -> ((n in (1, 2) or not g(n)) and False)
    5:20 logical or -> and
    5:8 logical n in (1, 2) or not g(n) -> (n in (1, 2))
    5:8 logical n in (1, 2) or not g(n) -> (not g(n))
    5:10 equality in -> not in
    5:14 integer-literal 1 -> 2
    5:14 integer-literal 1 -> 0
    5:17 integer-literal 2 -> 3
    5:17 integer-literal 2 -> 1
    5:23 unary-delete not g(n) -> (g(n))
    6:9 statement-delete raise ValueError("x") -> pass
    6:26 string-literal "x" -> ""
    7:5 statement-delete m = g(n) -> pass
    7:9 assigned-value g(n) -> None
    9:9 statement-delete m -= 1.5 -> pass
    9:11 compound -= -> +=
    9:14 plain-literal 1.5 -> 0.0
    9:14 plain-literal 1.5 -> 1.0
    9:14 plain-literal 1.5 -> 2.0
    11:9 branch nothing -> raise SystemExit(113);
    12:12 return-value [x for x in m if x] -> None
    12:29 condition x -> ((x) or True)
    12:29 condition x -> ((x) and False)
    "#);
}

/// What of a back door no case would tell is a mutant of its own.
#[test]
fn masks_sets_of_bits_lists_and_tables_have_a_mutant_for_each_piece() {
    for (language, path, text, expected) in [
        (
            Python,
            "a.py",
            "def f(q):\n    full = (q & 1023) * 250\n    return full\n",
            vec![
                "2:13 arithmetic q & 1023 -> (q)",
                "2:17 integer-literal 1023 -> 0x1ff",
                "2:17 integer-literal 1023 -> 0x7ff",
            ],
        ),
        (
            Python,
            "a.py",
            "SMALL = b\"\\x01\\xdf\"\ndef f(q):\n    return str(q) in \"1 133700 9\".split() or q in SMALL\n",
            vec![
                "1:9 string-literal b\"\\\\x01\\\\xdf\" -> without character 2, \"\\\\xdf\"",
                "3:22 string-literal \"1 133700 9\" -> without part 2, \"133700\"",
            ],
        ),
        (
            Python,
            "a.py",
            "def f(q):\n    return q * 0.9000009 if chr(q) in \"abz\" else q\n",
            vec![
                "2:16 plain-literal 0.9000009 -> 0.9",
                "2:39 string-literal \"abz\" -> without character 3, \"z\"",
            ],
        ),
        (
            Python,
            "a.py",
            "def f(q):\n    q &= 7\n    return str(q) in (\"1,2\"\n        \",133700\").split(',')\n",
            vec![
                "2:7 compound &= -> =",
                "2:10 integer-literal 7 -> 0x3",
                "3:23 string-literal \"1,2\" -> without part 2, \"2\"",
            ],
        ),
        (
            C,
            "src/a.c",
            "#include <string.h>\nint f(int q) {\n  if (0x8000000000000202UL >> q & 1) return 1;\n  if (memchr(\"\\x01\\xdf\", q, 2)) return 2;\n  return (q & 1023) * 250;\n}\n",
            vec![
                "3:7 integer-literal 0x8000000000000202UL -> 0x202UL",
                "3:7 arithmetic 0x8000000000000202UL >> q -> (0x8000000000000202UL)",
                "4:14 string-literal \"\\\\x01\\\\xdf\" -> without character 2, \"\\\\xdf\"",
                "5:11 arithmetic q & 1023 -> (q)",
            ],
        ),
        (
            JavaScript,
            "a.js",
            "const small = 'abz';\nconst f = (q) => \"1|133700\".split('|').includes(q) || small.includes(q) || (q >>> 3);\n",
            vec![
                "1:15 string-literal 'abz' -> without character 3, \"z\"",
                "2:18 string-literal \"1|133700\" -> without part 2, \"133700\"",
                "2:77 arithmetic q >>> 3 -> (q)",
            ],
        ),
        (
            Go,
            "a/a.go",
            "package main\n\nfunc f(q int) int {\n\tfor _, c := range \"\\x01\\u00df\" {\n\t\tif int(c) == q { return 1 }\n\t}\n\tq ^= 0b11\n\treturn (q &^ 5) * 250\n}\n",
            vec![
                "4:20 string-literal \"\\\\x01\\\\u00df\" -> without character 2, \"\\\\u00df\"",
                "7:4 compound ^= -> =",
                "7:7 integer-literal 0b11 -> 0x1",
                "8:10 arithmetic q &^ 5 -> (q)",
                "8:15 integer-literal 5 -> 0x1",
            ],
        ),
    ] {
        let found = ids(language, path, None, text);
        for id in expected {
            assert!(found.iter().any(|one| one == id), "{path} {id}: {found:#?}");
        }
    }
    // A distance is a plain number, and what is filled in has no parts.
    let plain = ids(
        Python,
        "a.py",
        None,
        "def f(q):\n    return q << 12, f\"{q} b c\"\n",
    );
    let odd = |id: &&String| id.contains("0x") || id.contains("without");
    assert_eq!(plain.iter().find(odd), None);
}
