"""Certificates: how long it takes to certify a program of 150 lines, whole, and to verify what came out."""

import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

# A program that answers a line of words for each line it reads.
MAIN = """//! The sample's functions, by name.

mod sample;

use sample::*;

fn main() {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        println!("{}", answer(&words));
    }
}

fn answer(words: &[&str]) -> String {
    let text = |at: usize| words.get(at).copied().unwrap_or_default();
    let number = |at: usize| text(at).parse::<u32>().unwrap_or_default();
    let list = |from: usize| -> Vec<u32> { (from..words.len()).map(number).collect() };
    let pairs = || -> Vec<(u32, u32)> { list(1).chunks_exact(2).map(|p| (p[0], p[1])).collect() };
    let values = || -> Vec<i32> { list(2).into_iter().map(|v| v as i32).collect() };
    match text(0) {
        "gcd" => gcd(number(1).into(), number(2).into()).to_string(),
        "distance" => distance(text(1), text(2)).to_string(),
        "merge" => format!("{:?}", merge(&pairs())),
        "roman" => roman(number(1)),
        "luhn" => luhn(text(1)).to_string(),
        "leap" => leap(number(1)).to_string(),
        "steps" => steps(number(1).into()).to_string(),
        "find" => format!("{:?}", find(&values(), number(1) as i32)),
        "run" => run(number(1)).to_string(),
        other => format!("no {other}"),
    }
}
"""

# One case a line of names and words, its lines apart by a slash.
CASES = [
    "gcd 12 18/gcd 7 0/gcd 0 5/gcd 17 5/gcd 48 36",
    "distance kitten sitting/distance ab ba/distance flaw lawn/distance ab a/distance a b/distance abc ab",
    "merge 5 7 1 3 3 4/merge 1 9 2 3 30 30/merge 4 6 1 5/merge 1 2 3 4/merge 1 2 1 5 2 3/merge 7 7",
    "roman 0/roman 1/roman 4/roman 9/roman 14/roman 40/roman 90/roman 400/roman 944/roman 556",
    "roman 1999/roman 3999/roman 4000/roman 4001/roman 166/roman 3000/roman 888",
    "luhn 79927398713/luhn 00/luhn 18/luhn 79927398710/luhn 7/luhn 0/luhn 7a/luhn a7/luhn 59/luhn 4539578763621486",
    "luhn a/luhn 5a/luhn a5/luhn aa/luhn 0a0/luhn 26/luhn 34/luhn 42/luhn 67/luhn 75/luhn 83/luhn 91",
    "leap 2024/leap 2000/leap 1900/leap 2023/leap 400/leap 100/leap 4/leap 1",
    "steps 1/steps 2/steps 6/steps 27/steps 0/steps 3",
    "find 1 1 3 5 7/find 3 1 3 5 7/find 5 1 3 5 7/find 7 1 3 5 7/find 0 1 3 5 7/find 8 1 3 5 7/find 4 1 3 5 7/find 2 1 3",
    "run 0/run 1/run 110/run 4294967295/run 5/run 7/run 2147483648",
]


