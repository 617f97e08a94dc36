//! Classes of changed lines, file by file.

use super::*;
use crate::population;
use crate::samples::{captured, change};

const MANIFEST: &str = "[package]\nname = \"a\"\nversion = \"1.0.0\"\nedition = \"2024\"\n";

/// The classes of one change of a tree.
fn classed(change: Change, others: &[(&str, &str)]) -> Vec<(u32, LineClass)> {
    let mut files = others.to_vec();
    files.push(("Cargo.toml", MANIFEST));
    let paths: Vec<RelPath> = files.iter().map(|(p, _)| p.parse().unwrap()).collect();
    let tree: Tree<'_> = paths
        .iter()
        .zip(files.iter().map(|(_, content)| content.as_bytes()))
        .collect();
    let captured = captured(vec![change]);
    let plan = MutationPlan::new(population::input(&captured.changes, &tree, [1; 32])).unwrap();
    let files = ChangedFile::all(&captured.changes, &tree, None);
    let found = classes(&files, &plan);
    found.into_iter().map(|l| (l.line, l.class)).collect()
}

fn new_file(path: &str, text: &str) -> Vec<(u32, LineClass)> {
    classed(change(path, None, Some(text.as_bytes())), &[])
}

fn edited(path: &str, old: &str, new: &str) -> Vec<(u32, LineClass)> {
    let change = change(path, Some(old.as_bytes()), Some(new.as_bytes()));
    classed(change, &[])
}

use LineClass::{Data, Inert, Mutated, NotCompiled, Tests, Unjudged};

#[test]
fn a_script_is_no_data_whatever_it_is_called() {
    for path in [
        "release.sh",
        "ci/check.py",
        "Makefile",
        "configure",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        "deploy/Dockerfile",
        "src/native.c",
        "Makefile.toml",
        "netlify.toml",
        "BUILD.bazel",
        "cloudbuild.yaml",
        "action.yml",
        "data/action.yml",
        "Taskfile.yml",
        "build.xml",
        "docker-compose.override.yml",
        "Dockerfile.prod",
        "default.sbt",
        "a.gemspec",
        "package-lock.json",
        "data/package.json",
        "go.mod",
        "tasks.rake",
        "setup.vbs",
        "run.command",
        "x.pth",
        "x.vue",
        "requirements-dev.txt",
        "data/constraints_3.txt",
        "conanfile.txt",
        "certs/ca.pem",
        "trust/root.crt",
        "lib.erb",
        "notebook.ipynb",
        // What only begins like a document, or lies where scripts do.
        "scripts/changelog-check",
        "license-x",
        "ci/readme-run",
        "scripts/news",
        // What tools run or install by.
        "web/__snapshots__/a.test.js.snap",
        "data/a.snap",
        "templates/mail.ftl",
        "requirements/dev.txt",
        "data/requirements/a.txt",
        "dev-requirements.txt",
        "tests/data/pom.xml",
        "samples/build.xml",
        "samples/web/npm-shrinkwrap.json",
        "samples/web/pnpm-lock.yaml",
        "samples/web/netlify.toml",
        "samples/py/tox.ini",
        "samples/py/pytest.ini",
        "data/Taskfile.yml",
        "data/playbook-web.yml",
        "data/jest.config.json",
        "apt.txt",
        "packages.txt",
        "meson_options.txt",
        "fixtures/mcp.json",
        "fixtures/devenv.yaml",
        "fixtures/buf.gen.yaml",
        "fixtures/justfile.toml",
        "data/moon.yml",
    ] {
        assert_eq!(new_file(path, "x\n"), [(1, NotCompiled)], "{path}");
    }
    assert_eq!(new_file("run.txt", "#!/bin/sh\nx\n")[0].1, NotCompiled);
    assert_eq!(new_file("linux.txt", "@EXPLICIT\nx\n")[0].1, NotCompiled);
    let mut mode = change("run.txt", Some(b"x\n"), Some(b"x\n"));
    mode.new.as_mut().unwrap().executable = true;
    assert_eq!(classed(mode, &[]), [(0, NotCompiled)]);
    let gone = change("release.sh", Some(b"x\n"), None);
    assert_eq!(classed(gone, &[]), [(0, NotCompiled)]);
    // The twins.
    for path in [
        "rates.csv",
        "tests/expected.txt",
        "logo.svg",
        ".gitignore",
        "tests/data/a.json",
        "fixtures/a.toml",
        "tests/data/ca.pem",
        "templates/mail.md",
        "tests/data/order.xml",
        "cases/rates.yaml",
        "prompts/system.md",
    ] {
        assert_eq!(new_file(path, "x\n"), [(1, Data)], "{path}");
    }
    for path in [
        "README.md",
        "docs/a.rst",
        "LICENSE",
        "LICENSE-MIT",
        "CHANGES.txt",
        "LICENSE-APACHE-2.0",
        "README.de.md",
        "crates/a/README.md",
    ] {
        assert_eq!(new_file(path, "x\n"), [(1, Inert)], "{path}");
    }
    let beside = [("crates/a/Cargo.toml", MANIFEST)];
    let licence = change("crates/a/LICENSE", None, Some(b"x\n"));
    assert_eq!(classed(licence, &beside), [(1, Inert)]);
    let seen = new_file("src/snapshots/a.snap", "---\nsource: a\n---\n");
    assert_eq!(seen[0].1, Data);
}

