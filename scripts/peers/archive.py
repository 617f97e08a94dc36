"""Archives: pack, verify and extract many small files, a few large ones, and trees of growing size."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from bench import Work, machine, target

TAR = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]
# Below 500 MiB with the manifest: the most an archive of a workspace may have.
BLOB_MIB, SMALL_MIB, BLOBS = 499, 5, 12
RULED = "flights, rules"


class Trees:
    """The inputs, and where outputs go. All on one file system; gone in the end."""

    def __init__(self, tools, place):
        self.tools = tools
        self.place = Path(tempfile.mkdtemp(prefix="bench-archive-", dir=place))

    def many(self, files):
        return self.made(f"tree-{files}", "tree", files)

    def few(self, mib, files):
        return self.made(f"blob-{mib}-{files}", "blob", mib, files)

    def made(self, name, kind, *how):
        path = self.place / name
        if not path.exists():
            how = [str(part) for part in how]
            subprocess.run([self.tools.peers, kind, str(path), *how], check=True)
        return path

    def out(self, name, as_directory=False):
        """A place for an output, and what makes it free again before a run."""
        path = self.place / ("out-" + "".join(c if c.isalnum() else "-" for c in name))

        def free():
            if path.is_dir():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            if as_directory:
                path.mkdir()

        return path, free


def nothing():
    pass


def pack(tools, trees, tree, name, units):
    """Everybody packs to a real file; two only pass the bytes to a hash."""
    ours, tools_peers = tools.program, tools.peers
    commands = {}

    def add(who, command):
        out, free = trees.out(who)
        commands[who] = (free, [part.replace("OUT", str(out)) for part in command])

    source = str(tree)
    # The peers take every file, so that is the same work; the rules of working directories come on top.
    add("flights", [ours, "archive", "pack", source, "-o", "OUT", "--everything"])
    add(RULED, [ours, "archive", "pack", source, "-o", "OUT"])
    add("tar", ["tar", "-c", *TAR, "-f", "OUT", "-C", source, "."])
    piped = " ".join(["tar", "-c", *TAR, "-C", source, "."])
    add("tar | openssl", ["sh", "-c", f"{piped} | openssl dgst -sha256 >/dev/null"])
    add("tar | tee | openssl", ["sh", "-c", f"{piped} | tee OUT | openssl dgst -sha256 >/dev/null"])
    if "bsdtar" not in tools.missing:
        add("bsdtar", ["bsdtar", "-c", "-f", "OUT", "-C", source, "."])
    add("tar crate", [tools_peers, "tar-pack", source, "OUT"])
    add("nix-nar", [tools_peers, "nar-pack", source, "OUT"])
    return Work(f"pack {name}", units, commands)


def extract(tools, trees, name, units):
    """From the files that packing left."""
    at = {who: str(trees.out(who)[0]) for who in ("flights", "tar", "bsdtar", "tar crate", "nix-nar")}
    commands = {}

    def add(who, command, as_directory=False):
        out, free = trees.out(f"{who} tree", as_directory)
        commands[who] = (free, [part.replace("OUT", str(out)) for part in command])

    add("flights", [tools.program, "archive", "extract", at["flights"], "OUT"])
    add("tar", ["tar", "-x", "-f", at["tar"], "-C", "OUT"], True)
    if "bsdtar" not in tools.missing:
        add("bsdtar", ["bsdtar", "-x", "-f", at["bsdtar"], "-C", "OUT"], True)
    add("tar crate", [tools.peers, "tar-extract", at["tar crate"], "OUT"])
    add("nix-nar", [tools.peers, "nar-extract", at["nix-nar"], "OUT"])
    return Work(f"extract {name}", units, commands)


def verify(tools, trees, name, units):
    at = str(trees.out("flights")[0])
    commands = {
        "flights": (nothing, [tools.program, "archive", "verify", at]),
        "openssl dgst": (nothing, ["openssl", "dgst", "-sha256", at]),
    }
    if name.endswith("MiB"):
        # The ceiling: as many bytes, in the cache already, through the hash alone.
        commands["sha2 in memory"] = (nothing, [tools.peers, "sha256", str(BLOB_MIB)])
    return Work(f"verify {name}", units, commands)


def run(tools, args):
    report = {"machine": machine(), "rows": [], "targets": []}
    trees = Trees(tools, args.place)
    try:
        scales = args.files or [1_000, 10_000, 100_000]
        works = {}
        for files in scales:
            tree = trees.many(files)
            name = f"{files} files"
            for make in (lambda: pack(tools, trees, tree, name, files),
                         lambda: verify(tools, trees, name, files),
                         lambda: extract(tools, trees, name, files)):
                work = make()
                work.measure(tools, args.runs)
                work.count_calls(tools)
                works[work.name] = work
        blob = trees.few(BLOB_MIB, BLOBS)
        for make in (lambda: pack(tools, trees, blob, f"{BLOB_MIB} MiB", BLOBS),
                     lambda: verify(tools, trees, f"{BLOB_MIB} MiB", BLOBS),
                     lambda: extract(tools, trees, f"{BLOB_MIB} MiB", BLOBS)):
            work = make()
            work.measure(tools, args.runs)
            works[work.name] = work
        memory = peaks(tools, trees)
    finally:
        shutil.rmtree(trees.place)
    for work in works.values():
        report["rows"].extend(work.rows())
    report["peaks_mib"] = memory
    report["targets"] = targets(works, scales, memory)
    return report


def peaks(tools, trees):
    """The largest memory for equally many files of a small and of a large payload, in MiB."""
    found = {}
    for mib in (SMALL_MIB, BLOB_MIB):
        tree = trees.few(mib, BLOBS)
        out, free = trees.out("flights")
        made, unmake = trees.out("flights tree")
        free(), unmake()
        for act, command in (("pack", ["pack", str(tree), "-o", str(out)]),
                             ("verify", ["verify", str(out)]),
                             ("extract", ["extract", str(out), str(made)])):
            figures = tools.measure([tools.program, "archive", *command])
            found.setdefault(act, []).append(figures["rss_kib"] / 1024)
    return found


def targets(works, scales, memory):
    files = max(scales)
    packed, extracted = works[f"pack {files} files"], works[f"extract {files} files"]
    ratio = lambda work, what, peer, who="flights": work.best(who, what) / work.best(peer, what) if peer in work.runs else None
    lines = [
        target(f"pack {files} files with hashes: CPU by GNU tar -c", ratio(packed, "cpu", "tar"), 1.35),
        target("… with the rules of working directories", ratio(packed, "cpu", "tar", RULED), 1.35),
        target("… wall by tar -c | openssl, which stores nothing", ratio(packed, "wall", "tar | openssl"), 0.5),
        target("… wall by tar -c | tee FILE | openssl, the same work", ratio(packed, "wall", "tar | tee | openssl"), 0.5),
        target(f"extract and verify {files} files: CPU by GNU tar -x", ratio(extracted, "cpu", "tar"), 1.0),
    ]
    for peer in ("bsdtar", "tar crate", "nix-nar"):
        lines.append(target(f"… CPU by {peer}", ratio(extracted, "cpu", peer), 1.0))
    lines += [
        target("system calls per file, pack", packed.calls.get("flights"), 5.1),
        target("system calls per file, extract", extracted.calls.get("flights"), 4.1),
    ]
    verified = works[f"verify {BLOB_MIB} MiB"]
    for act in ("pack", "verify"):
        work = works[f"{act} {BLOB_MIB} MiB"]
        wall, cpu = work.best("flights", "wall"), work.best("flights", "cpu")
        memory_rate, file_rate = verified.best("sha2 in memory", "cpu"), verified.best("openssl dgst", "cpu")
        lines += [
            target(f"{act} {BLOB_MIB} MiB: cores used", cpu / wall, 1.6, at_least=True),
            target("… bytes by second of CPU, by openssl dgst of the file", file_rate / cpu, 0.9, at_least=True),
            target("… bytes by second of CPU, by SHA-256 of bytes in the cache", memory_rate / cpu, 0.9, at_least=True),
        ]
    for act, (small, large) in memory.items():
        lines.append(target(f"{act}: MiB more at the peak for {BLOB_MIB} MiB than for {SMALL_MIB}", large - small, 1.0))
    if len(scales) > 1:
        for act in ("pack", "extract"):
            each = [works[f"{act} {n} files"].best("flights", "cpu") / n for n in scales if n >= 10_000]
            if len(each) > 1:
                lines.append(target(f"{act}: CPU per file, largest tree by smallest", max(each) / min(each), 1.15))
    return lines