class Place:
    """A repository with a change of 150 lines, and what certifies it."""

    def __init__(self, root, place, program):
        self.path, self.program = Path(tempfile.mkdtemp(prefix="bench-certify-", dir=place)), program
        self.repo, self.witness, self.key = self.path / "repo", self.path / "witness.json", self.path / "key.pem"
        (self.repo / "src").mkdir(parents=True)
        sample = root / "fixtures/bench-sample"
        modules = ((sample / f"src/{name}.rs").read_text() for name in ("calm", "loops"))
        text = "".join(module.split("#[cfg(test)]")[0].split("\n", 2)[2] for module in modules)
        stubs = re.sub(r"(?ms)^(pub fn [^{]*)\{.*?^\}", r"\1{\n    unimplemented!()\n}", text)
        for name in ("Cargo.toml", "Cargo.lock"):
            shutil.copy(sample / name, self.repo / name)
        (self.repo / "src/main.rs").write_text(MAIN)
        (self.repo / ".gitignore").write_text("/target\n")
        self.git("init", "-q", "-b", "main")
        self.commit(stubs, "Stubs")
        self.git("checkout", "-qb", "change")
        self.commit(text, "Nine functions")
        self.lines = (text + MAIN).count("\n")
        run([program, "key", "new", "--no-passphrase", "--out", self.key], {0}, self.env())

    def env(self):
        return {"FLIGHTPROOF_STATE": str(self.path / "state")}

    def git(self, *args):
        who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", self.repo, *who, *args], check=True, capture_output=True)

    def commit(self, text, message):
        (self.repo / "src/sample.rs").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def judge(self, waivers):
        """What its owner expects is what the functions answer; survivors are equivalent."""
        target = self.path / "target"
        subprocess.run(["cargo", "build", "-q", "--offline", "--target-dir", target], cwd=self.repo, check=True)
        cases = []
        for number, lines in enumerate(CASES):
            stdin = lines.replace("/", "\n") + "\n"
            out = subprocess.run([target / "debug/bench-sample"], input=stdin, capture_output=True, text=True, check=True)
            cases.append({"id": f"case-{number}", "args": [], "stdin": stdin, "files": {}, "env": {},
                          "expect": {"exit": 0, "stdout": out.stdout}})
        self.witness.write_text(json.dumps({"schema": "flightproof/witness/1", "bin": "bench-sample",
                                            "cases": cases, "waivers": waivers}))

    def certify(self, out, ok):
        command = [self.program, "certify", "--repo", self.repo, "--baseline", "main", "--candidate", "change",
                   "--witness", self.witness, "--key", self.key, "--out", self.path / out, "--format", "json"]
        begun = time.monotonic()
        done = run(command, ok, self.env())
        return time.monotonic() - begun, json.loads(done)

    def report(self, out):
        files = json.loads((self.path / out / "mutation-report.json").read_text())["files"]
        return next((name, file["mutants"]) for name, file in files.items() if file["mutants"])

    def mutants(self, out):
        return len(self.report(out)[1])

    def proven(self, out, source):
        """Waivers for what was proven equivalent, so that the next run need not."""
        name, mutants = self.report(out)
        lines = (self.repo / name).read_text().splitlines()
        waivers = []
        for mutant in mutants:
            if mutant["status"] == "Ignored" and mutant["statusReason"].startswith("equivalent"):
                start, end = mutant["location"]["start"], mutant["location"]["end"]
                line, column = start["line"], start["column"]
                original = lines[line - 1][column - 1:end["column"] - 1]
                mutant = f"{name}:{line}:{column} {mutant['mutatorName']} {original} -> {mutant['replacement']}"
                waivers.append({"mutant": mutant, "source": source, "reason": "the same program"})
        return waivers


def run(command, ok, env):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, **env})
    if done.returncode not in ok:
        raise SystemExit(f"failed with {done.returncode}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def measure(root, args, program, example, report, target):
    place = Place(root, args.place, program)
    try:
        place.judge([])
        _, verdict = place.certify("first", {10})
        waivers = [json.loads(note) | {"reason": "the same function"} for note in verdict["notes"]]
        place.judge(waivers)
        proving, _ = place.certify("proving", {0})
        proven = place.proven("proving", waivers[0]["source"])
        place.judge(waivers + proven)
        walls = [place.certify(f"run-{n}", {0})[0] for n in range(args.runs)]
        whole = statistics.median(walls)
        work = f"certify {place.lines} lines, {len(CASES)} cases"
        mutants = place.mutants("run-0")
        for what, wall in ((work, whole), (f"the same, {len(proven)} proven equivalent", proving)):
            report["rows"].append({"work": what, "who": "flights certify", "mutants": mutants, "wall": wall, "rate": mutants / wall})
        report["targets"].append(target(f"certification of {place.lines} lines, s", whole, 5))
        verified(place, args, program, example, report, target)
    finally:
        shutil.rmtree(place.path)


def verified(place, args, program, example, report, target):
    policy = place.path / "policy.json"
    policy.write_text('{"schema": "flightproof/policy/1", "threshold": 1, "required_gates": ["correctness", "mutation"],'
                      ' "allow": {"waivers_max": 50}}')
    certificate, public = place.path / "run-0/certificate.dsse.json", f"{place.key}.pub"
    tree = place.path / "tree"
    place.git("worktree", "add", "-q", "--detach", tree, "change")
    (tree / ".git").unlink()
    command = [program, "cert", "verify", certificate, "--key", public, "--policy", policy, "--format", "json"]
    for what, subject in (("a folder", [tree]), ("a revision", ["change", "--repo", place.repo])):
        walls = []
        for _ in range(max(args.runs, 20)):
            begun = time.monotonic()
            run([*command, "--subject", *subject], {0}, place.env())
            walls.append(time.monotonic() - begun)
        report["targets"].append(target(f"verify as a command, of {what}, ms", 1000 * statistics.median(walls), 8))
    shown = json.loads(run([program, "cert", "show", certificate, "--format", "json"], {0}, place.env()))
    snapshot = shown["statement"]["subject"][0]["digest"]["sha256"]
    figures = json.loads(run([example, certificate, policy, public, snapshot], {0}, {}))
    report["targets"].append(target(f"verify in process, {figures['certificate_bytes']} bytes, µs", figures["median_us"], 80))
    report["targets"].append(target("verify in a batch, by second and core", figures["per_second"], 10000, at_least=True))
