"""The ledger against a bare rusqlite transaction of the same bytes, on the same disk, in turns."""

import json
import os
import statistics
import subprocess
from pathlib import Path

import bench

WORK = {
    "bare_row": "a bare rusqlite commit of request and answer alone",
    "bare_rows": "a bare rusqlite commit of the same rows, with one index",
    "bare_commit": "the same with both indexes, which writes the same bytes",
    "commit": "a durable commit",
    "grouped_commit": "a commit of 16 writers at once",
    "replay": "an answer replayed",
    "open": "a ledger of a million keys opened",
    "lookup": "one of its keys looked up",
    "relay": "one of 10,000 messages relayed over a loopback socket",
}


def run(root, args):
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "flightproof-ledger", "--example", "measure"]
    subprocess.run([*command, "--target-dir", str(target)], cwd=root, check=True)
    found = [*target.glob("release/examples/measure"), *target.glob("*/release/examples/measure")]
    program = max(found, key=lambda p: p.stat().st_mtime)
    runs = []
    for _ in range(args.runs):
        place = [str(args.place)] if args.place else []
        done = subprocess.run([program, *place], stdout=subprocess.PIPE, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    middle = {name: statistics.median(run[name] for run in runs) for name in WORK}

    def ratio(a, b):
        # Within one run, so that a busy moment meets both.
        return round(statistics.median(run[a] / run[b] for run in runs), 2)

    return {
        "machine": bench.machine(),
        "runs": runs,
        "median_us": middle,
        "targets": [
            bench.target("durable commit, times a bare one of the same bytes", ratio("commit", "bare_commit"), 1.1),
            bench.target("rate of 16 writers, times that of one", ratio("commit", "grouped_commit"), 5, at_least=True),
            bench.target("answer replayed, µs", middle["replay"], 50),
            bench.target("a million keys opened, ms", round(middle["open"] / 1000, 1), 200),
            bench.target("one of them looked up, µs", middle["lookup"], 100),
            bench.target("rate of the relay, times that of commits", ratio("commit", "relay"), 0.8, at_least=True),
        ],
    }


def show(report):
    machine = report["machine"]
    print(f"{machine['cpu']}, {machine['processors']} processors, Linux {machine['kernel']}, load {machine['load']}")
    print("\n| work | median µs |\n| --- | --- |")
    for name, what in WORK.items():
        print(f"| {what} | {report['median_us'][name]:.1f} |")
    print("\n| target | found | limit | |\n| --- | --- | --- | --- |")
    for line in report["targets"]:
        sign = "≥" if line["at_least"] else "≤"
        print(f"| {line['target']} | {line['found']} | {sign} {line['limit']} | {line['verdict']} |")
