"""Sessions: what a step in one costs, beside the engine's own ways and bare bubblewrap."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from bench import machine, target

# A crate's tree of some size, which every checkout has: this workspace's own crates.
TREE = "crates"
UNITS = {"MiB packed": "MiB", "session, KiB": "KiB", "two sessions, per second": "per s"}
UPLOAD = "upload of a crate's tree"


def run(root, args):
    work = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    build = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "flightproof-session", "--example", "figures"]
    subprocess.run(build, cwd=root, check=True)
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.split(": ")[1] for line in host.splitlines() if line.startswith("host: "))
    program = next(p for p in (work / host / "release/examples/figures", work / "release/examples/figures") if p.is_file())
    image = subprocess.run([root / "scripts/session-image"], capture_output=True, text=True, check=True).stdout.strip()
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    report = {"machine": machine()}
    command = [program, image, str(root / TREE), sysroot, str(args.runs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit("the figures could not be taken: NOT MEASURED")
    report["engine"] = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}, interface {{.Server.APIVersion}}"],
        capture_output=True, text=True).stdout.strip()
    report["machine"]["load_after"] = round(os.getloadavg()[0], 2)
    figures = {(row["work"], row["who"]): row["figures"] for row in json.loads(done.stdout)}
    report["rows"] = [{"work": work, "who": who, **shown(work, who, found)} for (work, who), found in figures.items()]
    report["targets"] = targets(figures)
    return report


def shown(work, who, found):
    """Least, median, most, in the unit that reads well."""
    unit, scale = UNITS.get(who), 1
    if unit is None:
        unit, scale = ("MiB/s", 1) if work == UPLOAD else ("ms", 1000)
    ordered = sorted(found)
    return {
        "unit": unit,
        "min": ordered[0] * scale,
        "median": statistics.median(ordered) * scale,
        "max": ordered[-1] * scale,
        "n": len(ordered),
    }


def targets(figures):
    median = lambda work, who="session": statistics.median(figures[work, who])
    on_engine, here = "exec on the engine", "exec here"
    return [
        target("exec on the engine by the raw interface", median(on_engine) / median(on_engine, "raw interface"), 1.15),
        target("… by docker exec", median(on_engine) / median(on_engine, "docker exec"), 0.75),
        target("exec here by bare bubblewrap", median(here) / median(here, "bare bubblewrap"), 2.0),
        target("upload and verify a crate's tree, by a pipe into a container",
               median(UPLOAD) / median(UPLOAD, "pipe"), 0.6, at_least=True),
        target("… by base64 in arguments", median(UPLOAD) / median(UPLOAD, "base64 in arguments"), 100, at_least=True),
        target("one observation here, ms", median("observation here") * 1000, 2.0),
        target("observations per second, two sessions",
               median("observations here", "two sessions, per second"), 800, at_least=True),
        target("attest again without trying acts, ms", median("attest", "session, read again") * 1000, 5.0),
        target("deadline to gone, s, the slowest", max(figures["deadline to gone", "session"]), 0.5),
        target("memory of a flood past a cap of 1 MiB, MiB, the most",
               max(figures["flood past a cap of 1 MiB", "session, KiB"]) / 1024, 9.0),
    ]


def show(report):
    about = report["machine"]
    print(f"{about['cpu']}, {about['processors']} processors, Linux {about['kernel']},"
          f" load {about['load']} to {about['load_after']}, engine {report['engine']}")
    print(f"\n{'work':28} {'who':26} {'min':>9} {'median':>9} {'max':>9} {'':6} {'n':>5}")
    for row in report["rows"]:
        print(f"{row['work']:28} {row['who']:26} {row['min']:9.2f} {row['median']:9.2f} {row['max']:9.2f} {row['unit']:6} {row['n']:5}")
    print()
    for line in report["targets"]:
        sign = ">=" if line["at_least"] else "<="
        print(f"{line['verdict']:12} {line['found']:>8.2f} {sign} {line['limit']:<6} {line['target']}")
    sys.stdout.flush()
