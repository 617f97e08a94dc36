//! Every syntax the engine must get through, in one program.
#![allow(dead_code)]
#![deny(warnings)]

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

const LIMIT: usize = 4 + 4;
static NAMES: [&str; 2] = ["a", "b"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
enum Level {
    Low = 1,
    High = 1 + 9,
}

const fn doubled(x: usize) -> usize {
    x * 2
}

struct Point<const N: usize> {
    at: [i32; N],
}

trait Area {
    const UNIT: i32 = 1;
    fn area(&self) -> i32 {
        Self::UNIT * 1
    }
    fn name(&self) -> String;
}

impl<const N: usize> Area for Point<N> {
    fn name(&self) -> String {
        format!("point{}", self.at[0] + 1)
    }
}

impl<const N: usize> fmt::Display for Point<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.at[N - 1])
    }
}

fn signs(x: i8) -> i8 {
    let low = -128i8;
    let big = 4_000_000_000 as u64;
    if x == low && big > 3 { -1 } else { -x }
}

fn statement_position(v: &mut Vec<i32>) -> bool {
    let mut n = 0;
    n += 2;
    n <<= 1;
    v[0] -= n;
    if n > 3 {
        v.push(n);
    }
    match n {
        4 => v.push(-1),
        _ => {}
    }
    n == 4
}

fn trailing(x: u32) -> u32 {
    let y = match x { 0 => 1, n => n } + 2;
    let z = if y > 2 { y } else { 4 } / 2;
    loop {
        if z > 1000 { break y } else { break z + 1 }
    }
}

fn chain(a: Option<u32>, b: u32) -> u32 {
    if let Some(x) = a && x > 1 && b < 10 {
        return x + b;
    }
    let Some(y) = a else { return b * 3 };
    while let Some(z) = a && z > 100 {
        return z;
    }
    y
}

fn scrutinee(x: u32) -> &'static str {
    match (x + 1, x % 2 == 0) {
        (n, true) if n > 5 && n < 100 => "even",
        (1..=5, _) => "small",
        _ => "other",
    }
}

fn labels(grid: &[[u8; 3]; 2]) -> Option<(usize, usize)> {
    let found = 'outer: {
        for (i, row) in grid.iter().enumerate() {
            for j in 0..row.len() - 1 {
                if row[j + 1] == 7 { break 'outer Some((i, j + 1)); }
            }
        }
        None
    };
    found
}

fn parse(text: &str) -> Result<i64, String> {
    let first = text.split(',').next().ok_or("none")?;
    let n = first.trim().parse::<i64>().map_err(|e| e.to_string())? * 10;
    Ok(n.pow(2) - 5i64.pow(1))
}

fn closures(v: &[i32]) -> Vec<i32> {
    let add = |x: &i32| x + 1;
    let mut out: Vec<i32> = v.iter().map(add).filter(|x| x % 2 != 0 || *x > 10).collect();
    out.sort_by(|a, b| (b * 2).cmp(&(a * 2)));
    out
}

fn floats(x: f64) -> f64 {
    -x * 2.0 + 1e3 - (x as f32) as f64 / 0.5
}

fn macros(x: u32, names: &BTreeMap<String, u32>) -> Vec<u32> {
    assert!(x < 1000);
    assert!(x != 999, "x was {}", x + 1);
    assert_eq!(x + 0, x);
    debug_assert!(matches!(x % 5, 0 | 1 | 2 | 3 | 4));
    let list = vec![x, x + 1, 7];
    let zeros = vec![0u32; 2];
    println!("{} {:>width$} {x}", names.len() + 1, x, width = 3 + 1);
    std::println!("{}", matches!(x + 1, 5 | 6) && !names.is_empty());
    list.into_iter().chain(zeros).collect()
}

fn strings(s: &str) -> String {
    let joined = s.to_owned() + "-" + &"x".repeat(2);
    let lines = "one
two";
    if joined.is_empty() { String::from("empty") } else { joined + lines }
}

fn multi_line(a: u32, b: u32) -> bool {
    a // the left
        + 1 < b
        && a
            != b
}

fn promoted(i: usize) -> &'static u32 {
    let table: &'static [u32] = &[10, 20, 30];
    &table[i]
}

fn generic<T: Copy + std::ops::Add<Output = T> + PartialOrd>(a: T, b: T) -> T {
    if a < b { a + b } else { a }
}

fn iterator(n: u32) -> impl Iterator<Item = u32> {
    (0..n + 1).filter(move |x| x & 1 == 0)
}

fn never(flag: bool) -> u32 {
    if flag { panic!("flag {}", 1 + 1) }
    1
}

fn raw(p: &u32) -> u32 {
    unsafe { *(p as *const u32) + 1 }
}

fn sub_command<'a>(args: &'a [&'a str]) -> Option<&'a str> {
    let inner = |at: usize| -> Option<&'a str> { args.get(at + 1).copied() };
    inner(0)
}

fn poll<F: std::future::Future<Output = u32>>(f: F) -> u32 {
    let mut f = Box::pin(f);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match f.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(v) => v,
        std::task::Poll::Pending => 0,
    }
}

async fn inner(x: u32) -> u32 {
    x + 1
}

async fn outer(x: u32) -> u32 {
    let block = async { inner(x).await * 2 };
    block.await + inner(1).await
}

fn shadow() -> usize {
    #![allow(unused_variables)]
    let array = [[0u8; LIMIT]; doubled(2)];
    array.len() + LIMIT + NAMES.len() + Level::High as usize
}

macro_rules! own {
    ($e:expr) => { $e + 1 };
}

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("stdin is text");
    let mut v = vec![10, 20, 30];
    println!("{} {}", signs(5), signs(-128));
    println!("{} {v:?}", statement_position(&mut v));
    println!("{} {}", trailing(0), trailing(9));
    println!("{} {} {}", chain(Some(5), 2), chain(Some(1), 50), chain(None, 4));
    println!("{} {} {}", scrutinee(7), scrutinee(6), scrutinee(2));
    println!("{:?}", labels(&[[0, 1, 2], [3, 4, 7]]));
    println!("{:?} {:?}", parse(&input), parse("x"));
    println!("{:?} {}", closures(&[1, 2, 11]), floats(1.5));
    println!("{:?}", macros(4, &BTreeMap::from([("k".to_owned(), 1)])));
    println!("{} {}", strings("s"), multi_line(1, 5));
    println!("{} {} {}", promoted(1), generic(1, 2), generic(2.5, 1.0));
    println!("{:?} {} {}", iterator(4).collect::<Vec<_>>(), never(false), raw(&1));
    println!("{:?} {} {}", sub_command(&["a", "b"]), poll(outer(3)), shadow());
    let p = Point::<2> { at: [1, 2] };
    println!("{} {} {} {}", p, p.area(), p.name(), own!(1));
    println!("{}", line!());
    std::process::exit(if input.len() > 100 { 3 } else { 0 });
}

#[cfg(test)]
mod tests {
    //! Not part of the program.
    #![allow(unused)]
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(1 + 1, trailing(0));
    }
}
