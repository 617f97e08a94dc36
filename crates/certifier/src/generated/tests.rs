use super::*;
use crate::LineClass;
use crate::certification::Certification;
use crate::samples::{captured, change};
use crate::witness::Witness;
use flightproof_evidence::{GeneratedEntry, GeneratedFile};

const RULE: &str = "schema = \"flightproof/generated/1\"\n[[generated]]\nname = \"rates\"\n\
    argv = [\"/usr/bin/python3\", \"tools/rates.py\"]\ntools = [\"tools/rates.py\"]\n\
    inputs = [\"data\"]\noutputs = [\"src/rates.rs\", \"src/gen\"]\n";
const MADE: &str = "pub const RATE: u64 = 7;\n";

fn rules() -> GeneratedRules {
    GeneratedRules::parse(RULE.as_bytes()).unwrap()
}

/// What a session says after a run that made these files.
fn left(files: &[(&str, &str)]) -> Generated {
    let entry = |(path, text): &(&str, &str)| GeneratedEntry {
        path: (*path).to_owned(),
        file: Some(GeneratedFile {
            executable: false,
            sha256: Digest::of(text.as_bytes()),
        }),
    };
    Generated {
        ending: Ending::Exited { code: 0 },
        tail: Vec::new().into(),
        entries: files.iter().map(entry).collect(),
    }
}

fn edit(path: &str) -> Change {
    change(path, Some(b"1\n"), Some(MADE.as_bytes()))
}

/// What two runs come to on a tree with these files beside the tool, of which these changed.
fn judged(
    changes: Vec<Change>,
    files: &[(&str, &str)],
    runs: [Generated; 2],
) -> Result<Regenerated, Refusal> {
    let mut all = files.to_vec();
    all.extend([("tools/rates.py", "x"), ("data/a.csv", MADE)]);
    let paths: Vec<RelPath> = all.iter().map(|(path, _)| path.parse().unwrap()).collect();
    let texts = all.iter().map(|(_, text)| text.as_bytes());
    let tree: Tree<'_> = paths.iter().zip(texts).collect();
    let (captured, rules) = (captured(changes), rules());
    let mut found = Regeneration::new(&rules, &captured, &tree)?;
    for rule in found.rules() {
        found.judge(rule, &runs)?;
    }
    Ok(found.finish())
}

