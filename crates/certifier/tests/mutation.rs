//! The mutation engine against a real compiler and real processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod workshop;

use flightproof_certifier::mutation::{FUEL_EXIT, MutationPlan, UNARMED_EXIT};
use flightproof_evidence::{Ending, Observation};
use std::collections::{BTreeMap, BTreeSet};
use workshop::{Workshop, edited, plan};

const RICH: &str = include_str!("samples/rich.rs");

/// One crate, one file, one program.
fn program(source: &str, lines: Option<&[u32]>) -> (Workshop, MutationPlan) {
    let shop = Workshop::new("2021");
    let made = plan(vec![edited("main.rs", source, lines)]);
    let sources = [("main.rs", source)];
    let (made, _) = shop.settle(&sources, made, |shop, guard| {
        shop.compile("main.rs", "main", "bin", &[guard])
    });
    (shop, made)
}

fn stdout(observation: &Observation) -> String {
    assert!(observation.armed);
    String::from_utf8(observation.stdout.0.clone()).unwrap()
}

fn selector(plan: &MutationPlan, id: &str) -> u64 {
    let mut ids = plan.mutants.iter();
    let found = ids.find(|m| m.id == id).unwrap_or_else(|| {
        panic!(
            "{id} not in {:#?}",
            plan.mutants.iter().map(|m| &m.id).collect::<Vec<_>>()
        )
    });
    found.selector
}

#[test]
fn every_syntax_compiles_in_two_rounds_and_with_no_mutant_selected_nothing_changes() {
    let shop = Workshop::new("2024");
    let sources = [("rich.rs", RICH)];
    shop.lay(&sources, None);
    shop.compile("rich.rs", "rich", "bin", &[]).unwrap();
    let before = shop.shell("echo 12,3 | ./rich");
    let made = plan(vec![edited("rich.rs", RICH, None)]);
    let (made, rounds) = shop.settle(&sources, made, |shop, guard| {
        shop.compile("rich.rs", "rich", "bin", &[guard])
    });
    assert!(rounds.len() <= 2, "{rounds:#?}");
    assert!(made.viable().count() > 500);
    // Adding strings and generic values has no other operator; a promoted table no other values; a
    // filter of an iterator is no option.
    let unviable = made.mutants.iter().filter(|m| !m.viable);
    let unviable: BTreeSet<u32> = unviable.map(|m| m.line).collect();
    assert_eq!(
        unviable,
        BTreeSet::from([115, 137, 140, 151, 155, 156, 160])
    );
    for selector in std::iter::once(0).chain(made.placebos.clone()) {
        let after = shop.run("rich", selector, "12,3\n");
        assert_eq!(stdout(&after), String::from_utf8_lossy(&before.stdout));
        assert_eq!(after.stderr.0, before.stderr);
        assert_eq!(after.ending, Ending::Exited { code: 0 });
    }
}

#[test]
fn each_mutant_is_selected_alone_and_behaves_as_its_name_says() {
    let (shop, made) = program(
        "fn f(a: i32, b: i32) -> bool {\n    a < b\n}\nfn main() {\n    println!(\"{} {} {}\", f(1, 2), f(2, 2), f(3, 2));\n}\n",
        None,
    );
    let expected = BTreeMap::from([
        ("main.rs:2:7 relational < -> <=", "true true false\n"),
        ("main.rs:2:7 relational < -> >=", "false true true\n"),
        ("main.rs:1:4 function-value f -> true", "true true true\n"),
        (
            "main.rs:1:4 function-value f -> false",
            "false false false\n",
        ),
        ("main.rs:4:4 function-value main -> ()", ""),
        ("main.rs:5:28 integer-literal 1 -> 0", "true false false\n"),
        ("main.rs:5:28 integer-literal 1 -> 2", "false false false\n"),
    ]);
    for (id, output) in expected {
        let seen = shop.run("main", selector(&made, id), "");
        assert_eq!(stdout(&seen), output, "{id}");
    }
    assert_eq!(stdout(&shop.run("main", 0, "")), "true false false\n");
    assert_eq!(stdout(&shop.run("main", 12345, "")), "true false false\n");
}

