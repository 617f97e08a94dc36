"""Writes a C program that holds the CommonJS modules of a tree: bundle.py SOURCE NAME OUTPUT.

It starts at NAME.js, or at bin/NAME.js. Nothing of the tree is run here: Node parses each module
(`--check`) and does nothing else with it.
"""

import ctypes
import json
import os
import sys

source, name, output = sys.argv[1:]
os.makedirs(output, exist_ok=True)
START = ctypes.CDLL("libnode.so.108")._ZN4node5StartEiPPc
PASSED_OVER = {".git", "test", "tests", "node_modules"}


def failed(file, line, message):
    print(f"{source}/{file}:{line}: error: {message}", file=sys.stderr)
    sys.exit(1)


def check(path, file):
    """Has Node parse a module, in a process of its own: it can be started once in each."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 2)
        words = [b"node", b"--check", os.fsencode(path)]
        os._exit(START(len(words), (ctypes.c_char_p * 4)(*words, None)))
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
        said = pipe.read().splitlines()
    if os.waitpid(child, 0)[1] != 0:
        lines = (text[len(path) + 1 :] for text in said if text.startswith(f"{path}:"))
        line = next(lines, "1")
        message = next((text for text in said if "Error" in text), "not a module")
        failed(file, line if line.isdigit() else 1, message)


modules = {}
for folder, folders, files in os.walk(source):
    folders[:] = sorted(f for f in folders if f not in PASSED_OVER)
    for entry in sorted(files):
        path = os.path.join(folder, entry)
        file = os.path.relpath(path, source)
        if entry.endswith(".mjs"):
            failed(file, 1, "modules are CommonJS here")
        if entry.endswith((".js", ".cjs", ".json")):
            with open(path, encoding="utf-8", newline="") as opened:
                modules[file] = opened.read()
        if entry.endswith((".js", ".cjs")):
            check(path, file)
start = next((file for file in (f"{name}.js", f"bin/{name}.js") if file in modules), None)
if start is None:
    failed(f"{name}.js", 1, f"there is no {name}.js and no bin/{name}.js")

LOADER = """
const { builtinModules } = require('module'), { posix } = require('path'), { compileFunction } = require('vm');
const loaded = new Map();
const load = (file) => {
  if (loaded.has(file)) return loaded.get(file).exports;
  const module = { exports: {}, filename: '/' + file, id: file };
  loaded.set(file, module);
  if (file.endsWith('.json')) return (module.exports = JSON.parse(modules[file]));
  const folder = posix.dirname(file);
  const find = (name) => {
    if (builtinModules.includes(name.replace(/^node:/, ''))) return require(name);
    const base = posix.join(folder, name);
    const found = [base, base + '.js', base + '.cjs', base + '.json', posix.join(base, 'index.js')]
      .find((path) => /^[.]/.test(name) && Object.hasOwn(modules, path));
    if (found) return load(found);
    throw Object.assign(new Error("Cannot find module '" + name + "'"), { code: 'MODULE_NOT_FOUND' });
  };
  find.main = loaded.get(start);
  const code = compileFunction(modules[file].replace(/^#!.*/, ''),
    ['exports', 'require', 'module', '__filename', '__dirname'], { filename: file });
  code.call(module.exports, module.exports, find, module, '/' + file, posix.join('/', folder));
  return module.exports;
};
process.argv.splice(1, 0, '/' + start);
process.execArgv = [];
load(start);
"""
text = f"const modules = {json.dumps(modules)}, start = {json.dumps(start)};{LOADER}"
text = f"(() => {{{text}}})()"
with open(os.path.join(output, "main.c"), "w", encoding="ascii") as out:
    numbers = ",".join(str(byte) for byte in text.encode() + b"\0")
    out.write(f"static char text[] = {{{numbers}}};\n")
    out.write("""#include <stdlib.h>
int start(int, char **) __asm__("_ZN4node5StartEiPPc");
int main(int count, char **words) {
    char **all = calloc(count + 4, sizeof *all);
    int to = 0;
    if (!all) return 70;
    all[to++] = "node";
    all[to++] = "-e";
    all[to++] = text;
    all[to++] = "--";
    for (int from = 1; from < count; from++) all[to++] = words[from];
    return start(to, all);
}
""")
