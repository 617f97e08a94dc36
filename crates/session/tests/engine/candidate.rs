//! A candidate that does what its first argument says. Built inside the session under test.
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

unsafe extern "C" {
    fn fork() -> i32;
    fn pause() -> i32;
    fn raise(signal: i32) -> i32;
    fn setsid() -> i32;
    fn signal(signal: i32, action: usize) -> usize;
    fn close(fd: i32) -> i32;
    fn fcntl(fd: i32, command: i32, ...) -> i32;
    fn getuid() -> u32;
    fn syscall(number: i64, ...) -> i64;
    fn __errno_location() -> *mut i32;
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = std::io::stdout();
    match words.as_slice() {
        ["echo"] => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).unwrap();
            out.write_all(&text).unwrap();
        }
        ["exit", code] => std::process::exit(code.parse().unwrap()),
        ["raise", number] => {
            unsafe { raise(number.parse().unwrap()) };
        }
        ["deaf"] => {
            for number in 1..32 {
                unsafe { signal(number, 1) };
            }
            loop {
                std::hint::spin_loop();
            }
        }
        ["sleep"] => loop {
            unsafe { pause() };
        },
        ["flood"] => loop {
            let _ = out.write_all(&[b'x'; 4096]);
        },
        ["flood-errors"] => loop {
            let _ = std::io::stderr().write_all(&[b'x'; 4096]);
        },
        // What an engine's frames and our own messages look like.
        ["forge"] => {
            out.write_all(b"\x01\0\0\0\0\0\0\x02no\x03\0\0\0\0\0\0\x05error\0\0\0\x02\x05\0\0\0\x01{}\xff\xfe\x1b]0;x\x07")
                .unwrap();
        }
        ["early-close"] => {
            unsafe { close(1) };
            unsafe { close(2) };
            std::thread::sleep(std::time::Duration::from_millis(200));
            std::process::exit(5);
        }
        // A grandchild that keeps the output open, in a session of its own.
        ["daemon"] => {
            if unsafe { fork() } == 0 {
                unsafe { setsid() };
                if unsafe { fork() } == 0 {
                    loop {
                        unsafe { pause() };
                    }
                }
                std::process::exit(0);
            }
            std::process::exit(7);
        }
        ["forks"] => loop {
            if unsafe { fork() } == 0 {
                loop {
                    unsafe { pause() };
                }
            }
        },
        ["memory"] => eat(),
        // The child is killed for memory; its parent does as if nothing were.
        ["memory-of-a-child"] => {
            let child = unsafe { fork() };
            if child == 0 {
                eat();
            }
            let mut status = 0i32;
            unsafe { syscall(61, child, &raw mut status, 0, 0) };
        }
        // Each file is smaller than a file may be; together they are more than there is room for.
        ["fill"] => {
            for name in 0..64 {
                if let Err(error) = std::fs::write(name.to_string(), vec![7u8; 4 << 20]) {
                    std::process::exit(error.raw_os_error().unwrap_or(1));
                }
            }
        }
        // Its mode, and whether it is this case's own.
        ["scratch"] => {
            let scratch = std::fs::metadata("/case").unwrap();
            let own = scratch.uid() == unsafe { getuid() };
            println!("{:o} {own}", scratch.mode() & 0o7777);
        }
        ["start", path] => println!("{}", started(path)),
        // Written here, and marked to run as whoever owns it.
        ["start-own"] => {
            std::fs::write("/case/own", "#!/bin/sh\n").unwrap();
            let marked = std::fs::Permissions::from_mode(0o6755);
            std::fs::set_permissions("/case/own", marked).unwrap();
            println!("{}", started("/case/own"));
        }
        ["leave", name] => std::fs::write(name, "left").unwrap(),
        ["socket", family] => {
            let family: i32 = family.parse().unwrap();
            answer(unsafe { syscall(41, family, 1, 0) });
        }
        ["call", number] => {
            let number: i64 = number.parse().unwrap();
            answer(unsafe { syscall(number, 0i64, 0i64, 0i64, 0i64, 0i64) });
        }
        ["user-namespace"] => answer(unsafe { syscall(272, 0x1000_0000) }),
        ["descriptors"] => {
            for fd in 3..1024 {
                if unsafe { fcntl(fd, 1) } >= 0 {
                    println!("{fd}");
                }
            }
        }
        // The names of the machine are 65 bytes each; its own is the second.
        ["host-name"] => {
            let mut names = [0u8; 6 * 65];
            unsafe { syscall(63, names.as_mut_ptr()) };
            let name: Vec<u8> = names[65..].iter().copied().take_while(|b| *b != 0).collect();
            println!("{}", String::from_utf8(name).unwrap());
        }
        ["uid"] => println!("{}", unsafe { getuid() }),
        ["environment"] => {
            let mut all: Vec<String> = std::env::vars().map(|(n, v)| format!("{n}={v}")).collect();
            all.sort();
            println!("{}", all.join(" "));
        }
        ["read", paths @ ..] => {
            for path in paths {
                if std::fs::read(path).is_ok() || std::fs::read_dir(path).is_ok() {
                    println!("{path}");
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

fn eat() {
    let mut all = Vec::new();
    loop {
        all.push(vec![1u8; 1 << 20]);
    }
}

/// 0 for a program that was started; what is not there is as closed as what may not be.
fn started(path: &str) -> i32 {
    match std::process::Command::new(path).status() {
        Ok(_) => 0,
        Err(error) if error.kind() == ErrorKind::NotFound => 13,
        Err(error) => error.raw_os_error().unwrap_or(1),
    }
}

fn answer(result: i64) {
    let error = unsafe { *__errno_location() };
    println!("{}", if result < 0 { error } else { 0 });
}