#[test]
fn code_of_a_document_that_is_taken_in_as_documentation_is_run_as_tests() {
    let page = |code: &str| {
        let text = |a: &str, code: &str| format!("# A\n\n{a}\n\n```rust\n{code}\n```\n");
        let (old, new) = (text("a", "f(1);"), text("b", code));
        change("README.md", Some(old.as_bytes()), Some(new.as_bytes()))
    };
    let taker = (
        "src/lib.rs",
        "#[doc = include_str!(\"../README.md\")]\nfn f() {}\n",
    );
    let acting = page("std::process::Command::new(\"sh\");");
    let classes = |change: Change| {
        let found = classed(change, &[taker]);
        found
            .into_iter()
            .map(|(_, class)| class)
            .collect::<Vec<_>>()
    };
    assert_eq!(classes(acting.clone()), [Unjudged, Unjudged]);
    assert_eq!(classes(page("f(2);")), [Tests, Tests]);
    assert_eq!(classes(page("f(1);")), [Inert]);
    assert_eq!(classed(acting, &[]), [(3, Inert), (6, Inert)]);
}

#[test]
fn a_page_that_a_generator_compiles_is_no_document() {
    let text = "# A\n<Script setup>\nx\n</script>\n";
    assert_eq!(new_file("docs/a.md", text)[0].1, NotCompiled);
    let page = || change("docs/guide/a.md", Some(b"a\n"), Some(b"b\n"));
    for generator in [
        "docs/.vitepress/config.mts",
        "docs/docusaurus.config.js",
        "astro.config.mjs",
        "mkdocs.yml",
    ] {
        assert_eq!(
            classed(page(), &[(generator, "")]),
            [(1, NotCompiled)],
            "{generator}"
        );
    }
    // The twins.
    for other in [
        "docs2/.vitepress/config.mts",
        "web/astro.config.mjs",
        "book.toml",
    ] {
        assert_eq!(classed(page(), &[(other, "")]), [(1, Inert)], "{other}");
    }
    let readme = change("README.md", Some(b"a\n"), Some(b"b\n"));
    assert_eq!(classed(readme, &[("mkdocs.yml", "")]), [(1, Inert)]);
}

#[test]
fn code_comments_and_code_of_another_platform_on_neighbouring_lines_are_told_apart() {
    let old = "#[cfg(windows)]\nfn f() -> u8 {\n    1\n}\n#[cfg(unix)]\nfn f() -> u8 {\n    1\n}\n";
    let new = old.replace("    1\n", "    // Two.\n    2\n");
    assert_eq!(
        edited("src/lib.rs", old, &new),
        [(3, Inert), (4, NotCompiled), (8, Inert), (9, Mutated)]
    );
    let part = "fn f() {\n    #[cfg(windows)]\n    g(1);\n    g(3);\n}\n";
    let more = part.replace("g(1)", "g(2)");
    assert_eq!(edited("src/lib.rs", part, &more), [(3, NotCompiled)]);
}

