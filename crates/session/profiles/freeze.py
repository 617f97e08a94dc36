"""Writes a C program that holds the compiled modules of a tree: freeze.py SOURCE NAME OUTPUT.

Nothing of the tree is imported or run here: its text is compiled and nothing else.
"""

import marshal
import os
import sys
import sysconfig

source, name, output = sys.argv[1:]
os.makedirs(output, exist_ok=True)
modules, errors = {}, 0
# Inputs and caches of others; a module cannot be in a folder with such a name.
passed_over = {".git", "tests", "test", "__pycache__"}
for folder, folders, files in os.walk(source):
    folders[:] = sorted(f for f in folders if f not in passed_over and f.isidentifier())
    for file in sorted(files):
        stem, ending = os.path.splitext(file)
        if ending != ".py" or not stem.isidentifier():
            continue
        path = os.path.join(folder, file)
        relative = os.path.relpath(path, source)
        parts = os.path.relpath(os.path.join(folder, stem), source).split(os.sep)
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        if not module:
            continue
        with open(path, "rb") as opened:
            text = opened.read()
        try:
            # The path in a traceback is that in the tree, the same in every session.
            code = compile(text, relative, "exec", dont_inherit=True, optimize=0)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            print(f"{path}:{line}: error: {getattr(error, 'msg', error)}", file=sys.stderr)
            errors += 1
            continue
        modules[module] = (marshal.dumps(code), is_package)
# Folders without a module of their own are packages too.
for module in list(modules):
    parts = module.split(".")[:-1]
    for depth in range(1, len(parts) + 1):
        parent = ".".join(parts[:depth])
        if parent not in modules:
            modules[parent] = (marshal.dumps(compile("", parent, "exec", dont_inherit=True)), True)
main = f"{name}.__main__" if f"{name}.__main__" in modules else name
if main not in modules:
    print(f"{source}/{name}.py:1: error: there is no {name}.py and no {name}/__main__.py", file=sys.stderr)
    errors += 1
if errors:
    sys.exit(1)
# Run under the name that a program's first module has.
modules["__main__"] = (modules[main][0], False)

with open(os.path.join(output, "main.c"), "w", encoding="ascii") as out:
    out.write('#include <Python.h>\n')
    rows = []
    for number, (module, (code, is_package)) in enumerate(sorted(modules.items())):
        out.write(f"static const unsigned char M{number}[] = {{{','.join(map(str, code))}}};\n")
        rows.append(f'{{"{module}", M{number}, sizeof M{number}, {int(is_package)}}}')
    out.write(f"static const struct _frozen modules[] = {{{', '.join(rows)}, {{0}}}};\n")
    out.write(f"""
static int failed(PyStatus status) {{
  if (!PyStatus_Exception(status)) return 0;
  Py_ExitStatusException(status);
  return 1;
}}
int main(int argc, char **argv) {{
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  PyImport_FrozenModules = modules;
  config.site_import = 0;
  config.write_bytecode = 0;
  config.use_hash_seed = 1;
  config.hash_seed = 0;
  config.pathconfig_warnings = 0;
  config.parse_argv = 0;
  config.install_signal_handlers = 1;
  PyPreConfig before;
  PyPreConfig_InitIsolatedConfig(&before);
  before.utf8_mode = 1;
  if (failed(Py_PreInitialize(&before))) return 1;
  if (failed(PyConfig_SetBytesArgv(&config, argc, argv))) return 1;
  if (failed(PyConfig_SetString(&config, &config.program_name, L"program"))) return 1;
  config.module_search_paths_set = 1;
  if (failed(PyWideStringList_Append(&config.module_search_paths, L"{sysconfig.get_path('stdlib')}"))) return 1;
  if (failed(PyWideStringList_Append(&config.module_search_paths,
      L"{sysconfig.get_config_var('DESTSHARED')}"))) return 1;
  if (failed(Py_InitializeFromConfig(&config))) return 1;
  PyConfig_Clear(&config);
  int done = PyImport_ImportFrozenModule("__main__");
  if (done < 0) PyErr_Print();
  int ended = Py_FinalizeEx();
  return done == 1 && ended == 0 ? 0 : 1;
}}
""")
version = f"{sys.version_info.major}.{sys.version_info.minor}"
with open(os.path.join(output, "flags"), "w", encoding="ascii") as out:
    out.write(f"-I{sysconfig.get_path('include')}\n-lpython{version}\n")
