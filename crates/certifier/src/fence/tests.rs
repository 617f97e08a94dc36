use super::*;
use crate::samples::{captured, change};
use CertifierCode::{
    ConditionalCode, ForeignLinkage, SourceBidi, SourceIntrospection, SourceTooDeep,
    UncheckedSource, UnsafeCode,
};

fn judge(old: Option<&str>, new: &str) -> Result<(), CertifierError> {
    let change = change("src/lib.rs", old.map(str::as_bytes), Some(new.as_bytes()));
    check(&captured(vec![change]), &Tree::default())
}

fn code(line: &str) -> Option<CertifierCode> {
    let old = "fn a() {}\nfn b() {}\n";
    let new = format!("fn a() {{}}\n{line}\nfn b() {{}}\n");
    judge(Some(old), &new).err().map(|refused| refused.code)
}

/// Each attack with its benign twins.
type Family = (
    CertifierCode,
    &'static [&'static str],
    &'static [&'static str],
);

const FAMILIES: &[Family] = &[
    (
        UnsafeCode,
        &[
            "fn f() { unsafe { g() } }",
            "unsafe impl Send for A {}",
            "fn f() { m!(unsafe { g() }); }",
            "macro_rules! m { () => { unsafe { g() } } }",
            "#[unsafe(no_mangle)] fn f() {}",
            "/* a */ unsafe /* b */ fn f() {}",
            "core::arch::global_asm!(\"nop\");",
            "use core::arch::asm as assert;",
        ],
        &[
            "fn f() { g(\"unsafe { }\") }",
            "// unsafe { g() }",
            "/// unsafe { g() }",
            "fn f() { let r#unsafe = 1; }",
            "#![forbid(unsafe_code)]",
            "fn f() { let asm = 1; }",
        ],
    ),
    (
        SourceIntrospection,
        &[
            "const A: &str = include_str!(\"lib.rs\");",
            "const A: &[u8] = std::include_bytes ! [\"lib.rs\"];",
            "include!{\"x.rs\"}",
            "fn f() { g(line!()) }",
            "fn f() { g(core::line!()) }",
            "use std::line as here;",
            "use core::{fmt, file};",
            "use s::{column as c};",
            "use std::env as e;",
            "const A: &str = env!(\"PATH\");",
            "const A: Option<&str> = option_env!(\"GUARD\");",
            "fn f() { println!(\"{}\", file!()) }",
            "fn f() { r#include_str!(\"lib.rs\"); }",
            "fn f() { g(stringify!(a + b)) }",
            "fn f() { module_path!(); }",
            "fn f() { std::any::type_name::<A>(); }",
            "fn f() { t::<A>(); } use std::any::type_name;",
            "fn f() { type_name::<A>(); }",
            "#[track_caller] fn f() {}",
            "fn f() { L::caller(); }",
            "struct L; use std::panic::Location as L; fn f() { L::caller(); } fn caller() {}",
            "use std::panic as p; struct L; fn caller() {} fn f() { p::Location::caller(); }",
            "m!(module_path);",
            "use std::stringify;",
            "fn f() { std::backtrace::Backtrace::force_capture(); }",
            "fn f() { std::env::current_exe(); }",
            "fn f() { std::panic::set_hook(h); }",
            "#[path = \"other.txt\"] mod other;",
            "#![path = \"other.txt\"]",
            "macro_rules! m { ($n:ident) => { $n!() } }",
            "macro_rules! m { ($a:tt) => { line!$a } }",
            "#[doc = include_str!(\"lib.rs\")] fn f() {}",
            // Another answer in another build.
            "fn f() { (a as fn(u64) -> u64 as usize).abs_diff(b as usize); }",
            "fn f() { a as extern \"C\" fn(); }",
            "fn f() { a as usize; } fn a() {}",
            "use m::a; fn f() { a as u64; }",
            "fn f() { m::a as usize; }",
            "fn f() { a::<u8> as usize; }",
            "fn f() { &x as *const u8; }",
            "fn f(x: *mut u8) {}",
            "fn f() { &raw const x; }",
            "fn f() { std::ptr::fn_addr_eq(a, b); }",
            "fn f() { std::ptr::addr_eq(a, b); }",
            "fn f() { std::ptr::eq(a, b); }",
            "use std::ptr::eq;",
            "use std::ptr::{eq as same};",
            "use std::ptr as p;",
            "fn f() { a.as_ptr(); }",
            "fn f() { std::panic::catch_unwind(|| 1); }",
            "use std::panic::catch_unwind as c;",
            "fn f() { std::thread::panicking(); }",
            "fn f() { format!(\"{:p}\", a); }",
            "fn f() { format!(\"{a:#20p}\"); }",
            "impl A { fn f() { std::fmt::Pointer::fmt(a, b); } }",
        ],
        &[
            "fn f(line: u32, column: u32, file: &str) -> bool { line != 3 && column!=line }",
            "fn f() { let include = file.line as u64; }",
            "struct T { module_path: u64 } impl T { fn stringify(self) { self.module_path } }",
            "struct T; impl T { fn caller() {} } fn f() { T::caller(); }",
            "use std::{env, fs::File};",
            "fn f() { std::env::args(); }",
            "const A: &str = env!(\"CARGO_PKG_VERSION\");",
            "fn f() { g(\"include_str!(x) line!()\") }",
            "// file!() line!()",
            "fn f() { self.type_name(); caller(); x.caller(); }",
            "fn f(total: u32) { total as u64; self.width as usize; x.total() as u64; }",
            "fn total() {} fn f() { let total = 1; total as u64; }",
            "fn f() { g(\"{p} {step} {map}: {a:?} p\", x * y, A::B as u8, u8::MAX as u16); }",
            "const A: [fn(u64) -> u64; 1] = [f]; fn f(g: &fn(u8)) { Rc::ptr_eq(a, b); }",
            "#[serde(path = \"a\")] struct A;",
            "fn f() -> impl A + use<'a> { g(line, file) }",
            "macro_rules! m { ($n:ident) => { $n != 3 } }",
        ],
    ),
    (
        ForeignLinkage,
        &[
            "#[no_mangle] pub fn f() {}",
            "m!(no_mangle, f);",
            "#[strange(link_name = \"f\")] fn f() {}",
            "#[link_section = \".init_array\"] static A: fn() = f;",
            "#[export_name = \"f\"] fn f() {}",
            "extern \"C\" { fn g(); }",
            "pub extern \"C\" fn f() {}",
            "extern fn f() {}",
            "#[global_allocator] static A: B = B;",
            "#[panic_handler] fn f() {}",
            "#[link(name = \"c\")] mod a {}",
            "#[used] static A: u8 = 1;",
            "#![no_main]",
            "macro_rules! m { () => { #[no_mangle] fn f() {} } }",
        ],
        &[
            "extern crate alloc;",
            "fn f() { let link = used; }",
            "fn f(link_name: u64) { println!(\"{}\", link_name - link_name / 10); }",
            "fn f() { let r#extern = \"C\"; }",
            "// #[no_mangle]",
            "#[inline] fn f() {}",
        ],
    ),
    (
        ConditionalCode,
        &[
            "#[cfg(debug_assertions)] fn f() {}",
            "#[cfg(not(test))] fn f() {}",
            "#[cfg(any(test, unix))] fn f() {}",
            "#[cfg_attr(test, derive(Debug))] struct A;",
            "fn f() -> bool { cfg!(debug_assertions) }",
            "use std::cfg as assert;",
            "use std::{cfg};",
            "macro_rules! m { ($p:meta) => { #[cfg($p)] fn f() {} } }",
            "#![cfg(unix)]",
            "cfg_if::cfg_if! { if #[cfg(test)] {} }",
        ],
        &[
            "#[cfg(test)] mod t {}",
            "#[test] fn f() {}",
            "fn f() { let cfg = cfg.test; }",
            "// #[cfg(unix)]",
        ],
    ),
    (
        SourceBidi,
        &["fn f() { let \u{430}dmin = 1; }", "// \u{202e}"],
        &["fn f() { g(\"größe \u{430}\") } // größe"],
    ),
];

