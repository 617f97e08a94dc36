//! What a hostile source costs the host before any session: work in proportion to its length, and no
//! more memory. Nobody has said yes to it, and no deadline runs.
//!
//! The allocator of this program counts, and so does the system: time of the processor, of all threads.
//! One test does all, so that nothing else is counted.

#![expect(
    clippy::unwrap_used,
    reason = "a case that cannot be made is a failed test"
)]

use flightproof_certifier::certification::Certification;
use flightproof_certifier::dependency::{self, Allowed};
use flightproof_certifier::fence;
use flightproof_certifier::languages::{self, Language};
use flightproof_certifier::tree::Tree;
use flightproof_certifier::witness::Witness;
use flightproof_core::{Bytes, CommitId, Digest, RelPath};
use flightproof_evidence::{Captured, Change, FileState};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static TOTAL: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn took(bytes: usize) {
    TOTAL.fetch_add(bytes, Relaxed);
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: every call is handed to the system's allocator as it came; beside it, only numbers change.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        took(size);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What one call cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Bytes that were asked for.
    total: usize,
    /// Most that were held at one time.
    peak: usize,
    /// Time of the processor, milliseconds, in the system's steps of ten.
    cpu: u64,
}

/// How much longer the longer text of a case is.
const LONGER: usize = 4;
/// How much more it may cost: work in proportion is `LONGER`, each with each is its square.
const DEARER: usize = 8;
/// What is not counted, for clocks are coarse, and the matching of lines holds up to 32 MiB whatever
/// their number.
const SPARE_MS: u64 = 150;
const SPARE_BYTES: usize = 40 << 20;

fn cost<T>(call: impl FnOnce() -> T) -> Cost {
    let live = LIVE.load(Relaxed);
    PEAK.store(live, Relaxed);
    let (total, cpu) = (TOTAL.load(Relaxed), processor());
    call();
    Cost {
        total: TOTAL.load(Relaxed) - total,
        peak: PEAK.load(Relaxed) - live,
        cpu: processor() - cpu,
    }
}

/// Time of the processor that this program has used, all threads and the system's part, milliseconds.
fn processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let used = fields.split_whitespace().skip(11).take(2);
    used.map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

/// Files of a change: path, before, now.
type Files = Vec<(String, Option<String>, String)>;

struct Case {
    name: &'static str,
    toolchain: &'static str,
    /// How many parts the shorter text has.
    parts: usize,
    make: fn(usize) -> Files,
}

