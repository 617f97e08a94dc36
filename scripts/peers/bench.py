"""What every benchmark needs: programs, measured runs, targets and tables."""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

# Program to Debian package.
PACKAGES = {"bsdtar": "libarchive-tools", "strace": "strace", "openssl": "openssl", "tar": "tar"}


class Tools:
    """The programs of a run, installed or built where they are missing."""

    def __init__(self, root, program):
        self.missing = [name for name in PACKAGES if not install(name)]
        target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        self.peers = build(root / "scripts/peers", target / "peers", [], "peers")
        self.program = str(program.resolve()) if program else build(root, target, ["--bin", "flights"], "flights")

    def measure(self, command):
        """Wall, CPU and memory of one run. The output of the command is not ours to read."""
        done = subprocess.run([self.peers, "measure", *command], stdout=subprocess.PIPE, text=True, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        if figures["status"] != 0:
            raise SystemExit(f"failed: {' '.join(command)}")
        figures["cpu"] = figures["user"] + figures["sys"]
        return figures

    def calls(self, command):
        """System calls of one run, all threads together."""
        if "strace" in self.missing:
            return None
        log = Path("/tmp") / f"bench-strace-{os.getpid()}"
        subprocess.run(["strace", "-f", "-c", "-o", log, *command], stdout=subprocess.DEVNULL, check=True)
        last = log.read_text().splitlines()[-1].split()
        log.unlink()
        return int(last[3] if len(last) > 4 else last[2]) if last[-1] == "total" else None


def install(name):
    if shutil.which(name):
        return True
    subprocess.run(["apt-get", "install", "-y", "-qq", PACKAGES[name]], stdout=sys.stderr, check=False)
    return shutil.which(name) is not None


def build(place, target, what, name):
    command = ["cargo", "build", "--release", "--locked", "--quiet", *what, "--target-dir", str(target)]
    subprocess.run(command, cwd=place, check=True)
    found = [p for p in (target / "release" / name, *target.glob(f"*/release/{name}")) if p.is_file()]
    return str(max(found, key=lambda p: p.stat().st_mtime))


class Work:
    """One piece of work and who does it: commands by name, run in turns so that a busy moment of
    the machine meets all of them."""

    def __init__(self, name, units, commands):
        self.name, self.units, self.commands = name, units, commands
        self.runs = {who: [] for who in commands}
        self.calls = {}

    def measure(self, tools, runs):
        for turn in range(runs):
            for who, (before, command) in self.commands.items():
                before()
                print(f"  {self.name}, {turn + 1} of {runs}: {who}      ", end="\r", file=sys.stderr)
                self.runs[who].append(tools.measure(command))

    def count_calls(self, tools):
        for who, (before, command) in self.commands.items():
            before()
            total = tools.calls(command)
            self.calls[who] = None if total is None else total / self.units

    def best(self, who, what):
        return min(run[what] for run in self.runs[who])

    def rows(self):
        for who, runs in self.runs.items():
            middle = {what: statistics.median(run[what] for run in runs) for what in ("wall", "cpu")}
            yield {
                "work": self.name,
                "who": who,
                "wall_min": self.best(who, "wall"),
                "wall_median": middle["wall"],
                "cpu_min": self.best(who, "cpu"),
                "cpu_median": middle["cpu"],
                "rss_mib": max(run["rss_kib"] for run in runs) / 1024,
                "calls_per_file": self.calls.get(who),
            }


def target(what, found, limit, at_least=False):
    """One line of the targets. Nothing found is not met."""
    if found is None:
        return {"target": what, "found": None, "limit": limit, "at_least": at_least, "verdict": "NOT MEASURED"}
    met = found >= limit if at_least else found <= limit
    verdict = "met" if met else "MISSED"
    return {"target": what, "found": found, "limit": limit, "at_least": at_least, "verdict": verdict}


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    return {
        "cpu": model,
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
        "versions": {name: version(name) for name in ("tar", "bsdtar", "openssl") if shutil.which(name)},
    }


def version(name):
    flag = "version" if name == "openssl" else "--version"
    return subprocess.run([name, flag], capture_output=True, text=True).stdout.splitlines()[0]


def show(report):
    about = report["machine"]
    print(f"{about['cpu']}, {about['processors']} processors, Linux {about['kernel']}, load {about['load']}")
    print("; ".join(about["versions"].values()))
    print(f"\n{'work':22} {'who':26} {'wall min':>9} {'median':>8} {'CPU min':>8} {'median':>8} {'MiB':>7} {'calls':>7}")
    for row in report["rows"]:
        calls = "" if row["calls_per_file"] is None else f"{row['calls_per_file']:.2f}"
        print(
            f"{row['work']:22} {row['who']:26} {row['wall_min']:9.3f} {row['wall_median']:8.3f}"
            f" {row['cpu_min']:8.3f} {row['cpu_median']:8.3f} {row['rss_mib']:7.1f} {calls:>7}"
        )
    print()
    for line in report["targets"]:
        found = "-" if line["found"] is None else f"{line['found']:.2f}"
        sign = ">=" if line["at_least"] else "<="
        print(f"{line['verdict']:12} {found:>8} {sign} {line['limit']:<6} {line['target']}")