#[test]
fn tests_and_examples_are_a_class_of_their_own_and_may_start_nothing() {
    let test = "#[test]\nfn prices() {\n    assert_eq!(total(1), 2);\n}\n";
    assert_eq!(
        new_file("tests/a.rs", test),
        [(1, Tests), (2, Tests), (3, Tests), (4, Inert)]
    );
    let beside = "fn f() {}\n#[cfg(test)]\nmod tests {\n    const A: u8 = 1;\n}\n";
    let more = beside.replace('1', "2");
    assert_eq!(edited("src/lib.rs", beside, &more), [(4, Tests)]);
    let said = "//! A.\n//!\n//! ```\n//! f(1);\n//! ```\nfn f() {}\n";
    let other = said.replace("f(1)", "f(2)").replace("A.", "B.");
    assert_eq!(edited("src/lib.rs", said, &other), [(1, Inert), (4, Tests)]);
    for starting in [
        "std::process::Command::new(\"sh\").status()",
        "assert!(Command::new(\"sh\").status().is_ok())",
        "TcpStream::connect(\"a:1\")",
    ] {
        let acting = test.replace("assert_eq!(total(1), 2)", starting);
        assert_eq!(
            new_file("tests/a.rs", &acting)[2],
            (3, Unjudged),
            "{starting}"
        );
        let beside = beside.replace("const A: u8 = 1;", "fn t() {\n}");
        let acting = beside.replace("fn t() {", &format!("fn t() {{ {starting};"));
        assert_eq!(edited("src/lib.rs", &beside, &acting), [(4, Unjudged)]);
        let acting = said.replace("f(1)", starting);
        let found = edited("src/lib.rs", said, &acting);
        assert_eq!(found, [(4, Unjudged)]);
    }
    for renamed in [
        "use std::process::Command as C;\n",
        "use std::net::*;\n",
        "use std::{net::{*}};\n",
        "use std::*;\n",
        "type Tool = std::process::Command;\n",
        "impl Made for std::process::Command {}\n",
        "fn f() { std::process::Command ::new(\"sh\"); }\n",
        "fn f() { <std::process::Command>::new(\"sh\"); }\n",
        "fn f() { <::std::process::Command as Made>::made(); }\n",
        "mod own { pub struct Command; } fn f() { std::process::Command::new(\"sh\"); }\n",
        "mod p { pub use std::process::Command; } fn f() { p::Command::new(\"sh\"); }\n",
        "macro_rules! m { ($a:ident) => { std::process::$a::new(\"sh\") } }\n",
        "fn f() { \"a:1\".to_socket_addrs(); }\n",
    ] {
        assert_eq!(
            new_file("tests/a.rs", renamed),
            [(1, Unjudged)],
            "{renamed}"
        );
        let example = format!("//! A.\n//!\n//! ```\n//! {renamed}//! ```\nfn f() {{}}\n");
        let found = edited("src/lib.rs", said, &example);
        assert_eq!(found, [(4, Unjudged)], "{renamed}");
    }
    for acting in [
        "//! A.\n//!\n//!     std::process::Command::new(\"sh\");\nfn f() {}\n",
        "//! A.\n//!\n//! ```text\n//! A.\n//! ```\n//! ```\n//! # use std::net::*;\n//! ```\nfn f() {}\n",
        "//! A.\n//!\n//! ```\n//! extern \"C\" { fn system(a: *const u8); }\n//! ```\nfn f() {}\n",
        "//! A.\n//!\n//! ```\n//! Command::new(\"sh\"); ) '\n//! ```\nfn f() {}\n",
    ] {
        let found = edited("src/lib.rs", "//! A.\n//!\nfn f() {}\n", acting);
        assert!(
            found.iter().any(|(_, class)| *class == Unjudged),
            "{acting}"
        );
    }
    // Text becomes code where the word goes that made it text.
    let text = "//! ```text\n//! std::process::Command::new(\"sh\");\n//! ```\nfn f() {}\n";
    let run = text.replace("text", "");
    assert_eq!(edited("src/lib.rs", text, &run), [(1, Unjudged)]);
    // The twins: the program under test, and what is called alike.
    for own in [
        "use std::process::Command;\nfn f() {\n    Command::new(env!(\"CARGO_BIN_EXE_a\"));\n}\n",
        "use crate::cli::Command;\nfn f() {\n    g(Command::Price);\n}\n",
        "use assert_cmd::Command;\nfn f() {\n    Command::cargo_bin(\"a\");\n}\n",
        "fn f() {\n    std::fs::write(\"a\", \"b\");\n}\n",
        "use std::process::Command;\nfn f(a: &mut Command) -> Command {\n    g(a)\n}\n",
        "mod own {\n    pub struct Command;\n}\nfn f() {\n    own::Command::new();\n}\n",
    ] {
        let found = new_file("tests/a.rs", own);
        assert!(found.iter().all(|(_, class)| *class != Unjudged), "{own}");
    }
}