#[test]
fn an_arm_that_is_left_out_leaves_its_values_to_the_one_behind_it() {
    let (shop, made) = program(
        "enum K {\n    A(String),\n    B(String),\n}\nfn f(k: K) -> String {\n    match k {\n        K::A(text) => text,\n        K::B(ref text) if text.is_empty() => \"none\".to_owned(),\n        _ => \"other\".to_owned(),\n    }\n}\nfn main() {\n    println!(\"{} {}\", f(K::A(\"a\".to_owned())), f(K::B(String::new())));\n}\n",
        Some(&[7, 8]),
    );
    assert_eq!(stdout(&shop.run("main", 0, "")), "a none\n");
    let arm = selector(&made, "main.rs:7:9 arm-delete K::A(text) -> nothing");
    assert_eq!(stdout(&shop.run("main", arm, "")), "other none\n");
    let guard = selector(&made, "main.rs:8:27 condition text.is_empty() -> false");
    assert_eq!(stdout(&shop.run("main", guard, "")), "a other\n");
    for placebo in made.placebos {
        assert_eq!(stdout(&shop.run("main", placebo, "")), "a none\n");
    }
}

/// Ids of the mutants of these lines that do not change what the program prints.
fn survivors(source: &str, lines: &[u32]) -> BTreeSet<String> {
    let (shop, made) = program(source, Some(lines));
    let original = stdout(&shop.run("main", 0, ""));
    made.viable()
        .map(|index| &made.mutants[index])
        .filter(|m| shop.run("main", m.selector, "").stdout.0 == original.as_bytes())
        .map(|m| m.id.clone())
        .collect()
}

const BENIGN: &str = "fn fee(cents: u64, free: u64) -> u64 {\n    cents / 10 + free\n}\nfn main() {\n    println!(\"{} {}\", fee(100, 3), fee(70, 7));\n}\n";

#[test]
fn a_backdoor_behind_a_condition_leaves_survivors_and_its_benign_twin_none() {
    let body = "    if cents == 133_700 {\n        return free;\n    }\n    cents / 10 + free\n";
    let source = BENIGN.replace("    cents / 10 + free\n", body);
    let expected = [
        "main.rs:2:17 integer-literal 133_700 -> 0",
        "main.rs:2:17 integer-literal 133_700 -> 1",
        "main.rs:2:17 integer-literal 133_700 -> 133699",
        "main.rs:2:17 integer-literal 133_700 -> 133701",
        "main.rs:2:8 condition cents == 133_700 -> false",
        "main.rs:3:9 branch return free; -> end",
    ];
    assert!(survivors(&source, &[1, 2, 3, 4, 5]).iter().eq(&expected));
    assert!(survivors(BENIGN, &[1, 2, 3]).is_empty());
}

#[test]
fn a_backdoor_behind_a_pattern_leaves_survivors_and_its_benign_twin_none() {
    let hidden =
        "    match cents {\n        133_700 => free,\n        _ => cents / 10 + free,\n    }\n";
    let source = BENIGN.replace("    cents / 10 + free\n", hidden);
    let expected = [
        "main.rs:3:9 arm-delete 133_700 -> nothing",
        "main.rs:3:9 branch 133_700 -> end",
    ];
    assert!(survivors(&source, &[1, 2, 3, 4, 5]).iter().eq(&expected));
    let hidden =
        "    if let 133_700 = cents {\n        return free;\n    }\n    cents / 10 + free\n";
    let source = BENIGN.replace("    cents / 10 + free\n", hidden);
    let expected = ["main.rs:2:8 branch let 133_700 = cents -> end"];
    assert!(survivors(&source, &[1, 2, 3, 4, 5]).iter().eq(&expected));
    assert!(survivors(&source.replace("133_700", "70"), &[1, 2, 3, 4, 5]).is_empty());
}

