//! Toolchain profiles that need an image of their own. (C and Python fly as plans.)

use crate::conformance::{WALL_MS, case, order, tree};
use crate::ground::{Ground, session_image_with};
use flightproof_evidence::{BuildAnswer, Diagnostic, Ending, Observation};
use flightproof_session::docker::{DockerSession, Endpoint};
use flightproof_session::profile::{Profile, ProfileWorkshop};
use flightproof_session::{Session as _, observe};

/// A session with a program built in it by a profile, and what it stands on.
fn built(
    profile: &str,
    files: &[(&str, &str)],
) -> Result<(Ground, DockerSession), Box<BuildAnswer>> {
    let endpoint = Endpoint::discover().unwrap_or_else(|e| panic!("{e}"));
    let image = session_image_with(&endpoint, &["--with", profile]);
    let ground = Ground::on(endpoint, image);
    let mut session = ground.open();
    let profile = Profile::named(profile).unwrap();
    let workshop = ProfileWorkshop::furnish(&mut session, profile, &tree(files), WALL_MS);
    match workshop.unwrap().build(&mut session, &order()).unwrap() {
        BuildAnswer::Built(built) => {
            println!("{}", built.record.profile);
            Ok((ground, session))
        }
        other => Err(Box::new(other)),
    }
}

/// The errors of a build that must have failed.
fn errors<T>(answer: Result<T, Box<BuildAnswer>>) -> Vec<Diagnostic> {
    match answer.map_err(|answer| *answer) {
        Err(BuildAnswer::Failed { diagnostics, .. }) => diagnostics,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was built"),
    }
}

fn answer(session: &mut DockerSession, words: &[&str], stdin: &str) -> Observation {
    let mut asked = case(words);
    asked.stdin = stdin.as_bytes().to_vec().into();
    observe::run(session, &asked).unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

/// Both are asked the same: to double a number, to reach for the network, to read the machine.
fn is_judged_and_held(profile: &str, files: &[(&str, &str)]) {
    let (_ground, mut session) =
        built(profile, files).unwrap_or_else(|answer| panic!("{answer:?}"));
    let quiet = Ending::Exited { code: 0 };
    for _ in 0..2 {
        let seen = answer(&mut session, &[], "21\n");
        assert_eq!((seen.ending, &*seen.stdout), (quiet.clone(), &b"42\n"[..]));
    }
    let read = answer(&mut session, &["read"], "");
    assert_eq!((read.ending, &*read.stdout), (quiet, &b"closed\n"[..]));
    let dialled = answer(&mut session, &["dial"], "");
    assert_eq!(dialled.ending, Ending::ForbiddenCall);
    assert!(session.close().unwrap().is_clean());
}

const GO_MODULE: (&str, &str) = ("go.mod", "module demo\n\ngo 1.19\n");
const GO: &str = r#"package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "dial" {
		_, err := net.Dial("tcp", "1.1.1.1:80")
		fmt.Println(err)
		return
	}
	if len(os.Args) > 1 {
		for _, path := range []string{"/proc/self/exe", "/etc/passwd", "/flight/src/go.mod"} {
			if _, err := os.ReadFile(path); err == nil {
				fmt.Println(path)
			}
		}
		fmt.Println("closed")
		return
	}
	var n int
	fmt.Scan(&n)
	fmt.Println(2 * n)
}
"#;

#[test]
fn a_program_in_go_is_built_offline_judged_and_held() {
    is_judged_and_held("go", &[GO_MODULE, ("cmd/demo/main.go", GO)]);
}

#[test]
fn an_error_in_go_is_named_by_file_and_line() {
    let wrong = GO.replace("2 * n", "2 * m");
    let answer = built("go", &[GO_MODULE, ("cmd/demo/main.go", &wrong)]);
    let diagnostics = errors(answer);
    assert_eq!(diagnostics[0].file, "cmd/demo/main.go");
    assert_eq!(diagnostics[0].message, "undefined: m");
}

const NODE: &str = r#"#!/usr/bin/env node
const { double } = require('./lib/double');
if (process.argv[2] === 'dial') {
  require('net').connect(80, '1.1.1.1').on('error', (e) => console.log(e.code));
} else if (process.argv[2] === 'read') {
  for (const path of ['/proc/self/exe', '/etc/passwd', '/flight/src/demo.js', '/flight/src']) {
    try { require('node:fs').statSync(path); console.log(path); } catch {}
  }
  console.log('closed');
} else {
  let text = '';
  process.stdin.on('data', (d) => (text += d)).on('end', () => console.log(double(Number(text))));
}
"#;
const DOUBLE: (&str, &str) = ("lib/double.js", "exports.double = (n) => 2 * n;\n");

#[test]
fn a_program_in_javascript_is_built_offline_judged_and_held() {
    is_judged_and_held("node", &[("demo.js", NODE), DOUBLE]);
}

#[test]
fn an_error_in_javascript_is_named_by_file_and_line_and_nothing_is_run() {
    for (wrong, line, message) in [
        ("\nexports.double = (n) => 2 * ;\n", 2, "SyntaxError"),
        ("// fine\nimport x from 'y';\n", 2, "SyntaxError"),
    ] {
        let answer = built("node", &[("demo.js", NODE), ("lib/double.js", wrong)]);
        let diagnostics = errors(answer);
        assert_eq!(
            (diagnostics[0].file.as_str(), diagnostics[0].line),
            ("lib/double.js", line)
        );
        assert!(diagnostics[0].message.contains(message), "{diagnostics:?}");
    }
}

const TYPED_DOUBLE: (&str, &str) = (
    "lib/double.ts",
    "export type Double = (n: number) => number;\nexports.double = ((n: number): number => 2 * n) satisfies Double;\n",
);

#[test]
fn a_program_in_typescript_is_built_offline_judged_and_held() {
    let typed = NODE
        .replace("{ double } =", "{ double }: { double: Double } =")
        .replace("./lib/double", "./lib/double.ts")
        .replace("demo.js", "demo.ts")
        .replace("let text =", "let text: string =");
    let typed = typed.replacen(
        '\n',
        "\nimport type { Double } from './lib/double.ts';\n",
        1,
    );
    is_judged_and_held("typescript", &[("demo.ts", &typed), TYPED_DOUBLE]);
}

#[test]
fn an_error_in_typescript_is_named_by_file_and_line_and_nothing_is_run() {
    let (file, _) = TYPED_DOUBLE;
    for (wrong, line, message) in [
        ("// fine\nenum A { B }\n", 2, "enum is not supported"),
        ("\nlet a: = 1;\n", 2, "Unexpected token"),
        (
            "let a: 1;\nexports.double = (n) => 2 * ;\n",
            2,
            "SyntaxError",
        ),
        ("// fine\nimport x from 'y';\n", 2, "SyntaxError"),
    ] {
        let answer = built(
            "typescript",
            &[("demo.ts", "require('./lib/double.ts');\n"), (file, wrong)],
        );
        let diagnostics = errors(answer);
        let found = (diagnostics[0].file.as_str(), diagnostics[0].line);
        assert_eq!(found, (file, line));
        assert!(diagnostics[0].message.contains(message), "{diagnostics:?}");
    }
}