#[test]
fn a_condition_nobody_can_decide_hides_no_declaration() {
    let old = "#[cfg(strange)]\nstruct A {\n    a: u8,\n}\n";
    let new = old.replace("u8", "u16");
    assert_eq!(edited("src/lib.rs", old, &new), [(3, Unjudged)]);
    let plain = "struct A {\n    a: u8,\n}\n";
    let wide = plain.replace("u8", "u16");
    assert_eq!(edited("src/lib.rs", plain, &wide), [(2, Unjudged)]);
    let more = plain.replace("u8,\n", "u8,\n    b: u8,\n");
    assert_eq!(edited("src/lib.rs", plain, &more), [(3, Inert)]);
}

#[test]
fn a_macro_body_a_constant_and_compiled_data_are_unjudged() {
    let old = "macro_rules! m {\n    () => {\n        1\n    };\n}\nconst A: u8 = 1;\n";
    let new = old.replace('1', "2");
    assert_eq!(
        edited("src/lib.rs", old, &new),
        [(3, Unjudged), (6, Unjudged)]
    );
    let reader = (
        "src/lib.rs",
        "const T: &str = include_str!(\"../rates.csv\");\n",
    );
    let rates = change("rates.csv", Some(b"1\n2\n"), Some(b"1\n3\n"));
    assert_eq!(classed(rates.clone(), &[reader]), [(2, Unjudged)]);
    assert_eq!(classed(rates, &[]), [(2, Data)]);
}

#[test]
fn a_source_file_that_goes_takes_its_implementations_with_it_and_is_named() {
    let gone = |path: &str| classed(change(path, Some(b"impl Drop for A {}\n"), None), &[]);
    assert_eq!(gone("src/guard.rs"), [(0, Unjudged)]);
    assert_eq!(gone("src/bin/other.rs"), [(0, Unjudged)]);
    assert_eq!(gone("tests/guard.rs"), [(0, Inert)]);
    let uncommented = edited("src/lib.rs", "fn f() {}\n// said\n", "fn f() {}\n");
    assert_eq!(uncommented, [(0, Inert)]);
    for empty in ["", "\n", "// nothing here\n"] {
        let emptied = edited("src/guard.rs", "impl Drop for A {}\n", empty);
        assert!(
            emptied.iter().all(|(_, class)| *class == Unjudged),
            "{emptied:?}"
        );
        assert!(!emptied.is_empty());
    }
}

#[test]
fn a_source_file_that_moves_is_there_and_one_that_moves_to_the_tests_is_gone() {
    let moved_to = |new: &str| {
        let content = Some(&b"impl Drop for A {}\n"[..]);
        let changes = vec![
            change("src/guard.rs", content, None),
            change(new, None, content),
        ];
        let manifest: RelPath = "Cargo.toml".parse().unwrap();
        let tree: Tree<'_> = [(&manifest, MANIFEST.as_bytes())].into_iter().collect();
        let captured = captured(changes);
        let plan = MutationPlan::new(population::input(&captured.changes, &tree, [1; 32])).unwrap();
        let removed = |place: &&crate::mutation::Unjudged| place.why == Silence::Removed;
        plan.unjudged.iter().filter(removed).count()
    };
    assert_eq!(moved_to("src/guards/mod.rs"), 0);
    assert_eq!(moved_to("tests/guard.rs"), 1);
    assert_eq!(moved_to("docs/guard.txt"), 1);
}

#[test]
fn a_file_that_the_build_did_not_read_is_not_compiled_and_holds_no_mutants() {
    let text = "fn f() -> u8 {\n    1\n}\n";
    let captured = captured(vec![change(
        "other/src/lib.rs",
        None,
        Some(text.as_bytes()),
    )]);
    let tree: Tree<'_> = std::iter::empty().collect();
    let plan = MutationPlan::new(population::input(&captured.changes, &tree, [1; 32])).unwrap();
    assert!(!plan.mutants.is_empty());
    let plan = plan.reading(|_| false, []).unwrap();
    assert!(plan.mutants.is_empty() && plan.overlay.is_empty() && plan.is_vacuous());
    let files = ChangedFile::all(&captured.changes, &tree, None);
    let found = classes(&files, &plan);
    let found: Vec<_> = found.iter().map(|l| (l.line, l.class)).collect();
    assert_eq!(found, [(1, NotCompiled), (2, NotCompiled), (3, Inert)]);
}

