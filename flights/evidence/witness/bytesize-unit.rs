//! Prints the number of bytes that the argument says, or why it says none.

fn main() {
    let text = std::env::args().nth(1).expect("a size");
    match text.parse::<bytesize::ByteSize>() {
        Ok(size) => println!("{} bytes", size.as_u64()),
        Err(why) => println!("{why}"),
    }
}
