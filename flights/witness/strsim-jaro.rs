//! Reads one case from standard input, three lines: metric, left text, right text. Prints the
//! similarity so that two different numbers never print alike.

use std::io::Read;

fn main() {
    let mut case = String::new();
    std::io::stdin()
        .read_to_string(&mut case)
        .expect("a case is text");
    let lines: Vec<&str> = case.split('\n').collect();
    let similarity = match lines[0] {
        "jaro" => strsim::jaro(lines[1], lines[2]),
        "jaro-winkler" => strsim::jaro_winkler(lines[1], lines[2]),
        other => panic!("no such metric: {}", other),
    };
    println!("{:?}", similarity);
}
