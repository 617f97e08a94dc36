//! Compares two maps, each given as ranges with values like `0-5=a,7-9=b`. Prints whether they are
//! equal, then both orders.

use rangemap::RangeInclusiveMap;

fn map(text: &str) -> RangeInclusiveMap<u32, String> {
    let entries = text.split(',').filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let (range, value) = entry.split_once('=').expect("a value");
            let (start, end) = range.split_once('-').expect("a range");
            let bound = |text: &str| text.parse::<u32>().expect("a number");
            (bound(start)..=bound(end), value.to_owned())
        })
        .collect()
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (left, right) = (map(&given[0]), map(&given[1]));
    println!(
        "{} {:?} {:?}",
        left == right,
        left.partial_cmp(&right).expect("an order"),
        left.cmp(&right)
    );
}
