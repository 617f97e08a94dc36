use super::*;

fn all() -> impl Iterator<Item = Profile> {
    PROFILES
        .iter()
        .map(|(name, _)| Profile::named(name).unwrap())
}

fn paths(names: &[&str]) -> Vec<RelPath> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[test]
fn every_profile_is_read_whole_and_named_for_its_file() {
    for ((name, _), profile) in PROFILES.iter().zip(all()) {
        assert_eq!(profile.name, *name);
        assert_eq!(profile.schema, SCHEMA);
        assert!(profile.env.contains_key("PATH") && profile.env.contains_key("TMPDIR"));
        assert!(numbers(&profile.probe.oldest).is_some(), "{name}");
        // Rust is built by a workshop of its own.
        assert_eq!(profile.build.is_empty(), *name == "rust");
        for helper in &profile.helper {
            assert!(HELPERS.iter().any(|(known, _)| *known == helper.name));
        }
    }
    let refused = Profile::named("cobol").unwrap_err();
    assert_eq!(refused.code, SessionCode::ProfileUnknown);
    assert_eq!(
        refused.detail,
        "cobol; known are c, go, node, python, rust, typescript"
    );
}

#[test]
fn every_place_of_a_command_line_is_filled_in() {
    for profile in all() {
        let tree = paths(&["src/a.c", "src/deep/b.c", "test/t.c", "src/a.h"]);
        let tree: Vec<&RelPath> = tree.iter().collect();
        let (program, args) = profile.question();
        let steps = profile.steps("demo", "/flight/target/program-x", &tree);
        for word in [program].iter().chain(&args).chain(
            steps
                .iter()
                .flat_map(|(program, args)| [program].into_iter().chain(args)),
        ) {
            assert!(!word.contains(['{', '}']), "{}: {word}", profile.name);
        }
        assert!(!profile.environment().values().any(|v| v.contains('{')));
    }
    let tree = paths(&["src/a.c", "test/t.c", "src/a.h"]);
    let steps = Profile::named("c")
        .unwrap()
        .steps("demo", "p", &tree.iter().collect::<Vec<_>>());
    let sources = |args: &[String]| args.iter().filter(|a| a.ends_with(".c")).count();
    assert_eq!(sources(&steps[0].1), 1);
}

#[test]
fn a_toolchain_that_is_missing_strange_or_too_old_is_named_with_its_cure() {
    let table = [
        ("c", "cc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright", true),
        ("c", "cc (Debian 8.3.0-6) 8.3.0", false),
        ("c", "", false),
        ("c", "evil 99.0", false),
        ("python", "Python 3.11.2", true),
        ("python", "Python 3.9.18", false),
        ("go", "go version go1.19.8 linux/amd64", true),
        ("go", "go version go1.9 linux/amd64", false),
        ("node", "v18.20.4", true),
        ("node", "v16.20.2", false),
        ("node", "node: not found", false),
        ("typescript", "v22.18.0", true),
        ("typescript", "v24.19.0", true),
        (
            "typescript",
            "v20.20.2, which takes no types off: 0.0",
            false,
        ),
        (
            "typescript",
            "v23.4.0, which takes no types off: 0.0",
            false,
        ),
        ("typescript", "", false),
        ("rust", "rustc 1.95.0 (59807616e 2026-04-14)", true),
        ("rust", "rustc 1.70.0 (90c541806 2023-05-31)", false),
    ];
    for (name, said, good) in table {
        let answer = Profile::named(name).unwrap().version(said.as_bytes());
        assert_eq!(answer.is_ok(), good, "{said}: {answer:?}");
        if let Err(refused) = answer {
            assert_eq!(refused.code, SessionCode::ToolchainInvalid);
            assert!(refused.detail.contains("install") || refused.detail.contains("image"));
        }
    }
}

#[test]
fn what_would_have_to_be_fetched_is_refused_and_its_twin_is_not() {
    for (name, bad, good) in [
        ("python", "requirements.txt", "requirements.md"),
        ("python", "tools/setup.py", "tools/set_up.py"),
        ("go", "go.sum", "go.mod"),
        ("node", "package-lock.json", "package.json"),
        ("typescript", "package-lock.json", "tsconfig.json"),
    ] {
        let profile = Profile::named(name).unwrap();
        let refused = profile.check(paths(&[good, bad]).iter()).unwrap_err();
        assert_eq!(refused.code, SessionCode::DependencyUnsupported);
        assert_eq!(profile.check(paths(&[good]).iter()), Ok(()));
    }
}

#[test]
fn errors_are_found_in_what_compilers_say_and_nothing_else_is() {
    let said = b"/flight/src/src/main.c:3:14: error: expected ';' before '}' token\n\
        src/main.c: In function 'main':\n\
        /flight/src/src/main.c:3:14: error: expected ';' before '}' token\n\
        /flight/src/../../etc/passwd:1:1: error: outside\n\
        \xff\xfe:x:y: error: \x1b[31m\n\
        /usr/include/stdio.h:9:1: error: not of the tree\n";
    let found = Profile::named("c").unwrap().diagnostics(said);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].file.as_str(), found[0].line), ("src/main.c", 3));
    let said = b"/flight/src/pricing.py:7: error: invalid syntax\n";
    let found = Profile::named("python").unwrap().diagnostics(said);
    assert_eq!((found[0].file.as_str(), found[0].line), ("pricing.py", 7));
    assert_eq!(found[0].message, "invalid syntax");
    let said = b"/flight/src/lib/price.js:4: error: SyntaxError: Unexpected token\n";
    let found = Profile::named("node").unwrap().diagnostics(said);
    assert_eq!((found[0].file.as_str(), found[0].line), ("lib/price.js", 4));
}