#[test]
fn each_construct_is_refused_by_its_code_and_its_twin_is_not() {
    for (expected, attacks, twins) in FAMILIES {
        for attack in *attacks {
            assert_eq!(code(attack), Some(*expected), "{attack}");
        }
        for twin in *twins {
            assert_eq!(code(twin), None, "{twin}");
        }
    }
}

#[test]
fn what_stood_there_before_may_stay() {
    let old = "unsafe fn a() { line!(); }\nfn b() {}\n";
    assert!(judge(Some(old), &old.replace("fn b() {}", "fn b() { c() }")).is_ok());
    let touched = judge(Some(old), &old.replace("line!()", "g()")).unwrap_err();
    assert_eq!(touched.code, UnsafeCode);
}

#[test]
fn code_uncovered_by_removing_a_comment_or_a_string_is_refused() {
    for (old, new) in [
        (
            "fn a() {}\n/*\n\nunsafe fn b() {}\n\n*/\nfn c() {}\n",
            "fn a() {}\n\n\nunsafe fn b() {}\n\n\nfn c() {}\n",
        ),
        (
            "m!(r#\"\n\nunsafe {}\n\n\"#);\n",
            "m!(\n\nunsafe {}\n\n);\n",
        ),
        (
            "// \\\nunsafe fn b() {}\n",
            "unsafe fn b() {}\nunsafe fn b() {}\n",
        ),
    ] {
        assert_eq!(judge(Some(old), new).unwrap_err().code, UnsafeCode, "{new}");
    }
    let old = "/*\nfn b() {}\n*/\n";
    assert!(judge(Some(old), "fn b() {}\n").is_ok());
}

