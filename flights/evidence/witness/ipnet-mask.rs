//! Prints the prefix length of the mask given as argument, or that it is none.

fn main() {
    let mask = std::env::args().nth(1).expect("a mask");
    let mask = mask.parse().expect("an address");
    match ipnet::ip_mask_to_prefix(mask) {
        Ok(length) => println!("{length}"),
        Err(_) => println!("no mask"),
    }
}
