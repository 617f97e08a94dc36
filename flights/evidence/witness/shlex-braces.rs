//! Prints bytes, given as hexadecimal digits, quoted for a shell, with what is no ASCII escaped.

fn main() {
    let digits = std::env::args().nth(1).expect("digits");
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits"))
        .collect();
    println!("{}", shlex::bytes::quote(&bytes).escape_ascii());
}
