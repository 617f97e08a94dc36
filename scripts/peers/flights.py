"""The program people touch: how long it takes to answer, replay, show and report."""

import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bench import machine, target

LINES = 100_000
# What a page needs to be drawn: chromium writes the document out once it is loaded.
BROWSER = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]


def run(root, args):
    work = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    build = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "flightproof-flights"]
    subprocess.run([*build, "--bin", "flights", "--example", "long_recording"], cwd=root, check=True)
    built = lambda name: str(max((p for p in work.glob(f"*/{name}")), key=lambda p: p.stat().st_mtime))
    program = args.program.resolve() if args.program else built("release/flights")
    report = {"machine": machine(), "rows": []}
    with tempfile.TemporaryDirectory() as place:
        source = root / "flights/recordings/own-escape.flight"
        subprocess.run([built("release/examples/long_recording"), source, str(LINES), place], check=True)
        page, long = Path(place, "page.html"), Path(place, "long.flight")
        work = {
            "flights --help": ([program, "--help"], root),
            "replay of every recording": ([program, "run"], root),
            f"flights show, {LINES:,} lines": ([program, "show", str(long)], root),
            f"the report's page of {LINES:,} lines in chromium": ([*BROWSER, page.as_uri()], place),
            "an empty page in chromium": ([*BROWSER, "data:text/html,<p>empty"], place),
        }
        if not shutil.which("chromium"):
            work = {name: what for name, what in work.items() if "chromium" not in name}
        for name, (command, where) in work.items():
            report["rows"].append({"work": name, **timed(command, where, args.runs)})
        report["page_mib"] = page.stat().st_size / 2**20
    report["replays"] = replays(program, root, args.runs)
    report["binary_mib"] = Path(program).stat().st_size / 2**20
    report["machine"]["load_after"] = round(os.getloadavg()[0], 2)
    report["targets"] = targets(report)
    return report


def timed(command, where, runs):
    walls, cpus = [], []
    for _ in range(runs):
        begun, used = time.perf_counter(), spent()
        subprocess.run(command, cwd=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        walls.append(time.perf_counter() - begun)
        cpus.append(spent() - used)
    walls.sort()
    return {"min": walls[0], "median": walls[len(walls) // 2], "cpu": min(cpus), "n": runs}


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def replays(program, root, runs):
    """The least time of each flight's replay, one at a time, as the program itself tells it."""
    least = {}
    for _ in range(runs):
        told = subprocess.run([program, "run", "--jobs", "1", "--format", "json"], cwd=root, capture_output=True, text=True)
        for flight in json.loads(told.stdout)["flights"]:
            least[flight["name"]] = min(flight["milliseconds"], least.get(flight["name"], 1 << 30))
    return least


def targets(report):
    least = {row["work"]: row["min"] for row in report["rows"]}
    page = next((t for name, t in least.items() if name.startswith("the report")), None)
    slowest = max(report["replays"].values(), default=None)
    return [
        target("flights --help, ms", least["flights --help"] * 1000, 10),
        target("slowest replay of a flight, ms", slowest, 50),
        target(f"flights show of {LINES:,} lines, s", least[f"flights show, {LINES:,} lines"], 1),
        target(f"page of {LINES:,} lines in chromium, s, chromium's own start included", page, 2),
        target("release binary, MiB", report["binary_mib"], 25),
    ]


def show(report):
    print(f"{'work':58}{'min':>10}{'median':>10}{'cpu':>10}")
    for row in report["rows"]:
        print(f"{row['work']:58}{row['min']:>8.3f} s{row['median']:>8.3f} s{row['cpu']:>8.3f} s")
    print("\nreplay of each flight, least ms: " + ", ".join(f"{n} {ms}" for n, ms in sorted(report["replays"].items())))
    print()
    for t in report["targets"]:
        found = "-" if t["found"] is None else f"{t['found']:.3g}"
        print(f"{t['target']:70}{found:>8}  at most {t['limit']:<6} {t['verdict']}")
    print(f"\nload {report['machine']['load']} before, {report['machine']['load_after']} after")
