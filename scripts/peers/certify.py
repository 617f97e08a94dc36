"""Mutation: how long a survey of a crate's own tests takes, against cargo-mutants and cargo-gamma with
their best flags; then a whole certification, and what verifying it costs.

Every run starts without build output, on tmpfs. Mutants of us and cargo-mutants that stand at one place and
put the same text there are one mutant; what became of it must be the same.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench
import certificates

TOOL, SCHEMATA = "cargo-mutants", "cargo-gamma"
# More than its minimum costs them 20 s for each mutant that never ends; less is what a person would set.
TIMEOUT, SCHEMATA_TIMEOUT = 2, 1
MODULES = ("calm", "loops")


class Crate:
    """The sample, with some of its modules so many times."""

    def __init__(self, root, place, copies, modules=MODULES):
        self.path = Path(tempfile.mkdtemp(prefix=f"bench-mutants-{copies}-", dir=place))
        sample = root / "fixtures/bench-sample"
        (self.path / "src").mkdir()
        for name in ("Cargo.toml", "Cargo.lock"):
            shutil.copy(sample / name, self.path / name)
        names = []
        for module in modules:
            text = (sample / f"src/{module}.rs").read_text()
            for n in range(copies):
                names.append(f"{module}_{n}")
                (self.path / f"src/{names[-1]}.rs").write_text(text)
        (self.path / "src/lib.rs").write_text("//! A sample.\n\n" + "".join(f"pub mod {n};\n" for n in names))
        self.copied = names

    def files(self, copies):
        """Those of the first copies."""
        return [f"src/{name}.rs" for name in self.copied if int(name.rpartition("_")[2]) < copies]

    def clean_build(self):
        """Seconds of a build of its tests from nothing."""
        target = self.path.with_suffix(".target")
        command = ["cargo", "test", "--no-run", "--quiet", "--target-dir", target]
        figures, _ = timed([*command, "--manifest-path", self.path / "Cargo.toml"], ok=(0,))
        shutil.rmtree(target)
        return figures["wall"]


def ours(program, crate, jobs, files=()):
    command = [program, "mutate", "--repo", str(crate.path), "--oracle", "tests", "--jobs", str(jobs)]
    command += [part for file in files for part in ("--file", file)]
    figures, text = timed([*command, "--format", "json"], ok=(0, 10))
    mutants = json.loads(text)["mutants"]
    endless = sorted(m["microseconds"] for m in mutants if m["status"] == "timeout")
    figures["endless"] = endless
    return figures, {(m["file"], m["line"], m["column"], m["replacement"]): m["status"] for m in mutants}


def theirs(crate, jobs, share=None, files=()):
    out = crate.path / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = ["cargo", "mutants", "-d", str(crate.path), "-o", str(out), "-j", str(jobs), "--timeout", str(TIMEOUT)]
    command += ["--shard", f"0/{share}"] if share else []
    command += [part for file in files for part in ("--file", file)]
    env = {**os.environ, "TMPDIR": str(crate.path.parent), "CARGO_PROFILE_DEV_DEBUG": "none"}
    env.pop("CARGO_TARGET_DIR", None)
    figures, _ = timed([*command, "--no-times", "--colors", "never"], ok=(0, 2, 3), env=env)
    outcomes = json.loads((out / "mutants.out/outcomes.json").read_text())["outcomes"]
    shutil.rmtree(out)
    found = {}
    for outcome in outcomes:
        mutant = outcome["scenario"].get("Mutant") if isinstance(outcome["scenario"], dict) else None
        if mutant:
            start = mutant["span"]["start"]
            found[(mutant["file"], start["line"], start["column"], mutant["replacement"])] = outcome["summary"]
    return figures, found


def schemata(crate, jobs):
    """How many mutants it had; its report names them otherwise than we do."""
    cache, out = crate.path.with_suffix(".cache"), crate.path.with_suffix(".out")
    command = ["cargo", "gamma", "run", "-d", str(crate.path), "-j", str(jobs), "--incremental", "no",
               "--minimum-test-timeout", str(SCHEMATA_TIMEOUT), "--memory", "off", "--no-relaunch", "--color", "never",
               "--cache-dir", str(cache), "--artifact-dir", str(out)]
    figures, text = timed(command, ok=(0, 1, 2, 3, 10), both=True)
    for place in (cache, out):
        shutil.rmtree(place, ignore_errors=True)
    summary = re.search(r"Summary: (\d+) mutants .*?(\d+) timed out", text)
    if not summary:
        raise SystemExit(f"{SCHEMATA} said nothing of its mutants:\n{text[-2000:]}")
    return figures, int(summary[1]), int(summary[2])


def timed(command, ok, env=None, both=False):
    started = time.monotonic()
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env)
    wall = time.monotonic() - started
    if done.returncode not in ok:
        raise SystemExit(f"failed with {done.returncode}: {command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    # No CPU seconds: the processes of a session are nobody's children here.
    return {"wall": wall}, done.stdout + (done.stderr if both else "")


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
    for tool in (TOOL, SCHEMATA):
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is missing: cargo install --locked {tool}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    program = str(args.program.resolve()) if args.program else bench.build(root, target, ["--bin", "flights"], "flights")
    what = ["-p", "flightproof-certifier", "--example", "verify_cost"]
    example = bench.build(root, target, what, "examples/verify_cost")
    report = {"machine": bench.machine(), "rows": [], "targets": []}
    certificates.measure(root, args, program, example, report, bench.target)
    for work in (small, calm, larger, slow):
        work(root, program, args, report)
        # What was measured is not lost with what comes after it.
        print(json.dumps(report["rows"] + report["targets"]), file=sys.stderr)
    report["machine"]["load_after"] = round(os.getloadavg()[0], 2)
    return report


def small(root, program, args, report):
    """The sample, with mutants that never end, against both."""
    crate = Crate(root, args.place, 1)
    walls = {"flights mutate": [], TOOL: [], SCHEMATA: []}
    counts, endless = {}, []
    try:
        for _ in range(args.runs):
            figures, mine = ours(program, crate, args.jobs)
            walls["flights mutate"].append(figures["wall"])
            endless += figures["endless"]
            figures, other = theirs(crate, args.jobs)
            walls[TOOL].append(figures["wall"])
            figures, counts[SCHEMATA], hangs = schemata(crate, args.jobs)
            walls[SCHEMATA].append(figures["wall"])
    finally:
        shutil.rmtree(crate.path)
    counts |= {"flights mutate": len(mine), TOOL: len(other)}
    rates = rows("150 lines", walls, counts, report)
    aim = lambda *what, **more: report["targets"].append(bench.target(*what, **more))
    mine_rate = rates["flights mutate"]
    aim(f"mutants by second, times {TOOL}, 150 lines", mine_rate / rates[TOOL], 25, at_least=True)
    shared, differing = compared(mine, other)
    aim(f"of {shared} mutants shared with {TOOL}, judged otherwise", float(len(differing)) if shared else None, 0)
    aim(f"the same, times {SCHEMATA}, {hangs} of its mutants never end", mine_rate / rates[SCHEMATA], 20, at_least=True)
    ended = statistics.median(endless) / 1000 if endless else None
    aim(f"a mutant that never ends, ms, median of {len(endless)}", ended, 5)
    report.setdefault("differing", []).extend(map(str, differing))


def calm(root, program, args, report):
    """Where nothing hangs."""
    crate = Crate(root, args.place, 2, ("calm",))
    walls = {"flights mutate": [], SCHEMATA: []}
    try:
        for _ in range(args.runs):
            figures, mine = ours(program, crate, args.jobs)
            walls["flights mutate"].append(figures["wall"])
            figures, number, hangs = schemata(crate, args.jobs)
            walls[SCHEMATA].append(figures["wall"])
    finally:
        shutil.rmtree(crate.path)
    rates = rows("functions that end", walls, {"flights mutate": len(mine), SCHEMATA: number}, report)
    ratio = rates["flights mutate"] / rates[SCHEMATA]
    report["targets"].append(bench.target(f"times {SCHEMATA}, {hangs} never end", ratio, 1, at_least=True))


def larger(root, program, args, report):
    """Ten times the mutants. cargo-mutants tries a tenth of its own, which is its rate all the same."""
    beside(root, program, args, report, args.copies, args.copies, 100)


def slow(root, program, args, report):
    """A crate whose clean build takes ten seconds. Of ten copies, as if they were what changed, we try every
    mutant, and cargo-mutants a twentieth."""
    beside(root, program, args, report, args.slow_copies, 20, 50, changed=10)


def beside(root, program, args, report, copies, share, least, changed=None):
    crate = Crate(root, args.place, copies)
    work = f"{copies} x 150 lines"
    files = crate.files(changed) if changed else []
    try:
        build = crate.clean_build()
        figures, mine = ours(program, crate, args.jobs, files)
        walls, counts = {"flights mutate": [figures["wall"]]}, {"flights mutate": len(mine)}
        figures, other = theirs(crate, args.jobs, share, files)
        walls[TOOL], counts[TOOL] = [figures["wall"]], len(other)
    finally:
        shutil.rmtree(crate.path)
    rates = rows(work, walls, counts, report)
    ratio = rates["flights mutate"] / rates[TOOL]
    what = f"times {TOOL}, {work}, clean build {build:.1f} s"
    report["targets"].append(bench.target(what, ratio, least, at_least=True))


def rows(work, walls, counts, report):
    rates = {}
    for who, all_walls in walls.items():
        wall = statistics.median(all_walls)
        rates[who] = counts[who] / wall
        report["rows"].append({"work": work, "who": who, "mutants": counts[who], "wall": wall, "rate": rates[who]})
    return rates


def show(report):
    about = report["machine"]
    print(f"{about['cpu']}, {about['processors']} processors, Linux {about['kernel']}, load {about['load']} to {about['load_after']}")
    print(f"\n{'work':34} {'who':16} {'mutants':>8} {'wall s':>8} {'mutants/s':>10}")
    for row in report["rows"]:
        print(f"{row['work']:34} {row['who']:16} {row['mutants']:8} {row['wall']:8.2f} {row['rate']:10.2f}")
    print()
    for line in report["targets"]:
        found = "-" if line["found"] is None else f"{line['found']:.2f}"
        sign = ">=" if line["at_least"] else "<="
        print(f"{line['verdict']:12} {found:>8} {sign} {line['limit']:<6} {line['target']}")
    for key in report.get("differing", []):
        print(f"  judged otherwise: {key}")