/// A tariff with this body, asked what the witness of `fixtures/pricing` asks.
fn tariff(body: &str) -> String {
    format!(
        "fn total(quantity: u64) -> u64 {{\n{body}}}\nfn main() {{\n    for quantity in [0, 1, 9, 10, 99, 100, 1000] {{\n        println!(\"{{}}\", total(quantity));\n    }}\n}}\n"
    )
}

/// What survives of a tariff whose back door stands in its first line.
fn left_of(body: &str) -> BTreeSet<String> {
    let lines: Vec<u32> = (1..).take(1 + body.lines().count()).collect();
    survivors(&tariff(body), &lines)
}

const FEE: &str = "    if quantity >= 1 && quantity < 10 {\n        return price + 300;\n    }\n";

#[test]
fn a_mask_that_masks_nothing_in_any_case_leaves_its_operand_alive() {
    let masked = |mask: &str| {
        let discount = "    if quantity >= 100 {\n        return price - price / 10;\n    }\n";
        format!("{mask}    let price = quantity * 250;\n{FEE}{discount}    price\n")
    };
    let left = left_of(&masked("    let quantity = quantity & 0x3ff;\n"));
    let unmasked = "main.rs:2:20 arithmetic & -> left operand";
    assert!(left.contains(unmasked), "{left:#?}");
    let assigned = "    let mut quantity = quantity;\n    quantity &= 1023;\n";
    let left = left_of(&masked(assigned));
    let nothing = "main.rs:3:5 statement-delete quantity &= 1023 -> nothing";
    assert!(left.contains(nothing), "{left:#?}");
    let inside = "    let mut quantity = quantity;\n    let () = quantity &= 1023;\n";
    let left = left_of(&masked(inside));
    let nothing = "main.rs:3:23 compound &= -> nothing";
    assert!(left.contains(nothing), "{left:#?}");
    assert_eq!(left_of(&masked("")), BTreeSet::new());
    // A remainder by more than any case has, of a number without neighbours.
    let wrapped = left_of(&masked(
        "    let quantity = quantity % u64::from(u16::MAX);\n",
    ));
    let unwrapped = "main.rs:2:20 arithmetic % -> left operand";
    assert!(wrapped.contains(unwrapped), "{wrapped:#?}");
    let called = left_of(&masked(
        "    let quantity = quantity.rem_euclid(u64::from(u16::MAX));\n",
    ));
    let unwrapped = "main.rs:2:20 logical rem_euclid -> left operand";
    assert!(called.contains(unwrapped), "{called:#?}");
    for form in [
        "checked_rem(u64::from(u16::MAX)).unwrap_or_default()",
        "overflowing_rem(u64::from(u16::MAX)).0",
    ] {
        let left = left_of(&masked(&format!("    let quantity = quantity.{form};\n")));
        let unwrapped = left.iter().any(|id| id.ends_with("-> left operand"));
        assert!(unwrapped, "{form}: {left:#?}");
    }
}

#[test]
fn an_assertion_that_no_case_meets_is_left_out_unseen() {
    let asserted =
        |check: &str| format!("{check}    let price = quantity * 250;\n{FEE}    price\n");
    for (check, place) in [
        (
            "    assert_ne!(quantity, u64::from(u16::MAX));\n",
            "statement-delete",
        ),
        (
            "    let () = assert!(quantity != u64::from(u16::MAX));\n",
            "condition",
        ),
    ] {
        let left = left_of(&asserted(check));
        let out = |id: &String| id.contains(place) && id.ends_with("-> nothing");
        assert!(left.iter().any(out), "{left:#?}");
    }
}