#[test]
fn a_construct_spread_over_lines_is_found_when_one_of_them_is_touched() {
    let old = "fn f() { g(line\n, 1) }\n";
    assert_eq!(
        judge(Some(old), "fn f() { g(line\n!(), 1) }\n")
            .unwrap_err()
            .code,
        SourceIntrospection
    );
    assert!(judge(Some(old), "fn f() { g(line\n, 2) }\n").is_ok());
}

#[test]
fn an_unreadable_baseline_excuses_nothing() {
    let old = "fn f( {\nunsafe fn b() {}\n";
    assert_eq!(
        judge(Some(old), "fn f() {}\nunsafe fn b() {}\n")
            .unwrap_err()
            .code,
        UnsafeCode
    );
}

#[test]
fn the_refusal_names_file_line_and_construct() {
    let refused = judge(None, "fn f() {\n    g(line!());\n}\n").unwrap_err();
    assert_eq!(refused.detail, "src/lib.rs:2: line!( on a changed line");
    assert_eq!(
        judge(
            None,
            &format!("fn f() {{ {} }}", "(".repeat(3_000) + &")".repeat(3_000))
        )
        .unwrap_err()
        .code,
        SourceTooDeep
    );
}

#[test]
fn a_deleted_file_and_a_file_that_is_no_rust_are_not_read() {
    for change in [
        change("src/old.rs", Some(b"unsafe fn f() {}"), None),
        change("notes.md", None, Some(b"unsafe { \xff")),
    ] {
        assert!(check(&captured(vec![change]), &Tree::default()).is_ok());
    }
}

#[test]
fn a_changed_file_that_a_source_includes_is_refused() {
    let path = RelPath::new("src/lib.rs").unwrap();
    let run = |lib: &str| {
        let change = change("src/table.in", Some(b"[1]"), Some(b"[{ unsafe { f() } }]"));
        let tree = [(&path, lib.as_bytes())].into_iter().collect();
        check(&captured(vec![change]), &tree)
            .err()
            .map(|refused| refused.code)
    };
    for source in [
        "const A: [u8; 1] = include!(\"table.in\");",
        "include!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/src/table.in\"));",
        "#[path = \"table.in\"] mod table;",
        "fn f( { include!(\"table.in\") }",
    ] {
        assert_eq!(run(source), Some(UncheckedSource), "{source}");
    }
    for source in [
        "const A: &str = include_str!(\"table.in\");",
        "fn f() { read(\"table.in\") } // include!",
        "const A: [u8; 1] = include!(\"other.in\");",
    ] {
        assert_eq!(run(source), None, "{source}");
    }
}

#[test]
fn a_byte_order_mark_that_was_there_is_no_news_and_a_new_one_is() {
    let marked = "\u{feff}fn a() {}\n";
    let refused = |old: &str, new: &str| judge(Some(old), new).err().map(|error| error.code);
    assert_eq!(refused(marked, "\u{feff}fn a() {}\nfn b() {}\n"), None);
    assert_eq!(refused("fn a() {}\n", marked), Some(SourceBidi));
    let inside = "\u{feff}fn a() {}\n\u{feff}fn b() {}\n";
    assert_eq!(refused(marked, inside), Some(SourceBidi));
    let unsafe_code = "\u{feff}unsafe fn a() {}\n";
    assert_eq!(refused(marked, unsafe_code), Some(UnsafeCode));
}
