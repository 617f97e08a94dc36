"""Writes a C program that holds the CommonJS modules of a tree: bundle.py SOURCE NAME OUTPUT [NODE].

It starts at NAME.js, or at bin/NAME.js. Nothing of the tree is run here: Node parses each module
(`--check`) and does nothing else with it. With the path of a Node program the modules are those in
TypeScript: that Node takes their types off, here, and runs what is left, in the cases.
"""

import ctypes
import json
import os
import subprocess
import sys

source, name, output, *node = sys.argv[1:]
os.makedirs(output, exist_ok=True)
START = None if node else ctypes.CDLL("libnode.so.108")._ZN4node5StartEiPPc
MODULES = (".ts", ".cts") if node else (".js", ".cjs")
# What may be left out of a module's name: in TypeScript nothing, as Node has it.
ENDINGS = ["", ".json"] if node else ["", ".js", ".cjs", ".json", "/index.js"]
PASSED_OVER = {".git", "test", "tests", "node_modules"}


def failed(file, line, message):
    print(f"{source}/{file}:{line}: error: {message}", file=sys.stderr)
    sys.exit(1)


STRIP = """
const { stripTypeScriptTypes } = require('module'), { compileFunction } = require('vm'), fs = require('fs');
const path = process.argv[1];
try {
  const code = stripTypeScriptTypes(fs.readFileSync(path, 'utf8'));
  compileFunction(code.replace(/^#!.*/, ''), ['exports', 'require', 'module', '__filename', '__dirname'], { filename: path });
  fs.writeFileSync(1, code);
} catch (error) {
  console.error(error.stack.startsWith(path) ? error.stack : path + error.stack);
  process.exitCode = 1;
}
"""


def refuse(path, file, said):
    lines = (text[len(path) + 1 :] for text in said if text.startswith(f"{path}:"))
    line = next(lines, "1")
    message = next((text for text in said if "Error" in text), "not a module")
    failed(file, line if line.isdigit() else 1, message)


def without_types(path, file):
    """Has Node take the types of a module off, and parse what is left."""
    words = [*node, "--no-warnings", "-e", STRIP, "--", path]
    done = subprocess.run(words, capture_output=True)
    if done.returncode != 0:
        refuse(path, file, done.stderr.decode(errors="replace").splitlines())
    return done.stdout.decode()


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
        refuse(path, file, said)


modules = {}
for folder, folders, files in os.walk(source):
    folders[:] = sorted(f for f in folders if f not in PASSED_OVER)
    for entry in sorted(files):
        path = os.path.join(folder, entry)
        file = os.path.relpath(path, source)
        if entry.endswith((".d.ts", ".d.cts", ".d.mts") if node else ()):
            continue
        if entry.endswith(".mts" if node else ".mjs"):
            failed(file, 1, "modules are CommonJS here")
        if entry.endswith((*MODULES, ".json")):
            with open(path, encoding="utf-8", newline="") as opened:
                modules[file] = opened.read()
        if entry.endswith(MODULES):
            if node:
                modules[file] = without_types(path, file)
            else:
                check(path, file)
first = f"{name}{MODULES[0]}"
start = next((file for file in (first, f"bin/{first}") if file in modules), None)
if start is None:
    failed(first, 1, f"there is no {first} and no bin/{first}")

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
    const found = endings.map((ending) => posix.join(folder, name + ending))
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
text = f"const modules = {json.dumps(modules)}, start = {json.dumps(start)};"
text = f"{text}const endings = {json.dumps(ENDINGS)};{LOADER}"
text = f"(() => {{{text}}})()"
with open(os.path.join(output, "main.c"), "w", encoding="ascii") as out:
    numbers = ",".join(str(byte) for byte in text.encode() + b"\0")
    out.write(f"static char text[] = {{{numbers}}};\n")
    if node:
        out.write(f'#define NODE {json.dumps(node[0])}\n#include "launch.c"\n')
        sys.exit()
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