#[test]
fn a_hostile_source_costs_no_more_than_its_length() {
    counting_counts();
    let only = std::env::var("FLIGHTPROOF_COST").ok();
    let mut faults = Vec::new();
    for case in cases() {
        if only.as_ref().is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        let (short, long) = ((case.make)(case.parts), (case.make)(LONGER * case.parts));
        let bytes: usize = long.iter().map(|(.., now)| now.len()).sum();
        let few = cost(|| judged(case.toolchain, &short));
        let many = cost(|| judged(case.toolchain, &long));
        println!("{}, {bytes} bytes: {few:?} {many:?}", case.name);
        let dearer = many.total > DEARER * few.total + SPARE_BYTES
            || many.peak > DEARER * few.peak + SPARE_BYTES
            || many.cpu > DEARER as u64 * few.cpu + SPARE_MS;
        if dearer {
            faults.push(format!("{}: {few:?} {many:?}", case.name));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// The control: work of each with each is noticed, in time and in memory.
fn counting_counts() {
    let each = |n: u64| (0..n).flat_map(|a| (0..n).map(move |b| a ^ b)).max();
    assert!(cost(|| each(3_000)).cpu > 20);
    let held = cost(|| vec![1u8; 1 << 20]);
    assert!(held.total >= 1 << 20 && held.peak >= 1 << 20, "{held:?}");
}

/// What a flight does with a change before its first session. Most of these are refused somewhere.
fn judged(toolchain: &str, files: &Files) {
    let state = |text: &String| FileState {
        executable: false,
        content: Bytes::from(text.as_bytes()),
    };
    let changes = files.iter().map(|(path, old, new)| Change {
        path: RelPath::new(path).unwrap(),
        old: old.as_ref().map(state),
        new: Some(state(new)),
    });
    let captured = Captured {
        repository: "r".to_owned(),
        baseline: CommitId::from_bytes([1; 20]),
        head: CommitId::from_bytes([2; 20]),
        author: "A <a@b.c>".to_owned(),
        committer: "A <a@b.c>".to_owned(),
        bundle: Digest::of(b""),
        bundle_bytes: 1,
        changeset: None,
        snapshot: Digest::of(b"tree"),
        archive: Bytes(Vec::new()),
        kept: Vec::new(),
        kept_digest: None,
        changes: changes.collect(),
    };
    let manifest = RelPath::new("Cargo.toml").unwrap();
    let text = b"[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let files = captured.changes.iter().map(|change| {
        let content = change.new.as_ref().map(|new| &new.content[..]);
        (&change.path, content.unwrap_or_default())
    });
    let tree: Tree<'_> = files.chain([(&manifest, &text[..])]).collect();
    let language = Language::of_toolchain(toolchain);
    let _ = match language {
        None => dependency::check(&captured, &tree, Allowed::default(), None)
            .map(|_| ())
            .and(fence::check(&captured, &tree)),
        Some(language) => languages::fence(&captured, language),
    };
    let witness = witness(toolchain);
    if let Ok(machine) = Certification::new(&captured, &tree, &witness, [7; 32]) {
        machine.lines();
    }
}

fn witness(toolchain: &str) -> Witness {
    let built = match toolchain {
        "rust" => String::new(),
        other => format!(r#""language":"{other}","#),
    };
    let case = |n: usize| {
        format!(
            r#"{{"id":"n{n}","args":["{n}"],"stdin":"","files":{{}},"env":{{}},"expect":{{"exit":0,"stdout":"{n}"}}}}"#
        )
    };
    let cases = parts(4, |n| case(n) + if n < 3 { "," } else { "" });
    let text = format!(
        r#"{{"schema":"flightproof/witness/1",{built}"bin":"p","cases":[{cases}],"waivers":[]}}"#
    );
    Witness::parse(text.as_bytes()).unwrap()
}

fn new_file(text: String) -> Files {
    vec![("src/lib.rs".to_owned(), None, text)]
}

fn new_manifest(text: String) -> Files {
    vec![("a/Cargo.toml".to_owned(), None, text)]
}

fn edited_file(old: &str, text: String) -> Files {
    vec![("src/lib.rs".to_owned(), Some(old.to_owned()), text)]
}

/// So many parts, each with its number.
fn parts(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

fn cases() -> Vec<Case> {
    let rust = |name, parts, make| Case {
        name,
        toolchain: "rust",
        parts,
        make,
    };
    vec![
        rust("lines of macros", 1_500, |n| new_file("a!();\n".repeat(n))),
        rust("lines that nothing judges, of an old file", 1_500, |n| {
            edited_file("fn f() {}\n", "a!();\n".repeat(n))
        }),
        rust("constants beside functions", 1_000, |n| {
            new_file(parts(n, |i| {
                format!("const fn f{i}() {{}}\nstruct S{i};\n")
            }))
        }),
        rust("names of texts", 1_000, |n| {
            new_file(format!("fn f() {{ {} }}\n", "let a = \"\"; ".repeat(n)))
        }),
        rust("names of numbers", 1_000, |n| {
            new_file(format!("fn f() {{ {} }}\n", "let a = b; ".repeat(n)))
        }),
        rust("widths of a format", 1_500, |n| {
            new_file(format!(
                "fn f() {{ println!(\"{}\"); }}\n",
                "{:1}".repeat(n)
            ))
        }),
        rust("locals that nobody reads", 1_000, |n| {
            new_file(format!(
                "fn f() {{\n{}}}\n",
                parts(n, |i| format!("let a{i} = g();\n"))
            ))
        }),
        rust("locals that are ranges", 1_000, |n| {
            new_file(format!("fn f() {{\n{}}}\n", "let x = a..a;\n".repeat(n)))
        }),
        rust("parts of a text", 6_000, |n| {
            new_file(format!("fn f() {{ g(\"{}\"); }}\n", "a ".repeat(n)))
        }),
        rust("operands behind a long condition", 6_000, |n| {
            let long = "cfg ".repeat(n);
            new_file(format!(
                "fn f() {{ let x = \"{long}\"{}; }}\n",
                " + a".repeat(900)
            ))
        }),
        rust("chains of calls", 2, |n| {
            let chain = format!("x{};\n", ".a()".repeat(900));
            new_file(format!("fn f() {{\n{}}}\n", chain.repeat(n)))
        }),
        rust("chains under a condition of the baseline", 2, |n| {
            let old = "#[cfg(windows)]\nfn g() {}\n";
            let chain = format!("x{};\n", ".a()".repeat(900));
            edited_file(old, format!("{old}fn f() {{\n{}}}\n", chain.repeat(n)))
        }),
        rust("conditions around a long text", 12_000, |n| {
            let text = format!("\"{}\"\n", "a".repeat(n));
            new_file(format!(
                "fn f() {{ x({text}){}; }}\n",
                ".is_a()".repeat(300)
            ))
        }),
        rust("empty implementations", 1_000, |n| {
            new_file(parts(n, |i| {
                format!("impl T for S{i} {{}}\nstruct S{i};\n")
            }))
        }),
        rust("methods that calls may reach", 800, |n| {
            let old = format!(
                "{}fn g() {{ x.m1(); }}\n",
                parts(300, |i| format!("impl T{i} for A {{ fn m{i}() {{}} }}\n"))
            );
            let new = format!(
                "{old}impl A {{ {} }}\n",
                parts(n, |i| format!("fn m{i}() {{}}\n"))
            );
            edited_file(&old, new)
        }),
        rust("new names in an old file beside others", 500, |n| {
            let mut files = edited_file("fn g() {}\n", parts(n, |i| format!("use a::n{i};\n")));
            let other = parts(n, |i| format!("use b::o{i}::*;\n"));
            files.push(("src/other.rs".to_owned(), Some(other.clone()), other));
            files
        }),
        rust("attributes beside macros", 800, |n| {
            new_file(parts(n, |i| format!("a! {{}}\n#[b] struct S{i};\n")))
        }),
        rust("imports and what acts", 700, |n| {
            let uses = parts(n, |i| format!("use a{i}::b{i};\n"));
            new_file(format!(
                "{uses}fn f() {{ {} }}\n",
                "fs::write(); ".repeat(n)
            ))
        }),
        rust("lines under a long attribute", 2_000, |n| {
            let long = parts(n, |i| format!("a{i},"));
            new_file(format!("#[b({long})]\n{}fn f() {{}}\n", "\n".repeat(n)))
        }),
        rust("brackets under a long attribute", 2_000, |n| {
            let long = parts(n, |i| format!("a{i},"));
            new_file(format!("#[b({long})]\nlet a = {};\n", "(),".repeat(n)))
        }),
        rust("brackets in a long head", 2_000, |n| {
            new_file(format!("impl A<{}> for B {{}}\n", "(),".repeat(n)))
        }),
        rust("brackets behind a long name of a function", 2_000, |n| {
            let name = "a".repeat(8 * n);
            new_file(format!("fn {name}<{}>() {{}}\n", "[],".repeat(n)))
        }),
        rust("files that declare each other", 3, |n| {
            let both = |layer: usize| format!("mod x{layer}a;\nmod x{layer}b;\n");
            let tests = |text: String| text.replace("mod", "#[cfg(test)]\nmod");
            let mut files = new_file(tests(both(0)));
            for layer in 0..n {
                for file in ["a", "b"] {
                    files.push((format!("src/x{layer}{file}.rs"), None, both(layer + 1)));
                }
            }
            files
        }),
        rust("a manifest with a long key above a list", 500, |n| {
            let long = "a".repeat(100 * n);
            new_manifest(format!("{long} = [{}]\n", "\"\",".repeat(n)))
        }),
        rust("a manifest with a long name of a dependency", 500, |n| {
            let long = "a".repeat(100 * n);
            let keys = parts(n, |i| format!("b{i} = 1\n"));
            new_manifest(format!("[dependencies.{long}]\n{keys}"))
        }),
        rust("a manifest of many keys", 1_500, |n| {
            new_manifest(parts(n, |i| format!("a{i} = 1\n")))
        }),
        rust("data beside much code and a long manifest", 300, |n| {
            let kept = |path: &str, text: String| (path.to_owned(), Some(text.clone()), text);
            let code = parts(n, |i| format!("fn f{i}() {{}} // {}\n", "a".repeat(150)));
            let mut files = vec![kept("src/lib.rs", code)];
            files.push(kept("data/Cargo.toml", parts(n, |i| format!("a{i} = 1\n"))));
            let data = (0..n).map(|i| (format!("data/f{i}.csv"), None, "1\n".to_owned()));
            files.extend(data);
            files
        }),
        Case {
            name: "c: a macro over many lines",
            toolchain: "c",
            parts: 700,
            make: |n| {
                let text = format!(
                    "#define A {}1\nint f(void) {{ return 1; }}\n",
                    "1 + \\\n".repeat(n)
                );
                vec![("src/a.c".to_owned(), None, text)]
            },
        },
        Case {
            name: "c: names without a value",
            toolchain: "c",
            parts: 700,
            make: |n| {
                let text = format!("int {} z;\n", parts(n, |i| format!("a{i}, ")));
                vec![("src/a.c".to_owned(), None, text)]
            },
        },
        Case {
            name: "c: conditional lines",
            toolchain: "c",
            parts: 700,
            make: |n| {
                let text = format!("#if A\n{}#endif\n", "int a(void);\n".repeat(n));
                vec![("src/a.c".to_owned(), None, text)]
            },
        },
        Case {
            name: "python: backslashes in a text",
            toolchain: "python",
            parts: 12_000,
            make: |n| {
                let text = format!("x = '{}'\n", "\\\\".repeat(n));
                vec![("pricing/a.py".to_owned(), None, text)]
            },
        },
        Case {
            name: "python: an assertion of many parts",
            toolchain: "python",
            parts: 700,
            make: |n| {
                let text = format!("assert f({})\n", "a, ".repeat(n));
                vec![("a.py".to_owned(), None, text)]
            },
        },
        Case {
            name: "python: names of texts",
            toolchain: "python",
            parts: 700,
            make: |n| vec![("a.py".to_owned(), None, "a = ''\n".repeat(n))],
        },
        Case {
            name: "python: many documents",
            toolchain: "python",
            parts: 700,
            make: |n| vec![("a.py".to_owned(), None, "'a'\n".repeat(n))],
        },
        Case {
            name: "python: an import of many names",
            toolchain: "python",
            parts: 700,
            make: |n| {
                let text = format!("from a import {} z\n", parts(n, |i| format!("b{i}, ")));
                vec![("a.py".to_owned(), Some("x = 1\n".to_owned()), text)]
            },
        },
        Case {
            name: "node: one function again and again",
            toolchain: "node",
            parts: 400,
            make: |n| {
                let old = "function f() {}\n".to_owned();
                let new = "function f(a) { b; }\n".repeat(n);
                vec![("a.js".to_owned(), Some(old), new)]
            },
        },
    ]
}
