//! Fills the text to ten columns, `\e` standing for the escape character.

fn main() {
    let text = std::env::args().nth(1).expect("a text");
    println!("{}", textwrap::fill(&text.replace("\\e", "\u{1b}"), 10).escape_debug());
}
