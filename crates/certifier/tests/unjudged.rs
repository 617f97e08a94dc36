//! Changes that no mutant can judge: each is named and refused, its benign twin is not, and only
//! the witness's owner can accept one.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use flightproof_certifier::mutation::{
    Attribution, EditedFile, Fate, FileRole, Kill, MutationInput, MutationPlan, Purpose, Silence,
    Trial,
};
use flightproof_certifier::witness::Waiver;
use flightproof_core::{Bytes, Digest, RelPath};
use std::collections::{BTreeMap, BTreeSet};

/// What a file was, what it is, and what of it nothing judges.
type Attack<'a> = (&'a str, &'a str, &'a [&'a str]);

fn plan(old: Option<&str>, new: &str) -> MutationPlan {
    MutationPlan::new(edited(old, new)).unwrap()
}

fn edited(old: Option<&str>, new: &str) -> MutationInput {
    let known: BTreeSet<&str> = old.unwrap_or_default().lines().collect();
    let lines = (1..).zip(new.lines());
    let lines = lines.filter(|(_, text)| !known.contains(text));
    MutationInput {
        files: vec![EditedFile {
            path: RelPath::new("src/lib.rs").unwrap(),
            text: Bytes::from(new.as_bytes()),
            old: old.map(|old| Bytes::from(old.as_bytes())),
            lines: lines.map(|(number, _)| number).collect(),
            role: FileRole::Program,
            features: BTreeSet::new(),
        }],
        roots: BTreeMap::new(),
        beside: Vec::new(),
        seed: [3; 32],
        purpose: Purpose::Gate,
    }
}

fn unjudged(old: &str, new: &str) -> Vec<String> {
    let plan = plan(Some(old), new);
    plan.unjudged.iter().map(|place| place.id()).collect()
}

fn all_killed<'a>(plan: &'a MutationPlan, waivers: &'a [Waiver]) -> Trial<'a> {
    let killed = |index| (index, Fate::Killed(Kill::Value));
    Trial {
        plan,
        control: Fate::Survived,
        placebos: plan.placebos.iter().map(|p| (*p, Fate::Survived)).collect(),
        fates: plan.viable().map(killed).collect(),
        waivers,
        equivalent: BTreeSet::new(),
    }
}

fn each_is_named(attacks: &[Attack<'_>]) {
    for (old, new, expected) in attacks {
        assert_eq!(&unjudged(old, new), expected, "{new}");
    }
}

const FEE: &str = "fn fee(c: u64) -> u64 {\n    c / 10\n}\n";

#[test]
fn behaviour_in_constants_macros_and_patterns_of_several_choices_is_named() {
    each_is_named(&[
        (
            FEE,
            "static T: [u64; 1] = [133_700];\nfn fee(c: u64) -> u64 {\n    c / T[0]\n}\n",
            &["src/lib.rs:1 unjudged const-context"],
        ),
        (
            FEE,
            "const fn fee(c: u64) -> u64 {\n    if c == 7 { 0 } else { c }\n}\n",
            &["src/lib.rs:1 unjudged const-context"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    c % size_of::<[u8; 7]>() as u64\n}\n",
            &["src/lib.rs:2 unjudged const-context"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    cap::<Cap<7>>(c).all::<dyn T<A = [u8; 7]>>()\n}\n",
            &["src/lib.rs:2 unjudged const-context"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    println!(concat!(\"{:.\", 6, \"}\"), c);\n    c\n}\n",
            &["src/lib.rs:2 unjudged macro"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    println!(\"{:.\\u{36}}\", c);\n    c\n}\n",
            &["src/lib.rs:2 unjudged macro"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    println!(\"{c:.MOST$}\");\n    c\n}\n",
            &["src/lib.rs:2 unjudged macro"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    println!(\"{c:.N$}\");\n    c\n}\n",
            &["src/lib.rs:2 unjudged macro"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    println!(\"{c} US$ {c:>4} AU$\");\n    println!(concat!(\"a\\n\", \"b\"));\n    c\n}\n",
            &[],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    println!(\"{c:.w$}\\n{{\", w = wide());\n    write!(a::<b, c>(), \"{}\", c);\n    c\n}\n",
            &[],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    let k = const { 7 };\n    c + k\n}\n",
            &["src/lib.rs:2 unjudged const-context"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    cut::<7>(c)\n}\n",
            &["src/lib.rs:2 unjudged const-context"],
        ),
        (
            FEE,
            "enum E {\n    A = 7,\n}\n",
            &["src/lib.rs:2 unjudged const-context"],
        ),
        (
            FEE,
            "macro_rules! cut { ($x:expr) => { if $x == 7 { 0 } else { $x } } }\n",
            &["src/lib.rs:1 unjudged macro"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    strange!(c => 7)\n}\n",
            &["src/lib.rs:2 unjudged macro"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    match c {\n        1 | 133_700 => 0,\n        _ => c,\n    }\n}\n",
            &["src/lib.rs:3 unjudged pattern"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    match c {\n        1..=9 => 0,\n        _ => c,\n    }\n}\n",
            &["src/lib.rs:3 unjudged pattern"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    match c {\n        7 => panic!(),\n        _ => c,\n    }\n}\n",
            &["src/lib.rs:3 unjudged pattern"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> bool {\n    matches!(c, 1 | 133_700)\n}\n",
            &["src/lib.rs:2 unjudged pattern"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> bool {\n    matches!(c, n if n.is_power_of_two())\n}\n",
            &["src/lib.rs:2 unjudged pattern"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    if let 7 = c {\n        panic!()\n    }\n    c / 10\n}\n",
            &["src/lib.rs:2 unjudged pattern"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> bool {\n    matches!(c, 7)\n}\n",
            &[],
        ),
        // The twins: one choice whose branch has a mutant, and a value that is mutated where it stands.
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    match c {\n        7 => 0,\n        _ => c,\n    }\n}\n",
            &[],
        ),
        (FEE, "fn fee(c: u64) -> u64 {\n    c / 12\n}\n", &[]),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    strings::<u8>(vec![c; 3])\n}\n",
            &[],
        ),
    ]);
}

#[test]
fn a_debug_assertion_that_does_something_is_named_and_one_that_compares_is_not() {
    each_is_named(&[
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    debug_assert!({ c = 7; true });\n    c\n}\n",
            &["src/lib.rs:2 unjudged debug-only"],
        ),
        (
            FEE,
            "fn fee(v: V) -> u64 {\n    debug_assert!(v.pop().is_some());\n    v.n\n}\n",
            &["src/lib.rs:2 unjudged debug-only"],
        ),
        (
            FEE,
            "fn fee(v: V) -> u64 {\n    debug_assert!(v.len() < 7, \"too long\");\n    v.n\n}\n",
            &[],
        ),
    ]);
}

#[test]
fn a_declaration_that_gives_unchanged_lines_another_meaning_is_named() {
    let used = "use a::min;\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\n";
    let kinds = "trait K { fn ok(&self) -> bool { true } }\nimpl K for u8 {\n    fn ok(&self) -> bool { false }\n    fn no(&self) {}\n}\n";
    let order = "#[derive(PartialEq, PartialOrd)]\nstruct P {\n    a: u8,\n    b: u8,\n}\n";
    let plain = "#[derive(Debug)]\nstruct P {\n    a: u8,\n    b: u8,\n}\n";
    each_is_named(&[
        (
            used,
            "use a::max as min;\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\n",
            &["src/lib.rs:1 unjudged rebound"],
        ),
        (
            used,
            "use a::min;\nuse core::primitive::u32 as u64;\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\n",
            &["src/lib.rs:2 unjudged rebound"],
        ),
        (
            used,
            "use a::min;\ntype u64 = u32;\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\n",
            &["src/lib.rs:2 unjudged rebound"],
        ),
        (
            used,
            "use a::min;\nuse b::*;\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\n",
            &["src/lib.rs:2 unjudged rebound"],
        ),
        (
            used,
            "use b::assert;\nuse a::min;\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\n",
            &["src/lib.rs:1 unjudged rebound"],
        ),
        (
            kinds,
            "trait K { fn ok(&self) -> bool { true } }\nimpl K for u8 {\n    fn no(&self) {}\n}\n",
            &["src/lib.rs:1 unjudged removed"],
        ),
        (
            order,
            "#[derive(PartialEq, PartialOrd)]\nstruct P {\n    b: u8,\n    a: u8,\n}\n",
            &["src/lib.rs:1 unjudged rebound"],
        ),
        (
            used,
            "use a::min;\nfn fee(c: u64) -> u64 {\n    use a::max as min;\n    min(c, 10)\n}\n",
            &["src/lib.rs:3 unjudged rebound"],
        ),
        // The twins: imported for changed lines alone, regrouped, and an order that means nothing.
        (
            used,
            "use a::{min, max};\nfn fee(c: u64) -> u64 {\n    min(c, 10)\n}\nfn top(c: u64) -> u64 {\n    max(c, 11)\n}\n",
            &[],
        ),
        (
            kinds,
            "trait K { fn ok(&self) -> bool { true } }\nimpl K for u8 {\n    fn ok(&self) -> bool { false }\n    fn no(&self) {}\n    fn on(&self) {}\n}\n",
            &[],
        ),
        (
            plain,
            "#[derive(Debug)]\nstruct P {\n    b: u8,\n    c: u8,\n}\n",
            &[],
        ),
    ]);
}

#[test]
fn a_declaration_whose_parts_mean_something_else_is_named() {
    let own = "struct O {\n    n: u64,\n}\nfn f(o: &O) -> u64 {\n    o.n\n}\n";
    let kinds = "enum K {\n    A,\n    B,\n}\nfn f(k: K) -> u8 {\n    k as u8\n}\n";
    let shop = "impl S for O {\n    type A = u64;\n    const P: u8 = 9;\n}\n";
    let takes = "trait T { fn p(&self) {} }\nstruct O;\nfn f(o: O) {\n    o.p()\n}\n";
    let gives = "fn g() -> u64 {\n    h()\n}\nfn f() -> u64 {\n    g().into()\n}\n";
    let rebound = |line: u32| format!("src/lib.rs:{line} unjudged rebound");
    let constant = |line: u32| format!("src/lib.rs:{line} unjudged const-context");
    let named = |old: &str, from: &str, to: &str| unjudged(old, &old.replacen(from, to, 1));
    assert_eq!(named(own, "n: u64", "n: u16"), [rebound(2)]);
    let swapped = named(kinds, "    A,\n    B,", "    B,\n    A,");
    assert_eq!(swapped, [rebound(2), rebound(3)]);
    assert_eq!(named(shop, "type A = u64", "type A = u8"), [rebound(2)]);
    assert_eq!(
        named(shop, "    const P: u8 = 9;\n", ""),
        ["src/lib.rs:1 unjudged removed"]
    );
    assert_eq!(named(takes, "fn f", "impl T for O {}\nfn f"), [rebound(3)]);
    assert_eq!(named(gives, "fn g() -> u64", "fn g() -> u16"), [rebound(1)]);
    let table = own.replace("n: u64", "n: [u64; 16]");
    assert_eq!(named(&table, "16", "3"), [constant(2), rebound(2)]);
    let limit = FEE.replace("c / 10", "let l: L<0> = L;\n    l.cut(c)");
    assert_eq!(named(&limit, "L<0>", "L<7>"), [constant(2)]);
    let module = format!("mod said;\n{FEE}");
    assert_eq!(
        named(&module, "mod said", "#[macro_use]\nmod said"),
        ["src/lib.rs:1 unjudged attribute"]
    );
    // The twins: what is new, and what nothing tells apart.
    let none: [&str; 0] = [];
    assert_eq!(named(own, "n: u64,\n", "n: u64,\n    m: u16,\n"), none);
    assert_eq!(named(kinds, "B,\n", "B,\n    C,\n"), none);
    assert_eq!(
        named(takes, "fn f", "struct N;\nimpl T for N {}\nfn f"),
        none
    );
    assert_eq!(
        named(&module, "mod said", "#[cfg(test)]\nmod tests;\nmod said"),
        none
    );
}

#[test]
fn documentation_that_a_macro_may_read_is_named() {
    let rates = "rates! {\n    /// 90\n    gold,\n}\n";
    let parsed = "#[derive(Debug, Parser)]\nstruct A {\n    /// One.\n    a: u8,\n}\n";
    let plain = parsed.replace(", Parser", "");
    let named = |old: &str, from: &str, to: &str| unjudged(old, &old.replacen(from, to, 1));
    assert_eq!(named(rates, "90", "0"), ["src/lib.rs:2 unjudged macro"]);
    assert_eq!(named(parsed, "One", "Two"), ["src/lib.rs:3 unjudged macro"]);
    assert_eq!(named(&plain, "One", "Two"), [""; 0]);
}

#[test]
fn an_attribute_that_may_decide_what_is_compiled_is_named() {
    each_is_named(&[
        (
            FEE,
            "#[evil::rewrite]\nfn fee(c: u64) -> u64 {\n    c / 10\n}\n",
            &["src/lib.rs:1 unjudged attribute"],
        ),
        (
            "",
            "struct S {\n    #[serde(default = \"x\")]\n    a: u8,\n}\n",
            &["src/lib.rs:2 unjudged attribute"],
        ),
        ("", "#![feature(x)]\n", &["src/lib.rs:1 unjudged attribute"]),
        (
            FEE,
            "/// Says so.\n#[must_use]\n#[allow(unused)]\nfn fee(c: u64) -> u64 {\n    c / 10\n}\n",
            &[],
        ),
    ]);
}

#[test]
fn a_check_that_is_moved_to_the_tests_is_named() {
    let checked = "fn fee(c: u64) -> u64 {\n    check(c);\n    c / 10\n}\n";
    let ruled = "impl K for u8 {\n    fn ok(&self) -> bool { false }\n    fn no(&self) {}\n}\n";
    each_is_named(&[
        (
            checked,
            "fn fee(c: u64) -> u64 {\n    #[cfg(test)]\n    check(c);\n    c / 10\n}\n",
            &["src/lib.rs:2 unjudged attribute"],
        ),
        (
            ruled,
            "impl K for u8 {\n    #[cfg(test)]\n    fn ok(&self) -> bool { false }\n    fn no(&self) {}\n}\n",
            &["src/lib.rs:1 unjudged removed"],
        ),
        // The twins: what was always for tests only.
        (
            checked,
            "#[cfg(test)]\nuse std::fs;\n#[cfg(test)]\nconst A: u8 = 7;\nfn fee(c: u64) -> u64 {\n    check(c);\n    c / 10\n}\n#[cfg(test)]\nmod tests {\n    const B: u8 = 7;\n}\n",
            &[],
        ),
    ]);
}

#[test]
fn an_attribute_is_named_before_any_kind_of_element() {
    let list = |element: &str| format!("fn f(a: u8) {{\n    g({element});\n    h(a);\n}}\n");
    for element in [
        "[\n\"a\",\n@\"b\",\n]",
        "[\n@r(\"b\").expect(\"a rule\"),\n]",
        "vec![\n1,\n@-5_i64,\n]",
        "[\n@5 as u8,\n]",
        "[\n@[0; 4],\n]",
        "[\n@!true,\n]",
        "[\n@b'x',\n]",
        "&\n@a,\n2",
        "S {\n@a: 1,\nb: 2,\n}",
        "match a {\n@1 => 2,\n_ => 3,\n}",
        "|\n@a: u8,\nb: u8| 1",
        "(1,\n@2)",
        "{\n@i();\n1\n}",
    ] {
        for attribute in ["#[cfg(test)]\n", "#[evil::rewrite]\n"] {
            let old = list(&element.replace('@', ""));
            let new = list(&element.replace('@', attribute));
            let line = new.lines().position(|line| line.starts_with("#["));
            let place = format!("src/lib.rs:{} unjudged attribute", line.unwrap() + 1);
            assert!(unjudged(&old, &new).contains(&place), "{new}");
        }
        let old = list(&element.replace('@', ""));
        let new = list(&element.replace('@', "#[allow(unused)]\n"));
        let found = unjudged(&old, &new);
        assert!(
            !found.iter().any(|id| id.contains("attribute")),
            "{found:?}"
        );
    }
}

#[test]
fn an_effect_that_no_case_compares_is_named_wherever_it_stands() {
    each_is_named(&[
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    let (a, _b) = (c, std::fs::remove_file(\"x\"));\n    a / 10\n}\n",
            &["src/lib.rs:2 unjudged effect"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    first(c, fs::write(\"x\", \"y\").is_ok())\n}\n",
            &["src/lib.rs:2 unjudged effect"],
        ),
        (
            FEE,
            "use std::process::Command as C;\nfn fee(c: u64) -> u64 {\n    first(c, C::new(\"x\"))\n}\n",
            &["src/lib.rs:1 unjudged effect"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    first(c, std::process::r#Command::new(\"x\"))\n}\n",
            &["src/lib.rs:2 unjudged effect"],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    first(c, File::options().append(true))\n}\n",
            &["src/lib.rs:2 unjudged effect"],
        ),
        (
            FEE,
            "use std::fs as sheet;\nuse std::fs::File as Sheet;\nuse std::fs::{self as page};\nuse std::net::ToSocketAddrs;\nuse std::fs::*;\nfn fee(c: u64) -> u64 {\n    first(c, sheet::write(\"x\", \"y\"))\n}\n",
            &[
                "src/lib.rs:1 unjudged effect",
                "src/lib.rs:2 unjudged effect",
                "src/lib.rs:3 unjudged effect",
                "src/lib.rs:4 unjudged effect",
                "src/lib.rs:5 unjudged rebound",
                "src/lib.rs:5 unjudged effect",
            ],
        ),
        (
            FEE,
            "type Sheet = std::fs::File;\nfn fee(c: u64) -> u64 {\n    first(c, <std::fs::File>::create(\"x\"))\n}\n",
            &[
                "src/lib.rs:1 unjudged effect",
                "src/lib.rs:3 unjudged effect",
            ],
        ),
        (
            FEE,
            "use std::fs;\nuse std::fs::File;\nfn fee(c: u64) -> u64 {\n    first(c, File::open(\"x\"))\n}\n",
            &[],
        ),
        (
            FEE,
            "fn fee(c: u64) -> u64 {\n    let text = std::fs::read_to_string(\"x\");\n    ptr::write(text, c)\n}\n",
            &[],
        ),
    ]);
}

#[test]
fn acting_methods_and_types_are_named_and_names_of_the_programs_own_are_not() {
    let named = |text: &str| {
        let plan = plan(None, text);
        let all = plan.unjudged.iter().map(|place| place.why);
        all.filter(|why| *why == Silence::Effect).count()
    };
    for acting in [
        "fn f() {\n    std::fs::DirBuilder::new().create(\"x\");\n}\n",
        "impl S for std::fs::File {\n    fn s() {\n        Self::create(\"x\");\n    }\n}\n",
        "fn f(own: F) {\n    own.set_modified(now());\n}\n",
        "fn f(at: String) {\n    at.to_socket_addrs();\n}\n",
        "fn f(a: std::fs::File) {\n    std::fs::File::set_len(&a, 0);\n}\n",
        "fn f(a: &str) {\n    std::net::ToSocketAddrs::to_socket_addrs(a);\n}\n",
        "use std::os::unix::fs::FileExt;\nfn f(a: F) {\n    FileExt::write_all_at(&a, b, 0);\n}\n",
        "use std::net::*;\n",
        "use std::process::*;\n",
        "use std::{process as p};\n",
        "extern crate std as s;\n",
        "fn f() {\n    Command::new(\"x\");\n}\n",
        "use std::process::Command;\n",
        "use a::*;\nenum Command {}\nfn f() {\n    Command::new(\"x\");\n}\n",
        "mod a {\n    enum Command {}\n}\nuse b::Command;\n",
    ] {
        assert!(named(acting) > 0, "{acting}");
    }
    for own in [
        "enum Command {\n    Price(u8),\n}\nfn f() -> Command {\n    Command::Price(g())\n}\n",
        "mod cli;\nfn f() {\n    g(cli::Command::Price);\n}\n",
        "use crate::cli::Command;\nfn f() {\n    g(Command::Price);\n}\n",
        "struct F;\nimpl F {\n    fn set_len(&self) {\n        g();\n    }\n}\nfn f(a: F) {\n    a.set_len();\n}\n",
        "use std::io::{self, Read};\nuse std::process::ExitCode;\n",
    ] {
        assert_eq!(named(own), 0, "{own}");
    }
}

#[test]
fn a_macro_under_the_name_of_another_is_named_in_a_new_file_too() {
    let named = |text: &str| -> Vec<String> {
        let plan = plan(None, text);
        plan.unjudged.iter().map(|place| place.id()).collect()
    };
    let place = ["src/lib.rs:1 unjudged rebound"];
    assert_eq!(named("use std::matches as assert;\n"), place);
    assert_eq!(named("use evil::println;\n"), place);
    assert_eq!(named("use std::format;\n"), [""; 0]);
}

#[test]
fn choices_known_by_name_have_mutants_as_calls_of_any_kind() {
    let named = |text: &str| ids("", &format!("fn f(q: u64) -> u64 {{\n{text}\n}}\n"));
    for (text, wanted) in [
        ("min(q, MOST)", "2:1 min min(q, MOST) -> left operand"),
        ("min(q, MOST)", "2:1 min min(q, MOST) -> right operand"),
        ("Ord::max(q, MOST)", "-> left operand"),
        ("q.clamp(u64::default(), MOST)", "-> left operand"),
        ("bool::then_some(by_mail(q), p)", "by_mail(q) -> false"),
        ("bool::then_some(by_mail(q), p)", "-> nothing"),
        (
            "by_mail(q).then_some(p)",
            "2:1 condition by_mail(q) -> true",
        ),
        ("(LEAST..MOST).contains(&q)", "relational .. -> ..="),
        ("(LEAST..=MOST).contains(&q)", "relational ..= -> .."),
        (
            "(LEAST..MOST).contains(&q)",
            "relational .. -> start one more",
        ),
        (
            "println!(\"{:.6}\", q)",
            "integer-literal \"{:.6}\" -> \"{:.5}\"",
        ),
        (
            "write!(w, \"{:>8}\", q)?;",
            "integer-literal \"{:>8}\" -> \"{:>9}\"",
        ),
        ("q.expect(133_700)", "integer-literal 133_700 -> 133701"),
        (
            "eprintln!(\"{q}\");",
            "statement-delete eprintln!(\"{q}\") -> nothing",
        ),
    ] {
        let ids = named(text);
        let wanted = wanted.trim_start_matches("2:1 min min(q, MOST) ");
        assert!(
            ids.iter().any(|id| id.contains(wanted)),
            "{wanted} in {ids:#?}"
        );
    }
    let told = named("q.expect(\"a number\")");
    assert!(!told.iter().any(|id| id.contains("literal")), "{told:#?}");
    let own = ids(
        "",
        "trait A {\n    fn expect(self, a: &str);\n}\nfn f(q: u64) {\n    q.expect(\"7\");\n}\n",
    );
    assert!(
        own.iter().any(|id| id.contains("string-literal")),
        "{own:#?}"
    );
}

#[test]
fn a_function_that_takes_a_traits_calls_over_and_an_order_that_a_derive_tells_are_named() {
    let old = "trait P {\n    fn price(&self) -> u64;\n}\nimpl P for O {\n    fn price(&self) -> u64 {\n        self.0 * 3\n    }\n}\nfn f(o: O) -> u64 {\n    o.price()\n}\n";
    let own = |name: &str| {
        format!("{old}impl O {{\n    fn {name}(&self) -> u64 {{\n        self.0 * 4\n    }}\n}}\n")
    };
    assert_eq!(
        unjudged(old, &own("price")),
        ["src/lib.rs:12 unjudged rebound"]
    );
    assert_eq!(unjudged(old, &own("total")), [""; 0]);
    let order =
        "#[derive(Debug)]\nstruct P {\n    a: u8,\n    b: u8,\n}\nfn f(p: P) {\n    g(p);\n}\n";
    let ab = "    a: u8,\n    b: u8,\n";
    let turned = unjudged(order, &order.replace(ab, "    b: u8,\n    a: u8,\n"));
    assert_eq!(turned.len(), 1, "{turned:?}");
    let more = order.replace(ab, "    a: u8,\n    c: u8,\n    b: u8,\n");
    assert_eq!(unjudged(order, &more), [""; 0]);
    let silent = order.replace("#[derive(Debug)]\n", "");
    let turned = unjudged(&silent, &silent.replace(ab, "    b: u8,\n    a: u8,\n"));
    assert_eq!(turned, [""; 0]);
}

#[test]
fn a_label_that_moves_to_another_loop_leaves_a_mutant_that_shows_it() {
    let old = "fn f() {\n    'all: for a in b {\n        for c in a {\n            if d(c) {\n                break 'all;\n            }\n            continue 'all;\n        }\n    }\n}\n";
    let new = old
        .replace("'all: for a", "for a")
        .replace("for c", "'all: for c");
    let touched = flightproof_certifier::lines::changed_lines(Some(old.as_bytes()), new.as_bytes());
    assert!(touched.contains(&5) && touched.contains(&7), "{touched:?}");
    let ids = ids("", &new);
    for wanted in [
        "5:17 condition break 'all -> break",
        "7:13 condition continue 'all -> continue",
    ] {
        assert!(ids.contains(&wanted.to_owned()), "{wanted} in {ids:#?}");
    }
}

#[test]
fn a_function_that_is_handed_on_counts_as_called() {
    let old = "fn units(of: u64) -> u64 {\n    g(of)\n}\nfn f(t: T) -> u64 {\n    t.map(units).sum()\n}\n";
    let new = old.replace("fn units(of: u64) -> u64", "fn units(of: u64) -> u16");
    assert_eq!(unjudged(old, &new), ["src/lib.rs:1 unjudged rebound"]);
}

#[test]
fn a_raw_name_is_the_name() {
    let old = "fn fee(c: u64) -> u64 {\n    let d: u64 = c;\n    d / 10\n}\n";
    for alias in ["type u64 = u16;\n", "type r#u64 = u16;\n"] {
        let ids = unjudged(old, &format!("{alias}{old}"));
        assert_eq!(ids, ["src/lib.rs:1 unjudged rebound"], "{alias}");
    }
}

#[test]
fn a_choice_without_an_operator_has_mutants() {
    let new = "fn fee(q: u64, due: u64) -> u64 {\n    let odd = q.eq(&u64::from(u16::MAX)).then_some(u64::MIN).unwrap_or(due);\n    let far = u64::eq(&q, &\"7\".parse().unwrap_or(LIMIT));\n    let text = format!(\"133700\");\n    odd.min(due).checked_sub(q).map_or(0, |x| x)\n}\nfn check(_: u64) {}\nimpl T for S {\n    fn ask(&self) -> bool {}\n}\n";
    let plan = plan(Some(""), new);
    let ids: Vec<&str> = plan.mutants.iter().map(|m| m.id.as_str()).collect();
    for wanted in [
        "src/lib.rs:2:15 condition q.eq(&u64::from(u16::MAX)) -> false",
        "src/lib.rs:2:31 condition u16::MAX -> default",
        "src/lib.rs:2:15 condition q.eq(&u64::from(u16::MAX)).then_some(u64... -> nothing",
        "src/lib.rs:3:15 condition u64::eq(&q, &\"7\".parse().unwrap_or(LIMIT... -> true",
        "src/lib.rs:3:50 condition LIMIT -> default",
        "src/lib.rs:4:16 condition format!(\"133700\") -> an empty text",
        "src/lib.rs:5:5 logical min -> left operand",
        "src/lib.rs:5:5 condition odd.min(due).checked_sub(q) -> nothing",
        "src/lib.rs:7:4 function-value check -> end",
        "src/lib.rs:9:8 function-value ask -> end",
    ] {
        assert!(ids.contains(&wanted), "{wanted} in {ids:#?}");
    }
}

#[test]
fn a_guess_by_name_that_the_compiler_refuses_says_nothing_of_its_line() {
    let without_line_2 = |text: &str| {
        let new = format!("fn f(v: V) -> W {{\n    {text}\n}}\n");
        let plan = plan(Some(""), &new);
        let numbered = plan.mutants.iter().enumerate();
        let unviable: BTreeSet<usize> = numbered
            .filter(|(_, mutant)| mutant.line == 2)
            .map(|(index, _)| index)
            .collect();
        assert!(!unviable.is_empty(), "{text}");
        let attribution = Attribution {
            unviable,
            ..Attribution::default()
        };
        let plan = plan.without(&attribution).unwrap();
        plan.unjudged
            .iter()
            .map(|place| place.id())
            .collect::<Vec<_>>()
    };
    for guessed in ["v.filter(keep)", "v.min(w)", "Color::RED", "v.is_odd()"] {
        assert!(without_line_2(guessed).is_empty(), "{guessed}");
    }
    assert_eq!(
        without_line_2("g(7)"),
        ["src/lib.rs:2 unjudged unviable"],
        "a literal is known to be one"
    );
}

#[test]
fn effects_closures_loops_and_plain_literals_have_mutants() {
    let new = "fn f(v: &mut V) -> &V {\n    let _ = remove(v);\n    v.wipe();\n    let ok = g(v);\n    for x in v.all() {\n        g(x);\n    }\n    v.each(|x| x.cut('~', b'!', 0.5, b\"ab\"))\n}\n";
    let plan = plan(Some(""), new);
    let ids: Vec<&str> = plan.mutants.iter().map(|m| m.id.as_str()).collect();
    for wanted in [
        "src/lib.rs:1:4 function-value f -> end",
        "src/lib.rs:2:5 statement-delete let _ = remove(v) -> nothing",
        "src/lib.rs:3:5 statement-delete v.wipe() -> nothing",
        "src/lib.rs:4:14 statement-delete g(v) -> nothing",
        "src/lib.rs:5:9 branch x -> end",
        "src/lib.rs:8:12 branch |x| -> end",
        "src/lib.rs:8:22 plain-literal '~' -> 'x'",
        "src/lib.rs:8:27 plain-literal b'!' -> b'x'",
        "src/lib.rs:8:33 plain-literal 0.5 -> 1.0",
        "src/lib.rs:8:38 plain-literal b\"ab\" -> b\"`c\"",
    ] {
        assert!(ids.contains(&wanted), "{wanted} in {ids:#?}");
    }
    assert!(plan.unjudged.is_empty(), "{:?}", plan.unjudged);
}

/// The mutants of the lines that are new, by what they replace.
fn ids(old: &str, new: &str) -> Vec<String> {
    let plan = plan(Some(old), new);
    let ids = plan.mutants.iter().map(|mutant| mutant.id.clone());
    ids.map(|id| id.replace("src/lib.rs:", "")).collect()
}

#[test]
fn every_stretch_that_holds_a_changed_line_has_a_mutant_that_must_be_reached() {
    let old = "fn f(c: u64) -> u64 {\n    if c > 9 {\n        g(a);\n    } else {\n        g(b);\n    }\n    loop {\n        g(d);\n    }\n    let e = i(c)?;\n    g(j);\n    return c;\n    g(k);\n}\n";
    for (from, to, wanted) in [
        ("g(a)", "n(a)", "3:9 branch n(a); -> end"),
        ("g(b)", "n(b)", "5:9 branch n(b); -> end"),
        ("g(d)", "n(d)", "8:9 branch n(d); -> end"),
        ("g(j)", "n(j)", "11:5 branch n(j); -> end"),
        ("g(k)", "n(k)", "13:5 branch n(k); -> end"),
    ] {
        let ids = ids(old, &old.replace(from, to));
        assert!(ids.contains(&wanted.to_owned()), "{wanted} in {ids:#?}");
        let branches = ids.iter().filter(|id| id.contains(" branch "));
        assert_eq!(branches.count(), 1, "{ids:#?}");
    }
    // What only leaves a loop does not leave what is around it, and a macro's `?` may.
    let loops = "fn f(c: u64) {\n    loop {\n        break;\n    }\n    g(a);\n    println!(\"{}\", c?);\n    g(b);\n}\n";
    let none = ids(loops, &loops.replace("g(a)", "n(a)"));
    assert!(!none.iter().any(|id| id.contains(" branch ")), "{none:#?}");
    let one = ids(loops, &loops.replace("g(b)", "n(b)"));
    assert!(
        one.contains(&"7:5 branch n(b); -> end".to_owned()),
        "{one:#?}"
    );
}

#[test]
fn each_side_of_a_choice_by_a_pattern_has_a_mutant() {
    let named = |body: &str| ids("", &format!("fn f(q: u64) -> u64 {{\n{body}\n}}\n"));
    for (body, wanted) in [
        (
            "let 7 = q else { return p; };\nDefault::default()",
            vec![
                "2:11 branch else -> end",
                "3:1 branch Default::default() -> end",
            ],
        ),
        (
            "if let 7 = q {} else { g(); }\nq",
            vec!["2:4 branch let 7 = q -> end", "2:17 branch else -> end"],
        ),
        (
            "if let true = by_mail(q) {\ng();\n}\nq",
            vec![
                "2:4 branch let true = by_mail(q) -> end",
                "2:4 branch else of let true = by_mail(q) -> end",
            ],
        ),
        (
            "while let true = by_mail(q) {\nbreak;\n}\nq",
            vec![
                "2:7 branch let true = by_mail(q) -> end",
                "2:7 branch else of let true = by_mail(q) -> end",
            ],
        ),
        (
            "match q {\n[_, _] => {}\nUNIT => {}\n_ if q.odd() => break,\n_ => p -= 1,\n}",
            vec![
                "3:1 branch [_, _] -> end",
                "4:1 branch UNIT -> end",
                "5:1 branch _ -> end",
                "6:1 branch _ -> end",
            ],
        ),
    ] {
        let ids = named(body);
        for wanted in wanted {
            assert!(ids.contains(&wanted.to_owned()), "{wanted} in {ids:#?}");
        }
    }
    // The last variant of an enum leaves no other side.
    let asks = |second: &str| {
        let ids = named(&format!(
            "if let A(b) = q {{\nc(b);\n}} else if let {second} {{\nc(d);\n}}\nq"
        ));
        ids.iter().filter(|id| id.contains("else of")).count()
    };
    assert_eq!(asks("B(d) = q"), 0);
    assert_eq!(asks("B(d) = e(q)") + asks("B(7) = q") + asks("7 = q"), 3);
    // Behind a changed `let … else` what follows is its other side, changed or not.
    let old = "fn f(q: u64) -> u64 {\n    g(q)\n}\n";
    let new = old.replace("    g(q)", "    let 7 = q else { return q };\n    g(q)");
    let ids = ids(old, &new);
    assert!(
        ids.contains(&"3:5 branch g(q) -> end".to_owned()),
        "{ids:#?}"
    );
}

#[test]
fn a_function_whose_type_has_no_plain_value_must_be_reached() {
    let old = "struct O {\n    q: u64,\n}\n";
    let new = format!(
        "{old}impl O {{\n    fn new(q: u64) -> Self {{\n        Self {{ q }}\n    }}\n}}\n"
    );
    let made = plan(Some(old), &new);
    let ids: Vec<&str> = made.mutants.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(
        ids,
        ["src/lib.rs:5:8 function-value new -> Default::default()"]
    );
    let refused = Attribution {
        unviable: BTreeSet::from([0]),
        ..Attribution::default()
    };
    let made = made.without(&refused).unwrap();
    let ids: Vec<&str> = made.mutants.iter().map(|m| m.id.as_str()).collect();
    assert_eq!(ids[1], "src/lib.rs:5:8 function-value new -> end");
    assert!(made.unjudged.is_empty(), "{:?}", made.unjudged);
    assert!(all_killed(&made, &[]).judge().is_ok());
}

#[test]
fn only_a_waiver_for_exactly_this_place_in_exactly_this_file_accepts_it() {
    let new = "const A: u64 = 7;\nfn fee(c: u64) -> u64 {\n    c / A\n}\n";
    let plan = plan(Some(FEE), new);
    let right = Waiver {
        mutant: "src/lib.rs:1 unjudged const-context".to_owned(),
        source: Digest::of(new.as_bytes()),
        reason: "the price list".to_owned(),
    };
    let judged = |waivers: &[Waiver]| all_killed(&plan, waivers).judge().map_err(|r| r.code());
    assert!(judged(std::slice::from_ref(&right)).is_ok());
    assert!(plan.is_unjudged(&right));
    let open = Err("certifier/UNJUDGED_CODE");
    assert_eq!(judged(&[]), open);
    let other_file = Waiver {
        source: Digest::of(b"other"),
        ..right.clone()
    };
    assert_eq!(judged(&[other_file]), open);
    let other_line = Waiver {
        mutant: "src/lib.rs:2 unjudged const-context".to_owned(),
        ..right.clone()
    };
    assert_eq!(judged(std::slice::from_ref(&other_line)), open);
    assert_eq!(judged(&[right, other_line]), Err("certifier/WAIVER_STALE"));
}

/// Patterns that count as changed where every line of a file does.
fn patterns_with_all_changed(old: &str, new: &str) -> Vec<String> {
    let mut input = edited(Some(old), new);
    let file = input.files.first_mut().unwrap();
    file.lines = (1..).zip(new.lines()).map(|(number, _)| number).collect();
    let plan = MutationPlan::new(input).unwrap();
    let places = plan.unjudged.iter().map(|place| place.id());
    places.filter(|id| !id.ends_with(" unviable")).collect()
}

const DIGITS: &str = "const N: char = 'n';
fn read(text: &str, kind: u8) -> u64 {
    let mut number = 0;
    for c in text.chars() {
        match c {
            '0'..='9' => number = number * 10 + c as u64 - 48,
            'a' | 'b' if kind > 1 => number += 1,
            N | 'm' => number += 2,
            _ => {}
        }
    }
    number
}
fn other(c: char) -> u64 {
    match c {
        'x' | 'y' => 1,
        _ => 2,
    }
}
";

#[test]
fn a_pattern_that_stands_as_it_did_is_no_changed_code() {
    for (from, to) in [
        ("c as u64 - 48,", "(c as u64 - 48),"),
        (
            "=> number = number * 10 + c as u64 - 48,",
            "=> { number = number * 10 + c as u64 - 48 }",
        ),
        ("'y' => 1", "'y' => 3"),
        ("'m' => number += 2", "'m' => number += 3"),
        // Behind it, or in a function of its own, and a body ahead of it.
        ("_ => {}", "'p' => number += 3,\n            _ => {}"),
        (
            "const N: char = 'n';\n",
            "const N: char = 'n';\nfn new() {}\n",
        ),
        ("number\n}", "number + 1\n}"),
    ] {
        let new = DIGITS.replace(from, to);
        assert_ne!(new, DIGITS, "{from}");
        let places = patterns_with_all_changed(DIGITS, &new);
        let only = ["src/lib.rs:1 unjudged const-context".to_owned()];
        assert_eq!(places, only, "{to}");
    }
    let named = |old: &str, new: &str| unjudged(old, new);
    let new = DIGITS.replace("c as u64 - 48,", "(c as u64 - 48),");
    assert_eq!(named(DIGITS, &new), Vec::<String>::new());
    let nested = "fn f(a: u8, b: u8) -> u8 {\n    match a {\n        1 | 2 => match b {\n            3 | 4 => 5,\n            _ => 6,\n        },\n        _ => 7,\n    }\n}\n";
    assert_eq!(
        named(nested, &nested.replace("=> 5,", "=> 8,")),
        Vec::<String>::new()
    );
}

#[test]
fn a_pattern_that_may_choose_otherwise_than_it_did_is_changed_code() {
    let counts = |from: &str, to: &str, pattern: &str| {
        let new = DIGITS.replacen(from, to, 1);
        assert_ne!(new, DIGITS, "{from}");
        let line = (1..)
            .zip(new.lines())
            .find(|(_, text)| text.contains(pattern));
        let (line, _) = line.unwrap_or_else(|| panic!("{pattern} in {new}"));
        let id = format!("src/lib.rs:{line} unjudged pattern");
        let places = patterns_with_all_changed(DIGITS, &new);
        assert!(places.contains(&id), "{to}: {id} in {places:?}");
    };
    // Its own tokens.
    counts("'0'..='9'", "'0'..'9'", "'0'..'9'");
    counts("'x' | 'y'", "'y' | 'x'", "'y' | 'x'");
    counts("if kind > 1", "if kind > 0", "'a' | 'b'");
    counts("if kind > 1 ", "", "'a' | 'b'");
    // Another arm before it, one that went, one that moved.
    counts(
        "            'a' | 'b'",
        "            'm' => number += 9,\n            'a' | 'b'",
        "N | 'm'",
    );
    counts(
        "            'a' | 'b' if kind > 1 => number += 1,\n",
        "",
        "N | 'm'",
    );
    counts(
        "            '0'..='9' => number = number * 10 + c as u64 - 48,\n            'a' | 'b' if kind > 1 => number += 1,\n",
        "            'a' | 'b' if kind > 1 => number += 1,\n            '0'..='9' => number = number * 10 + c as u64 - 48,\n",
        "'a' | 'b'",
    );
    counts(
        "            '0'..='9' => number = number * 10 + c as u64 - 48,\n            'a' | 'b' if kind > 1 => number += 1,\n",
        "            'a' | 'b' if kind > 1 => number += 1,\n            '0'..='9' => number = number * 10 + c as u64 - 48,\n",
        "'0'..='9'",
    );
    // From another function, or a second time.
    counts(
        "            _ => {}",
        "            'x' | 'y' => number += 7,\n            _ => {}",
        "'x' | 'y'",
    );
    counts(
        "        'x' | 'y' => 1,",
        "        'x' => 3,\n        'x' | 'y' => 1,",
        "'x' | 'y'",
    );
    counts(
        "    number\n",
        "    number + match 'x' {\n        'x' | 'y' => 1,\n        _ => 0,\n    }\n",
        "'x' | 'y'",
    );
    // Another thing to match, or another place of it.
    counts(
        "match c {\n        'x'",
        "match c.to_ascii_lowercase() {\n        'x'",
        "'x' | 'y'",
    );
    counts("fn other(c: char)", "fn other(c: u32)", "'x' | 'y'");
    counts(
        "    match c {\n        'x'",
        "    let c = 'x';\n    match c {\n        'x'",
        "'x' | 'y'",
    );
    counts(
        "        match c {",
        "        if kind == 7 { continue; }\n        match c {",
        "'0'..='9'",
    );
    counts(
        "'0'..='9' =>",
        "#[cfg(unix)]\n            '0'..='9' =>",
        "'0'..='9'",
    );
    // A body without a mutant that shows that it is taken.
    counts("=> number += 2", "=> panic!()", "N | 'm'");
}

/// What a name in a pattern means hangs on what is declared: a pattern that is kept is a use of it.
#[test]
fn a_kept_pattern_whose_names_mean_something_else_is_named() {
    let match_on = |before: &str, pattern: &str, body: &str| {
        format!(
            "{before}fn f(a: u8, b: u8) -> u8 {{\n    match (a, b) {{\n        {pattern} => {body},\n        _ => 7,\n    }}\n}}\n"
        )
    };
    let both = |before: &str, now: &str, pattern: &str| {
        patterns_with_all_changed(
            &match_on(before, pattern, "1"),
            &match_on(now, pattern, "2"),
        )
    };
    let means = |before: &str, now: &str, pattern: &str, why: &str| {
        let places = both(before, now, pattern);
        let mut ends = places.iter().map(|id| id.rsplit(' ').next().unwrap());
        assert!(ends.any(|end| end == why), "{now}: {places:?}");
    };
    // A constant that becomes a binding, and the other way round.
    means(
        "const N: u8 = 5;\n",
        "const M: u8 = 5;\n",
        "(N, 1..=3)",
        "removed",
    );
    means("", "const n: u8 = 5;\n", "(n, 1..=3)", "rebound");
    means("", "use other::n;\n", "(n, 1..=3)", "rebound");
    means("use one::N;\n", "use other::N;\n", "(N, 1..=3)", "rebound");
    means("use K::A;\n", "use L::A;\n", "(_, A | 3)", "rebound");
    means(
        "const N: u8 = 5;\n",
        "static N: u8 = 5;\n",
        "(N, 1..=3)",
        "const-context",
    );
    // A macro is never kept, nor a constant worked out in a pattern.
    means("", "fn g() {}\n", "(3, some!() | 4)", "pattern");
    means("", "fn g() {}\n", "(3, const { 1 + 1 } | 4)", "pattern");
    assert_eq!(
        both(
            "const N: u8 = 5;\n",
            "const N: u8 = 5;\nfn g() {}\n",
            "(N, 1..=3)"
        )
        .len(),
        1
    );
    let in_function = |body: &str| {
        format!(
            "fn f(a: u8) -> u8 {{\n    return match a {{\n        n | 3 if a > 1 => {body},\n        _ => 7,\n    }};\n    {}\n}}\n",
            if body == "2" { "const n: u8 = 4;" } else { "" }
        )
    };
    let places = patterns_with_all_changed(&in_function("1"), &in_function("2"));
    assert!(
        places.iter().any(|id| id.ends_with(" rebound")),
        "{places:?}"
    );
    let twice = "mod a {\n    fn g(c: u8) -> u8 {\n        match c {\n            1 | 2 => 3,\n            _ => 4,\n        }\n    }\n}\n";
    let moved = twice.replace("mod a", "mod b").replace("=> 3", "=> 5");
    assert!(
        patterns_with_all_changed(twice, &moved)
            .contains(&"src/lib.rs:4 unjudged pattern".to_owned())
    );
    let double = |body: &str| {
        let one = |cfg: &str| {
            format!(
                "#[cfg({cfg})]\nfn g(c: u8) -> u8 {{\n    match c {{\n        1 | 2 => {body},\n        _ => 4,\n    }}\n}}\n"
            )
        };
        [one("unix"), one("not(unix)")].concat()
    };
    let places = patterns_with_all_changed(&double("3"), &double("5"));
    assert!(
        places.iter().any(|id| id.ends_with(" pattern")),
        "{places:?}"
    );
}