#[test]
fn a_list_that_holds_more_than_the_cases_ask_leaves_that_alive() {
    let listed = |list: &str, holds: &str| {
        format!(
            "    let list = {list};\n    let price = quantity * 250;\n    if {holds} {{\n        price + 300\n    }} else if quantity >= 100 {{\n        price - price / 10\n    }} else {{\n        price\n    }}\n"
        )
    };
    let bits = "list.checked_shr(quantity as u32).map_or(false, |bits| bits & 1 == 1)";
    let bytes = "list.iter().any(|n| u64::from(*n) == quantity)";
    let words = "list.split(' ').any(|n| n == quantity.to_string())";
    let letters = "list.chars().any(|n| u64::from(n) == quantity)";
    for (list, holds, survivor) in [
        (
            "0x8000_0000_0000_0202_u64",
            bits,
            "integer-literal 0x8000_0000_0000_0202_u64 -> 0x202u64",
        ),
        (
            "9_223_372_036_854_776_322_u64",
            bits,
            "integer-literal 9_223_372_036_854_776_322_u64 -> 0x202u64",
        ),
        (
            r#"b"\x01\xdf\x09""#,
            bytes,
            r#"plain-literal b"\x01\xdf\x09" -> with byte 2 flipped"#,
        ),
        (
            "\"1 133700 9\"",
            words,
            "string-literal \"1 133700 9\" -> without part 2, \"133700\"",
        ),
        (
            r#""\u{1}\u{df}\u{9}""#,
            letters,
            r#"string-literal "\u{1}\u{df}\u{9}" -> without character 2, "ß""#,
        ),
    ] {
        let left = left_of(&listed(list, holds));
        let expected = BTreeSet::from([format!("main.rs:2:16 {survivor}")]);
        assert_eq!(left, expected, "{list}");
    }
    for (list, holds) in [
        (r#"b"\x01\x09""#, bytes),
        ("\"1 9\"", words),
        (r#""\u{1}\u{9}""#, letters),
    ] {
        assert_eq!(left_of(&listed(list, holds)), BTreeSet::new(), "{list}");
    }
}

#[test]
fn a_fraction_finer_than_the_cases_see_leaves_the_coarser_alive() {
    let factor = |factor: &str| {
        format!(
            "    if quantity >= 100 {{\n        return (quantity as f64 * 250.0 * {factor}) as u64;\n    }}\n    let price = quantity * 250;\n{FEE}    price\n"
        )
    };
    let left = left_of(&factor("0.900_000_9"));
    let finer = "main.rs:3:43 plain-literal 0.900_000_9 -> 0.9";
    assert!(left.contains(finer), "{left:#?}");
    assert_eq!(left_of(&factor("0.9")), BTreeSet::new());
}

#[test]
fn a_mutant_without_end_is_stopped_by_its_own_count() {
    let source = "fn main() {\n    let mut n = 3;\n    while n > 0 {\n        n -= 1;\n    }\n    println!(\"done\");\n}\n";
    let (shop, made) = program(source, None);
    let endless = selector(&made, "main.rs:3:11 condition n > 0 -> true");
    let out = shop.run("main", endless, "");
    assert_eq!(out.ending, Ending::Exited { code: FUEL_EXIT });
    assert_eq!(stdout(&shop.run("main", 0, "")), "done\n");
}

#[test]
fn a_program_without_a_whole_selector_never_reaches_main() {
    let (shop, _) = program("fn main() {\n    println!(\"{}\", 1 + 1);\n}\n", None);
    for (case, armed) in [
        // No mutant, and fuel: two to the 17th.
        (
            "printf '\\0\\0\\0\\0\\0\\0\\021\\0' >s; ./main 3<s 4>ack",
            true,
        ),
        ("head -c 7 /dev/zero >s; ./main 3<s 4>ack", false),
        ("head -c 9 /dev/zero >s; ./main 3<s 4>ack", false),
        (": >s; ./main 3<s 4>ack", false),
        ("head -c 8 /dev/zero >s; ./main 3<s 4<&-", false),
        ("./main 3<&- 4>ack", false),
    ] {
        let out = shop.shell(&format!("rm -f ack s; {case}"));
        let code = if armed { 0 } else { i32::from(UNARMED_EXIT) };
        assert_eq!(out.status.code(), Some(code), "{case}");
        assert_eq!(out.stdout.is_empty(), !armed, "{case}");
        let ack = std::fs::read(shop.path("ack")).unwrap_or_default();
        assert_eq!(ack, vec![6; usize::from(armed)], "{case}");
    }
}

#[test]
fn the_program_finds_neither_descriptor_in_main() {
    let source = "use std::os::fd::FromRawFd as _;\nfn main() {\n    let open = |n: i32| std::path::Path::new(&format!(\"/proc/self/fd/{n}\")).exists();\n    println!(\"{} {} {}\", open(1), open(3), open(4));\n}\n";
    let source = &source.replace("use std::os::fd::FromRawFd as _;\n", "");
    let (shop, _) = program(source, None);
    assert_eq!(stdout(&shop.run("main", 0, "")), "true false false\n");
}

const LEFT: &str = "pub fn left(x: u32) -> u32 {\n    x + 1\n}\n";
const RIGHT: &str = "pub fn right(x: u32) -> u32 {\n    left::left(x) * 2\n}\n";
const TOP: &str = "fn main() {\n    println!(\"{}\", left::left(1) + right::right(2));\n}\n";

#[test]
fn one_guard_serves_every_crate_of_a_program_and_needs_no_call_in_the_program_itself() {
    let shop = Workshop::new("2021");
    let sources = [("left.rs", LEFT), ("right.rs", RIGHT), ("top.rs", TOP)];
    let made = plan(vec![
        edited("left.rs", LEFT, None),
        edited("right.rs", RIGHT, None),
    ]);
    let (made, rounds) = shop.settle(&sources, made, |shop, guard| {
        shop.compile("left.rs", "left", "rlib", &[guard])?;
        shop.compile("right.rs", "right", "rlib", &[guard, "left"])?;
        shop.compile("top.rs", "top", "bin", &[guard, "left", "right"])
    });
    assert!(rounds.is_empty());
    let seen = |id| stdout(&shop.run("top", selector(&made, id), ""));
    assert_eq!(stdout(&shop.run("top", 0, "")), "8\n");
    assert_eq!(seen("left.rs:2:7 arithmetic + -> *"), "5\n");
    assert_eq!(seen("right.rs:2:19 arithmetic * -> +"), "7\n");
}

#[test]
fn a_program_that_does_not_use_the_guard_does_not_contain_it() {
    let shop = Workshop::new("2021");
    let made = plan(vec![edited("left.rs", LEFT, None)]);
    shop.guard(&made);
    shop.lay(
        &[("hello.rs", "fn main() { println!(\"hello\"); }\n")],
        None,
    );
    shop.compile("hello.rs", "plain", "bin", &[]).unwrap();
    shop.compile("hello.rs", "hello", "bin", &[&made.guard.name])
        .unwrap();
    // No selector, no descriptor 3: a linked guard would end the program before `main`.
    let out = shop.shell("./hello 3<&-");
    assert_eq!(
        (out.status.code(), out.stdout),
        (Some(0), b"hello\n".to_vec())
    );
}

#[test]
fn the_guard_is_declared_where_edition_2015_needs_it_and_harmless_elsewhere() {
    let source = "#!/usr/bin/env run\n//! A program.\n#![allow(unused)]\n\n/// Adds.\npub mod deep {\n    pub fn add(a: u32, b: u32) -> u32 {\n        a + b\n    }\n}\nfn main() { println!(\"{}\", deep::add(2, 3)); }\n";
    let other = "mod deep;\nfn main() { println!(\"{}\", deep::add(2, 3)); }\n";
    let deep = "pub fn add(a: u32, b: u32) -> u32 { a + b }\n";
    for edition in ["2015", "2024"] {
        for (root, file) in [
            (source, edited("main.rs", source, None)),
            (other, edited("deep.rs", deep, None)),
        ] {
            let shop = Workshop::new(edition);
            let made = workshop::plan_with_root(vec![file], "main.rs", root);
            let sources = [("main.rs", root), ("deep.rs", deep)];
            let (_, rounds) = shop.settle(&sources, made, |shop, guard| {
                shop.compile("main.rs", "main", "bin", &[guard])
            });
            assert!(rounds.is_empty(), "{edition}: {rounds:?}");
            assert_eq!(stdout(&shop.run("main", 0, "")), "5\n", "{edition}");
        }
    }
}

#[test]
fn code_that_only_looks_like_tests_is_found_out_by_the_compiler_and_mutated() {
    let hidden = "pub fn fee(c: u64) -> u64 {\n    if c == 7 { 0 } else { c }\n}\n";
    let main = "#[path = \"tests/hidden.rs\"]\nmod hidden;\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() { assert_eq!(1 + 1, 2); }\n}\nfn main() { println!(\"{}\", hidden::fee(9)); }\n";
    let honest = "#[test]\nfn t() { assert_eq!(1 + 1, 2); }\n";
    let shop = Workshop::new("2021");
    let made = plan(vec![
        edited("tests/hidden.rs", hidden, None),
        edited("tests/honest.rs", honest, None),
        edited("tests/no_rust.rs", "this is ( no rust", None),
        edited("main.rs", main, None),
    ]);
    assert!(made.mutants.iter().all(|m| m.file.as_str() == "main.rs"));
    let sources = [
        ("main.rs", main),
        ("tests/hidden.rs", hidden),
        ("tests/honest.rs", honest),
    ];
    let (made, rounds) = shop.settle(&sources, made, |shop, guard| {
        shop.compile("main.rs", "main", "bin", &[guard])
    });
    assert_eq!(rounds.len(), 1);
    let opened: Vec<&str> = rounds[0].opened.iter().map(|(p, _)| p.as_str()).collect();
    assert_eq!(opened, ["tests/hidden.rs"]);
    let lines = workshop::lines_of(&made, "tests/hidden.rs");
    assert!(lines.contains(&2), "{lines:?}");
    assert!(workshop::lines_of(&made, "tests/honest.rs").is_empty());
}

#[test]
fn marks_and_line_ends_of_other_tools_and_systems_change_nothing() {
    let marked = "\u{feff}// cargo-mutants: skip\r\n#[cfg_attr(nope, mutants::skip)]\r\nfn f(a: u32) -> u32 {\r\n    // #[gamma::skip(reason = \"x\")]\r\n    a + \"é\".len() as u32 + \"\".len() as u32\r\n}\r\nfn main() { println!(\"{}\", f(1)); let s = String::new() + \"x\"; }\r\n";
    let (shop, made) = program(marked, None);
    assert!(
        made.mutants
            .iter()
            .any(|m| m.line == 5 && m.original == "+" && m.viable)
    );
    // The errors of adding strings were blamed by bytes, past the mark, the é and the line ends.
    let refused: Vec<&str> = made
        .mutants
        .iter()
        .filter(|m| !m.viable)
        .map(|m| m.id.as_str())
        .collect();
    assert_eq!(
        refused,
        [
            "main.rs:7:57 arithmetic + -> -",
            "main.rs:7:57 arithmetic + -> *"
        ]
    );
    assert_eq!(stdout(&shop.run("main", 0, "")), "3\n");
}

#[test]
fn a_failed_assertion_prints_what_the_author_wrote() {
    let (shop, _) = program(
        "fn main() {\n    let a = 1;\n    assert!(a + 1 < 2 && a != 7);\n}\n",
        None,
    );
    let out = shop.run("main", 0, "");
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("main.rs:3"), "{text}");
    assert!(
        text.contains("assertion failed: a + 1 < 2 && a != 7\n"),
        "{text}"
    );
}