#[test]
fn a_declaration_that_unchanged_lines_of_another_file_can_name_is_unjudged() {
    let unit = "pub const UNIT: u32 = 2;\n";
    let short = format!("{unit}pub type u64 = u16;\n");
    let changed = |new: &str| change("src/prices.rs", Some(unit.as_bytes()), Some(new.as_bytes()));
    let everything = ("src/main.rs", "use prices::*;\nfn f() -> u64 {\n    1\n}\n");
    let named = (
        "src/main.rs",
        "use prices::UNIT;\nfn f() -> u64 {\n    1\n}\n",
    );
    let tests = (
        "src/main.rs",
        "fn f() -> u64 {\n    1\n}\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n",
    );
    assert_eq!(classed(changed(&short), &[everything]), [(2, Unjudged)]);
    assert_eq!(classed(changed(&short), &[named]), [(2, Inert)]);
    assert_eq!(classed(changed(&short), &[tests]), [(2, Inert)]);
    let other = short.replace("u64", "Small");
    assert_eq!(classed(changed(&other), &[everything]), [(2, Inert)]);
    let fee = "impl Order {\n    fn fee(&self) {}\n    fn own(&self) {}\n}\n";
    let gone = fee.replace("    fn fee(&self) {}\n", "");
    let plan = |caller: &str| {
        let change = change("src/order.rs", Some(fee.as_bytes()), Some(gone.as_bytes()));
        let path: RelPath = "src/main.rs".parse().unwrap();
        let tree: Tree<'_> = [(&path, caller.as_bytes())].into_iter().collect();
        let plan = population::input(&[change], &tree, [1; 32]);
        let places = MutationPlan::new(plan).unwrap().unjudged;
        places.iter().map(|place| place.id()).collect::<Vec<_>>()
    };
    let place = ["src/order.rs:1 unjudged removed"];
    assert_eq!(plan("fn f(o: Order) {\n    o.fee();\n}\n"), place);
    assert_eq!(plan("fn f(o: Order) {\n    o.own();\n}\n"), [""; 0]);
}

#[test]
fn a_document_that_another_language_takes_in_or_a_shell_runs_is_no_document() {
    let classed = |change: Change, source: &str| {
        let path: RelPath = "src/main.c".parse().unwrap();
        let tree: Tree<'_> = [(&path, source.as_bytes())].into_iter().collect();
        ChangedFile::all(&[change], &tree, Some(Language::C))
            .remove(0)
            .whole
    };
    let text = change("docs/rates.md", Some(b"1\n"), Some(b"2\n"));
    assert_eq!(classed(text.clone(), "int a;\n"), Some(Inert));
    let taken = classed(text.clone(), "#include \"../docs/rates.md\"\n");
    assert_eq!(taken, Some(Unjudged));
    let script = change("install.md", None, Some(b"#!/bin/sh\nx\n"));
    assert_eq!(classed(script, ""), Some(NotCompiled));
    let mut run = text;
    run.new.as_mut().unwrap().executable = true;
    assert_eq!(classed(run, ""), Some(NotCompiled));
}

#[test]
fn a_document_beside_a_name_that_no_rule_reads_is_told_by_the_compiler() {
    let documents = "#![doc = include_str!(\"../README.md\")]\n";
    let readme = change("README.md", Some(b"1\n"), Some(b"2\n"));
    let unseen = |more: &str| {
        let path: RelPath = "src/lib.rs".parse().unwrap();
        let text = format!("{documents}{more}");
        let tree: Tree<'_> = [(&path, text.as_bytes())].into_iter().collect();
        let files = ChangedFile::all(std::slice::from_ref(&readme), &tree, None);
        files[0].is_read_unseen()
    };
    assert!(unseen(
        "const T: &str = include_str!(concat!(\"../READ\", \"ME.md\"));\n"
    ));
    assert!(unseen("m! { $x => include_str!($x) }\n"));
    assert!(!unseen(""));
    assert!(!unseen("const T: &str = include_str!(\"../rates.csv\");\n"));
    assert!(!unseen(
        "const T: &str = include_str!(concat!(env!(\"OUT_DIR\"), \"/a\"));\n"
    ));
}

#[test]
fn what_a_build_script_may_read_is_unjudged() {
    let proto = change("proto/a.txt", Some(b"1\n"), Some(b"2\n"));
    let inside = ("codec/build.rs", "fn main() { read(\"schema.txt\"); }\n");
    let manifest = ("codec/Cargo.toml", MANIFEST);
    assert_eq!(classed(proto.clone(), &[inside, manifest]), [(1, Data)]);
    let climbing = (
        "codec/build.rs",
        "fn main() { read(\"../proto/a.txt\"); }\n",
    );
    assert_eq!(classed(proto, &[climbing, manifest]), [(1, Unjudged)]);
}
