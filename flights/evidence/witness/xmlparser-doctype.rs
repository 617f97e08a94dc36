//! Prints the tokens of the text given, one a line, and the first error.

use xmlparser::{ElementEnd, Token, Tokenizer};

fn main() {
    let text = std::env::args().nth(1).expect("a text");
    for token in Tokenizer::from(text.as_str()) {
        match token {
            Ok(Token::DtdStart { name, span, .. }) => println!("dtd {} {:?}", name, span.range()),
            Ok(Token::EmptyDtd { name, span, .. }) => println!("no dtd {} {:?}", name, span.range()),
            Ok(Token::DtdEnd { span }) => println!("end {:?}", span.range()),
            Ok(Token::EntityDeclaration { name, span, .. }) => {
                println!("entity {} {:?}", name, span.range());
            }
            Ok(Token::ElementStart { local, span, .. }) => {
                println!("element {} {:?}", local, span.range());
            }
            Ok(Token::ElementEnd { end, span }) => {
                let how = if end == ElementEnd::Empty { "empty" } else { "open or closed" };
                println!("{how} {:?}", span.range());
            }
            Ok(Token::Text { text }) => println!("text {:?}", text.range()),
            Ok(other) => println!("{other:?}"),
            Err(error) => println!("{error}"),
        }
    }
}
