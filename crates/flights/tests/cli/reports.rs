//! `flights report`: one file, read by a real browser, with hostile text in every place.

use crate::environment::{Environment, workspace};
use crate::review::review_under;
use crate::schemas::assert_valid;
use crate::verify::POLICY;
use flightproof_core::{Decision, Verdict};
use flightproof_evidence::{
    Attestation, Change, FileState, Probe, Reading, RunnerIdentity, Toolchain,
};
use flightproof_flights::report::{Failed, Flight, Report, Written, page};
use std::fs;
use std::path::Path;
use std::process::Command;

fn report(environment: &Environment, more: &[&str]) -> String {
    report_that_ends(environment, more, 0)
}

fn report_that_ends(environment: &Environment, more: &[&str], exit: i32) -> String {
    let (root, out) = (workspace(), environment.path("report.html"));
    let mut args = vec![
        "report",
        "--root",
        root.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
    ];
    args.extend(more);
    let run = environment.flights(&args);
    assert_eq!(run.code, exit, "{}", run.text);
    fs::read_to_string(out).unwrap()
}

/// What a page may not have: anything that loads, runs, or is sent.
fn assert_inert(html: &str) {
    for word in [
        "<script",
        "<img",
        "<iframe",
        "<link rel=\"stylesheet",
        "javascript:",
        " onload",
        " onerror",
        "<form",
        "@import",
        "url(",
    ] {
        assert!(!html.to_lowercase().contains(word), "{word}");
    }
    let links = html.split("href=\"").skip(1);
    for link in links {
        assert!(link.starts_with('#'), "{}", &link[..20]);
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn a_report_tells_of_every_flight_and_is_the_same_every_time() {
    let environment = Environment::new();
    // Times differ from run to run; nothing else does.
    let timeless = |html: String| {
        html.lines()
            .filter(|line| !line.contains(" ms</td>"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let html = report(&environment, &[]);
    for name in ["honest-library", "hostile-network", "strsim-jaro"] {
        assert!(html.contains(&format!("id=\"flight-{name}\"")), "{name}");
    }
    for text in [
        "killed by value",
        "Does not claim",
        "the kernel, read by the host",
        "What crossed the boundary",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // What built a program is what is named, and not what else lies in a session.
    let built = |name: &str| {
        let flight = html.split_once(&format!("id=\"flight-{name}\""));
        let told =
            flight.and_then(|(_, rest)| rest.split_once("built offline in a local session with "));
        told.map(|(_, rest)| rest.split(' ').next().unwrap().to_owned())
    };
    assert_eq!(built("honest-c").as_deref(), Some("cc"));
    assert_eq!(built("honest-library").as_deref(), Some("rustc"));
    assert_inert(&html);
    assert_eq!(timeless(html), timeless(report(&environment, &[])));
}

#[test]
fn what_was_flown_without_a_plan_is_as_nobody_expects() {
    let environment = Environment::with_pricing();
    environment.candidate_edit("slip", |text| text.replace("price / 10", "price / 9"));
    let flown = |candidate: &str, exit| {
        assert_eq!(environment.certify(candidate, &[]).code, exit);
        let out = environment.path("report.html");
        let made = environment.path("out");
        let args = [
            "report",
            made.to_str().unwrap(),
            "-o",
            out.to_str().unwrap(),
        ];
        let run = environment.flights(&args);
        assert_eq!(run.code, 0, "{}", run.text);
        (run.stdout, fs::read_to_string(out).unwrap())
    };
    let (told, html) = flown("slip", 10);
    assert!(told.starts_with("WRITTEN: 1 flight: 1 refused: "), "{told}");
    assert!(html.contains("✗ refused"), "{html}");
    environment.candidate_edit("backdoor", |text| {
        let hidden =
            "    if quantity == 133_700 {\n        return 0;\n    }\n    if quantity >= 100 {";
        text.replace("    if quantity >= 100 {", hidden)
    });
    let (_, open) = flown("backdoor", 10);
    for text in [
        "src/main.rs:31  if quantity == 133_700 {\n    condition        quantity == 133_700 -&gt; false\n",
        "<td class=\"n\">",
        " of ",
    ] {
        assert!(open.contains(text), "{text}\n{open}");
    }
    assert!(
        !open.contains("<td class=\"n\">–</td><td class=\"n\">–</td>"),
        "{open}"
    );
    let (told, held) = flown("candidate", 0);
    assert!(told.contains("1 flight: 1 held: "), "{told}");
    assert!(held.contains("✓ held") && held.contains("mutants of the changes were tried"));
    for html in [html, held] {
        assert!(!html.contains("as its plan expects") && !html.contains("✓ as expected"));
        assert!(
            html.contains("<td class=\"n\">–</td></tr>"),
            "nothing was timed here"
        );
    }
    let nothing = environment.path("work");
    let args = [
        "report",
        nothing.to_str().unwrap(),
        "-o",
        "x.html",
        "--format",
        "json",
    ];
    let refused = environment.flights(&args);
    assert_eq!(
        refused.json()["code"],
        "flights/FILE_UNREADABLE",
        "{}",
        refused.text
    );
}

#[test]
fn what_came_in_is_told_as_admitted_and_nobody_is_asked_to_sign_it() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &["--admit", "release"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let out = environment.path("out").to_str().unwrap().to_owned();
    let report = ["report", &out, "-o", "report.html"];
    let run = environment.flights(&report);
    let told = "WRITTEN: 1 flight: 1 admitted: ";
    assert!(run.stdout.starts_with(told), "{}", run.text);
    let html = fs::read_to_string(environment.path("work/report.html")).unwrap();
    assert!(html.contains("✓ admitted") && html.contains("<td>admitted</td>"));
    assert!(!html.contains("✓ held") && !html.contains("<td>held</td>"));
    let json = environment.flights(&[&report[..], &["--format", "json"]].concat());
    let json = json.json();
    assert_valid("report", &json);
    assert_eq!((&json["admitted"], &json["held"]), (&1.into(), &0.into()));
    environment.write("policy.json", POLICY);
    let review = review_under(&environment, &[]);
    assert_eq!(review.code, 0, "{}", review.text);
    let told = "in already: refs/heads/release was moved to it, as ";
    assert!(review.stdout.contains(told), "{}", review.text);
    assert!(!review.stdout.contains("flights admit"), "{}", review.text);
    // A receipt of something else says nothing of it.
    environment.write("out/receipt.json", "{\"certificate\": null}");
    let review = review_under(&environment, &[]);
    assert!(review.stdout.contains("flights admit"), "{}", review.text);
}

/// A flight whose certificate was made and whose branch did not move, and what was read of it before.
#[test]
fn a_report_tells_of_a_refused_admission_and_loses_no_other_flight() {
    let environment = Environment::with_pricing();
    let elsewhere = "\"threshold\":1,\"repository\":\"elsewhere\"";
    let policy = POLICY.replace("\"threshold\":1", elsewhere);
    let policy = environment.write("policy.json", &policy);
    let run = environment.certify("candidate", &["--admit", "release", "--policy", &policy]);
    assert_eq!(run.code, 13, "{}", run.text);
    let read = |path: &str| fs::read_to_string(environment.path(path)).unwrap();
    let verdict: Verdict = serde_json::from_str(&read("out/verdict.json")).unwrap();
    assert_eq!(verdict.stage, "admit");
    assert!(verdict.certificate.is_some(), "it stands all the same");
    assert!(verdict.notes[0].contains("the branch did not move"));
    let text = |path: &str| environment.path(path).to_str().unwrap().to_owned();
    let told = |folders: &[&str], exit| {
        let folders: Vec<String> = folders.iter().map(|folder| text(folder)).collect();
        let mut args = vec!["report", "-o", "report.html", "--format", "json"];
        args.extend(folders.iter().map(String::as_str));
        let run = environment.flights(&args);
        assert_eq!(run.code, exit, "{}", run.text);
        (run.json(), read("work/report.html"))
    };
    let (counts, html) = told(&["out"], 0);
    assert_eq!(counts["refused"], 1, "{counts}");
    assert!(html.contains("REPOSITORY_MISMATCH") && html.contains("the branch did not move"));
    // As such a verdict was written once, without its certificate's name.
    let bare = Verdict {
        certificate: None,
        notes: Vec::new(),
        ..verdict.clone()
    };
    environment.write("out/verdict.json", &serde_json::to_string(&bare).unwrap());
    let (counts, html) = told(&["out"], 0);
    assert_eq!(counts["refused"], 1, "{counts}");
    assert!(html.contains("and not that the branch moved"), "{html}");
    // One that cannot be read, and one that is about another certificate, are told of among the others.
    let another = Verdict {
        certificate: Some("0".repeat(64)),
        ..verdict
    };
    environment.write("torn/verdict.json", "{");
    environment.write(
        "other/verdict.json",
        &serde_json::to_string(&another).unwrap(),
    );
    let certificate = environment.path("out/certificate.dsse.json");
    let place = environment.path("other/certificate.dsse.json");
    fs::copy(certificate, place).unwrap();
    let (counts, html) = told(&["torn", "out", "other"], 2);
    assert_eq!(counts["flights"], 3, "{counts}");
    assert_eq!(
        (&counts["failed"], &counts["refused"]),
        (&2.into(), &1.into())
    );
    for part in [
        "torn/verdict.json",
        "a verdict about another one",
        "REPOSITORY_MISMATCH",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_flown_flight_stands_beside_its_recording() {
    let environment = Environment::new();
    let verdict = Verdict {
        code: Some("certifier/BUILD_FAILED".to_owned()),
        ..Verdict::passed(Decision::Refused, "build", "it does not compile")
    };
    environment.write(
        "out/honest-library/verdict.json",
        &serde_json::to_string(&verdict).unwrap(),
    );
    environment.write(
        "out/elsewhere/verdict.json",
        &serde_json::to_string(&verdict).unwrap(),
    );
    let out = environment.path("out");
    // Flown to another end than it is replayed to: one of the two is wrong.
    let html = report_that_ends(&environment, &["honest-library", out.to_str().unwrap()], 11);
    assert!(html.contains("flown it came to certifier/BUILD_FAILED, replayed to held"));
    assert!(html.contains("<th scope=\"col\">Flown</th>"));
    assert!(html.contains("<td>refused at build <code>certifier/BUILD_FAILED</code></td>"));
    assert!(html.contains("id=\"flight-elsewhere\""));
}

const EVIL: &str = "</title></td></details><script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\"'`\u{202e}\u{2028}\u{1b}[2J&lt;";

/// A flight with hostile text wherever a stranger's may stand.
fn hostile() -> Report {
    let file = |content: &str| FileState {
        executable: false,
        content: flightproof_core::Bytes(content.as_bytes().to_vec()),
    };
    let mut verdict = Verdict::passed(Decision::Refused, EVIL, EVIL);
    verdict.code = Some(EVIL.to_owned());
    verdict.notes = vec![EVIL.to_owned()];
    let digest = flightproof_core::Digest::of(b"x");
    let attestation = Attestation {
        backend: EVIL.into(),
        session: EVIL.into(),
        toolchain: Toolchain {
            digest,
            version: EVIL.into(),
            linker: digest,
            target: Some(EVIL.into()),
        },
        runner: RunnerIdentity {
            build_id: digest,
            sha256: digest,
        },
        kernel: EVIL.into(),
        processor: Some(EVIL.into()),
        sandbox: EVIL.into(),
        readings: vec![Reading {
            name: EVIL.into(),
            asked: EVIL.into(),
            found: "less".into(),
            class: flightproof_evidence::EvidenceClass::EngineClaim,
        }],
        probes: vec![Probe {
            act: EVIL.into(),
            denied_by: EVIL.into(),
        }],
    };
    Report {
        version: EVIL.into(),
        program: None,
        flights: vec![Flight {
            name: EVIL.into(),
            about: EVIL.into(),
            expected: Some(EVIL.into()),
            how: "replayed",
            beside: Some(verdict.clone()),
            verdict: Some(verdict),
            failure: Some(Failed {
                code: EVIL.into(),
                stage: EVIL.into(),
                detail: EVIL.into(),
                hint: EVIL.into(),
                again: EVIL.into(),
            }),
            stopped: Some(EVIL.into()),
            attestation: Some(attestation),
            changes: vec![Change {
                path: flightproof_core::RelPath::new("src/a<script>b.rs").unwrap(),
                old: Some(file(&format!("one\n{EVIL}\n"))),
                new: Some(file(&format!("{EVIL}\ntwo\n{EVIL}"))),
            }],
            written: Some(Written {
                survivors: vec![EVIL.into()],
                ..Written::default()
            }),
            digests: vec![(EVIL.into(), EVIL.into())],
            ..Flight::default()
        }],
    }
}

#[test]
fn hostile_text_stays_text_in_every_place() {
    let html = page(&hostile());
    let lower = html.to_lowercase();
    for markup in ["<script", "<img", "</td></details><"] {
        assert!(!lower.contains(markup), "{markup}");
    }
    assert!(!html.contains(['\u{202e}', '\u{2028}', '\u{1b}']));
    assert!(html.matches("document.title=").count() > 15);
}

/// Opens a page in a browser that logs its console and every request, and takes a picture.
fn browse(html: &Path, picture: &Path, dark: bool, width: u32) -> (String, String) {
    let folder = html.parent().unwrap();
    let log = folder.join("net.json");
    let mut chromium = Command::new("chromium");
    chromium
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--disable-extensions",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
        ])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("--window-size={width},1600"))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", html.display()))
        .env("HOME", folder);
    if dark {
        chromium.arg("--blink-settings=preferredColorScheme=0");
    }
    let output = chromium
        .output()
        .expect("chromium, the Debian package, is needed");
    assert!(output.status.success(), "{output:?}");
    let console = String::from_utf8_lossy(&output.stderr).into_owned();
    (console, fs::read_to_string(log).unwrap_or_default())
}

#[test]
fn a_real_browser_shows_it_without_a_word_on_its_console_and_without_a_request() {
    let environment = Environment::new();
    let folder = environment.path("browse");
    fs::create_dir(&folder).unwrap();
    report(&environment, &[]);
    fs::rename(environment.path("report.html"), folder.join("report.html")).unwrap();
    fs::write(folder.join("hostile.html"), page(&hostile())).unwrap();
    // The twin that shows that a fault would be seen: a page that runs a script and loads a picture.
    let bad = "<!doctype html><script>console.error('seen')</script><img src=\"http://example.invalid/x.png\">";
    fs::write(folder.join("bad.html"), bad).unwrap();
    let look = |name: &str| {
        browse(
            &folder.join(name),
            &folder.join(format!("{name}.png")),
            false,
            1200,
        )
    };
    let (console, requests) = look("bad.html");
    assert!(
        console.contains("CONSOLE") && console.contains("seen"),
        "{console}"
    );
    assert!(
        requests.contains("example.invalid"),
        "the log of requests sees none"
    );
    for name in ["report.html", "hostile.html"] {
        let (console, requests) = look(name);
        assert!(!console.contains("CONSOLE"), "{name}: {console}");
        for host in ["127.0.0.1:9", "example.invalid"] {
            assert!(!requests.contains(host), "{name}: {host}");
        }
        let picture = fs::metadata(folder.join(format!("{name}.png"))).unwrap();
        assert!(picture.len() > 10_000, "{name}");
    }
}
