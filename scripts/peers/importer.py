"""Imports: one commit of ten files into working trees of growing size, against git by hand."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench import Work, build, machine, target

CHANGED = 10
# Changed files are spread over the tree.
FOLDER = 100


def git(repo, *words):
    command = ["git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(command, cwd=repo, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


class Home:
    """A repository of so many files, a bundle of one commit on it, and what makes it as before."""

    def __init__(self, tools, place, files):
        self.place = Path(tempfile.mkdtemp(prefix="bench-import-", dir=place))
        self.repo = self.place / "repo"
        self.state = self.place / "state"
        # Only the very first import of a user makes the ledger: the others find one.
        self.ledger = self.place / "ledger"
        self.bundle = self.place / "work.bundle"
        self.repo.mkdir()
        git(self.repo, "init", "-q")
        for number in range(files):
            path = self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"file {number}\n" * 20)
        git(self.repo, "add", "-A")
        git(self.repo, "commit", "-q", "-m", "baseline")
        git(self.repo, "repack", "-adq")
        self.baseline = git(self.repo, "rev-parse", "HEAD")
        self.packs = set(self.store().glob("pack/*"))
        for number in range(0, files, files // CHANGED):
            self.path(number).write_text(f"changed {number}\n" * 20)
        git(self.repo, "commit", "-q", "-a", "-m", "work")
        head = git(self.repo, "rev-parse", "HEAD")
        create = ["bundle", "create", "--repo", self.repo, "--baseline", self.baseline, "--head", head]
        subprocess.run([tools.program, *create, "-o", self.bundle], check=True, stdout=subprocess.DEVNULL)
        self.ledger.mkdir(mode=0o700)
        found = {**os.environ, "FLIGHTPROOF_STATE": str(self.ledger)}
        recover = [tools.program, "import", "recover", "--repo", self.repo]
        subprocess.run(recover, check=True, stdout=subprocess.DEVNULL, env=found)

    def path(self, number):
        return self.repo / f"folder-{number // FOLDER // 10}" / f"{number // FOLDER % 10}" / f"file-{number}"

    def store(self):
        return self.repo / ".git/objects"

    def reset(self):
        """The baseline, without the objects of the commit and without a memory of it."""
        git(self.repo, "reset", "-q", "--hard", self.baseline)
        git(self.repo, "status", "--porcelain")
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.copytree(self.ledger, self.state)
        for found in self.store().iterdir():
            if found.name == "pack":
                for pack in set(found.iterdir()) - self.packs:
                    pack.unlink()
            elif found.name != "info":
                shutil.rmtree(found)

    def ours(self, program):
        words = ["import", str(self.bundle), "--repo", str(self.repo), "--baseline", self.baseline]
        state = f"FLIGHTPROOF_STATE={self.state}"
        return ["env", state, program, *words, "--branch", "main", "--uncertified-i-know"]

    def by_hand(self):
        safe = "git -c core.fsync=all"
        fetch = f"{safe} -c fetch.fsckObjects=true fetch -q {self.bundle} refs/export/head"
        return ["sh", "-c", f"cd {self.repo} && {fetch} && {safe} merge -q --ff-only FETCH_HEAD"]


def check_at_limits(args):
    """Milliseconds of CPU for the check of a bundle that fills every limit. Not with a program of choice:
    the check is measured alone, by an example that is built here."""
    if args.program:
        return None
    root = Path(__file__).resolve().parent.parent.parent
    built = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    example = build(root, built, ["--example", "bundle_cost"], "examples/bundle_cost")
    told = subprocess.run([example], check=True, stdout=subprocess.PIPE, text=True).stdout
    micros, what = told.splitlines()[0].split(maxsplit=1)
    return int(micros) / 1_000 if what.startswith("at the limits") else None


def run(tools, args):
    works, targets = [], []
    medians = {}
    for files in args.files or [1_000, 10_000, 100_000]:
        home = Home(tools, args.place, files)
        work = Work(
            f"import into {files} files",
            CHANGED,
            {
                "flights import": (home.reset, home.ours(tools.program)),
                "git fetch, fsck, merge": (home.reset, home.by_hand()),
            },
        )
        work.measure(tools, args.runs)
        works.append(work)
        rows = {row["who"]: row for row in work.rows()}
        medians[files] = {who: row["wall_median"] for who, row in rows.items()}
        shutil.rmtree(home.place)
    for files, limit in ((1_000, 2.0), (100_000, 1.2)):
        found = medians.get(files)
        ratio = found and found["flights import"] / found["git fetch, fsck, merge"]
        targets.append(target(f"import into {files} files, times git by hand, wall median", ratio, limit))
    targets.append(target("check of a bundle at its limits, ms of CPU", check_at_limits(args), 15))
    if 1_000 in medians and 100_000 in medians:
        ours = [medians[files]["flights import"] for files in (1_000, 100_000)]
        per_file = (ours[1] - ours[0]) / 99_000 * 1e6
        targets.append(target("growth of an import, microseconds a tracked file", per_file, 3.6))
    else:
        targets.append(target("growth of an import, microseconds a tracked file", None, 3.6))
    about = machine()
    about["versions"]["git"] = git(os.sep, "version")
    return {"machine": about, "rows": [row for work in works for row in work.rows()], "targets": targets}
