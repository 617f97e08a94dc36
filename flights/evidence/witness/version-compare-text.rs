//! Prints how the first version given compares with the second: Lt, Eq or Gt.

use version_compare::Version;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let version = |at: usize| Version::from(&given[at]).expect("a version");
    println!("{:?}", version(0).compare(&version(1)));
}
