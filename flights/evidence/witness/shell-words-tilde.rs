//! Prints the argument quoted for a shell.

fn main() {
    let word = std::env::args().nth(1).expect("a word");
    println!("{}", shell_words::quote(&word));
}
