//! Reads a number on the first line and bytes after it; prints the bytes escaped and shortened to
//! that many.

use std::io::Read as _;

fn main() {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    let end = input.iter().position(|byte| *byte == b'\n').unwrap();
    let most = std::str::from_utf8(&input[..end]).unwrap().parse().unwrap();
    println!("{}", flightproof_core::escape(&input[end + 1..], most));
}
