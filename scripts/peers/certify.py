"""Mutation: how long a survey of a crate's own tests takes, against cargo-mutants with its best flags.

Every run starts without build output, on tmpfs. Mutants of both that stand at one place and put the same
text there are one mutant; what became of it must be the same.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import bench

TOOL = "cargo-mutants"
# More than its minimum costs it 20 s for each mutant that never ends; less is what a person would set.
TIMEOUT = 2


class Crate:
    """The sample, with its one module so many times."""

    def __init__(self, root, place, copies):
        self.path = Path(tempfile.mkdtemp(prefix=f"bench-mutants-{copies}-", dir=place))
        sample = root / "fixtures/bench-sample"
        shutil.copytree(sample, self.path, dirs_exist_ok=True)
        module = (sample / "src/sample.rs").read_text()
        names = [f"sample_{n}" for n in range(copies)]
        (self.path / "src/sample.rs").unlink()
        for name in names:
            (self.path / "src" / f"{name}.rs").write_text(module)
        (self.path / "src/lib.rs").write_text("//! A sample.\n\n" + "".join(f"pub mod {n};\n" for n in names))


def ours(program, crate, jobs):
    command = [program, "mutate", "--repo", str(crate.path), "--oracle", "tests", "--jobs", str(jobs)]
    figures, text = timed([*command, "--format", "json"], ok=(0, 10))
    found = {(m["file"], m["line"], m["column"], m["replacement"]): m["status"] for m in json.loads(text)["mutants"]}
    return figures, found


def theirs(crate, jobs):
    out = crate.path / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = ["cargo", "mutants", "-d", str(crate.path), "-o", str(out), "-j", str(jobs), "--timeout", str(TIMEOUT)]
    env = {**os.environ, "TMPDIR": str(crate.path.parent), "CARGO_PROFILE_DEV_DEBUG": "none"}
    env.pop("CARGO_TARGET_DIR", None)
    figures, _ = timed([*command, "--no-times", "--colors", "never"], ok=(0, 2, 3), env=env)
    outcomes = json.loads((out / "mutants.out/outcomes.json").read_text())["outcomes"]
    found = {}
    for outcome in outcomes:
        mutant = outcome["scenario"].get("Mutant") if isinstance(outcome["scenario"], dict) else None
        if mutant:
            start = mutant["span"]["start"]
            found[(mutant["file"], start["line"], start["column"], mutant["replacement"])] = outcome["summary"]
    return figures, found


def timed(command, ok, env=None):
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    wall = time.monotonic() - started
    if done.returncode not in ok:
        raise SystemExit(f"failed with {done.returncode}: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    # No CPU seconds: the processes of a session are nobody's children here.
    return {"wall": wall}, done.stdout


NOTICED = {"killed": True, "timeout": True, "CaughtMutant": True, "Timeout": True}
ALIVE = {"survived", "unreached", "MissedMutant"}


def compared(mine, other):
    """Shared mutants, and those that the two judge otherwise."""
    judged = lambda status: NOTICED.get(status, False if status in ALIVE else None)
    shared = [key for key in mine if key in other]
    pairs = [(key, judged(mine[key]), judged(other[key])) for key in shared]
    pairs = [(key, a, b) for key, a, b in pairs if a is not None and b is not None]
    return len(pairs), [key for key, a, b in pairs if a != b]


def run(root, args):
    if not shutil.which(TOOL):
        raise SystemExit(f"{TOOL} is missing: cargo install --locked {TOOL}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = str(args.program.resolve()) if args.program else bench.build(root, target, ["--bin", "flights"], "flights")
    report = {"machine": bench.machine(), "rows": [], "targets": []}
    for copies, least in sorted({1: 25, args.copies: 100}.items()) if args.copies != 1 else [(1, 25)]:
        crate = Crate(root, args.place, copies)
        try:
            report_crate(program, args, crate, copies, least, report)
        finally:
            shutil.rmtree(crate.path)
    return report


def report_crate(program, args, crate, copies, least, report):
    runs = {"flights mutate": [], TOOL: []}
    for _ in range(args.runs):
        # Session overhead and build are part of ours, as builds are of theirs.
        figures, mine = ours(program, crate, args.jobs)
        runs["flights mutate"].append(figures)
        if copies == 1 or args.whole:
            figures, other = theirs(crate, args.jobs)
            runs[TOOL].append(figures)
    mutants = {"flights mutate": len(mine), TOOL: len(other) if runs[TOOL] else 0}
    rates = {}
    for who, all_runs in runs.items():
        if not all_runs:
            continue
        wall = statistics.median(r["wall"] for r in all_runs)
        rates[who] = mutants[who] / wall
        report["rows"].append({
            "work": f"{copies} x 150 lines", "who": who, "mutants": mutants[who], "wall": wall,
            "rate": rates[who],
        })
    ratio = rates["flights mutate"] / rates[TOOL] if TOOL in rates else None
    report["targets"].append(bench.target(f"mutants per second against {TOOL}, {copies} x 150 lines", ratio, least, at_least=True))
    if TOOL in rates:
        shared, differing = compared(mine, other)
        report["targets"].append(bench.target(f"of {shared} shared mutants, judged otherwise", float(len(differing)) if shared else None, 0))
        report.setdefault("differing", []).extend(map(str, differing))


def show(report):
    about = report["machine"]
    print(f"{about['cpu']}, {about['processors']} processors, Linux {about['kernel']}, load {about['load']}")
    print(f"\n{'crate':16} {'who':16} {'mutants':>8} {'wall s':>8} {'mutants/s':>10}")
    for row in report["rows"]:
        print(f"{row['work']:16} {row['who']:16} {row['mutants']:8} {row['wall']:8.2f} {row['rate']:10.2f}")
    print()
    for line in report["targets"]:
        found = "-" if line["found"] is None else f"{line['found']:.2f}"
        sign = ">=" if line["at_least"] else "<="
        print(f"{line['verdict']:12} {found:>8} {sign} {line['limit']:<6} {line['target']}")
    for key in report.get("differing", []):
        print(f"  judged otherwise: {key}")