fn code(result: Result<Regenerated, Refusal>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn equal_bytes_are_regenerated_and_name_what_steered_them() {
    let made = [("src/rates.rs", MADE)];
    let changes = vec![edit("data/a.csv"), edit("src/rates.rs")];
    let found = judged(changes, &made, [left(&made), left(&made)]).unwrap();
    assert_eq!(found.rules[0].files, ["src/rates.rs".parse().unwrap()]);
    assert!(found.has(&"src/rates.rs".parse().unwrap()));
    assert!(found.named(&"data/a.csv".parse().unwrap()));
    // A change of nothing that a rule makes runs no rule.
    let other = judged(vec![edit("data/a.csv")], &made, [left(&[]), left(&[])]).unwrap();
    assert_eq!(other, Regenerated::default());
    // Documents steer nothing.
    let page = [("src/gen/rates.md", MADE)];
    let changes = vec![edit("data/a.csv"), edit("src/gen/rates.md")];
    let found = judged(changes, &page, [left(&page), left(&page)]).unwrap();
    assert!(!found.named(&"data/a.csv".parse().unwrap()));
}

#[test]
fn what_a_generator_does_not_make_is_never_regenerated() {
    let differs = "certifier/REGENERATED_DIFFERS";
    let made = [("src/rates.rs", MADE), ("src/gen/a.rs", MADE)];
    let backdoor = [("src/rates.rs", MADE), ("src/gen/a.rs", "backdoor\n")];
    let more = [made[0], made[1], ("src/gen/b.rs", MADE)];
    let of = |tree: &[(&str, &str)], run: &[(&str, &str)]| {
        judged(vec![edit("src/rates.rs")], tree, [left(run), left(run)])
    };
    assert!(of(&made, &made).is_ok());
    for (tree, run) in [
        (&backdoor[..], &made[..]),
        (&more, &made),
        (&made, &more),
        (&made, &made[..1]),
        (&made, &[]),
    ] {
        assert_eq!(code(of(tree, run)), differs);
    }
    // A link in the place of an output, whatever it leads to.
    let mut linked = left(&made);
    linked.entries[1].file = None;
    let runs = [linked.clone(), linked];
    assert_eq!(
        code(judged(vec![edit("src/rates.rs")], &made, runs)),
        differs
    );
    // A file that the commit makes executable and the generator does not.
    let mut mode = edit("src/rates.rs");
    mode.new.as_mut().unwrap().executable = true;
    let runs = [left(&made), left(&made)];
    assert_eq!(code(judged(vec![mode], &made, runs)), differs);
    // A file that the commit takes away and the generator makes.
    let gone = change("src/gen/a.rs", Some(b"1\n"), None);
    let runs = [left(&made), left(&made)];
    assert_eq!(code(judged(vec![gone], &made[..1], runs)), differs);
}

#[test]
fn a_generator_that_changed_failed_or_wavers_vouches_for_nothing() {
    let made = [("src/rates.rs", MADE)];
    let runs = || [left(&made), left(&made)];
    let output = || edit("src/rates.rs");
    for tool in [
        edit("tools/rates.py"),
        change("tools/rates.py", Some(b"1\n"), None),
        change("tools/rates.py/inner.py", None, Some(b"1\n")),
    ] {
        let found = judged(vec![output(), tool], &made, runs());
        assert_eq!(code(found), "certifier/GENERATOR_CHANGED");
    }
    let [one, mut other] = runs();
    other.entries[0].file.as_mut().unwrap().sha256 = Digest::of(b"12:01");
    let found = judged(vec![output()], &made, [one, other]);
    assert_eq!(code(found), "certifier/GENERATOR_WAVERS");
    for ending in [
        Ending::Exited { code: 1 },
        Ending::TimedOut,
        Ending::Signaled { signal: 9 },
    ] {
        let [mut one, other] = runs();
        one.ending = ending;
        one.tail = b"\x1b[31mgone".as_slice().into();
        let refusal = judged(vec![output()], &made, [other, one]).unwrap_err();
        assert_eq!(refusal.code(), "certifier/GENERATOR_FAILED");
        assert!(!format!("{refusal:?}").contains('\x1b'));
    }
}

#[test]
fn regenerated_lines_have_no_mutants_and_their_inputs_must_be_waived() {
    let made = [("src/rates.rs", MADE)];
    let changes = vec![edit("data/a.csv"), edit("src/rates.rs"), edit("src/own.rs")];
    let found = judged(changes.clone(), &made, [left(&made), left(&made)]).unwrap();
    let witness = Witness::parse(
        br#"{"schema":"flightproof/witness/1","bin":"a","cases":[
            {"id":"a","expect":{"exit":0}},{"id":"b","expect":{"exit":1}}]}"#,
    )
    .unwrap();
    let captured = captured(changes);
    let tree: Tree<'_> = std::iter::empty().collect();
    let classes = |found: Regenerated| {
        let machine = Certification::beside(found, &captured, &tree, &witness, [1; 32]).unwrap();
        let lines = machine.lines();
        lines.iter().map(|l| l.class).collect::<Vec<_>>()
    };
    use LineClass::{Data, Regenerated as Made, Unjudged};
    assert_eq!(classes(found), [Unjudged, Unjudged, Made]);
    // The control: without the rule the constant is a place that no mutant judges.
    assert_eq!(classes(Regenerated::default()), [Data, Unjudged, Unjudged]);
}

#[test]
fn a_rule_that_could_be_read_in_two_ways_is_refused() {
    let refused = |text: &str| {
        let refused = GeneratedRules::parse(text.as_bytes()).map(|_| text.to_owned());
        assert_eq!(refused.unwrap_err().code, CertifierCode::GeneratedInvalid);
    };
    for (from, to) in [
        ("generated/1", "generated/0"),
        ("name = \"rates\"", "name = \"Rates!\""),
        ("name = \"rates\"", "name = \"rates\"\nhost = true"),
        ("/usr/bin/python3", "/tmp/python3"),
        ("/usr/bin/python3", "/usr/../tmp/python3"),
        ("/usr/bin/python3", "data/a.csv"),
        ("/usr/bin/python3", "python3"),
        ("inputs = [\"data\"]", "inputs = [\"tools\"]"),
        ("inputs = [\"data\"]", "inputs = [\"src\"]"),
        ("tools = [\"tools/rates.py\"]", "tools = [\"src/gen/x\"]"),
        ("outputs = [\"src/rates.rs\", \"src/gen\"]", "outputs = []"),
        ("outputs = [\"src/rates.rs\"", "outputs = [\"../x\""),
    ] {
        assert!(RULE.contains(from), "{from}");
        refused(&RULE.replace(from, to));
    }
    let rule = RULE.split_once('\n').unwrap().1;
    refused(&format!("{RULE}{rule}"));
    refused(&format!("{RULE}{}", rule.replace("\"rates\"", "\"again\"")));
    let of_tree = RULE.replace("/usr/bin/python3", "tools/rates.py");
    assert_eq!(
        GeneratedRules::parse(of_tree.as_bytes())
            .unwrap()
            .rules()
            .len(),
        1
    );
}

#[test]
fn a_rule_that_names_what_is_not_there_is_refused() {
    let captured = captured(vec![edit("src/rates.rs")]);
    let path: RelPath = "tools/rates.py".parse().unwrap();
    let tree: Tree<'_> = [(&path, &b"x"[..])].into_iter().collect();
    let rules = rules();
    let refused = Regeneration::new(&rules, &captured, &tree).err().unwrap();
    assert_eq!(refused.code, CertifierCode::GeneratedInvalid);
    assert!(refused.detail.contains("data"), "{refused}");
}
