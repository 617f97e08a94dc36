//! Which files of the tree a build read: what cargo writes down beside each product.

use super::command::reader;
use crate::upload::execute;
use crate::{Session, SessionCode, SessionError};
use flightproof_core::{RelPath, escape};
use flightproof_frame::protocol::{Status, layout};
use std::collections::BTreeSet;

/// The files of the tree that went into a product.
///
/// # Errors
/// `BUILD_PRODUCT` if cargo wrote nothing down about it, and what the session refuses.
pub(super) fn reads(
    session: &mut dyn Session,
    product: &str,
    wall_ms: u64,
) -> Result<BTreeSet<RelPath>, SessionError> {
    let stem = product.strip_suffix(".rlib").unwrap_or(product);
    let list = format!("{stem}.d");
    let outcome = execute(session, reader(&list, wall_ms))?;
    let text = std::str::from_utf8(&outcome.stdout).ok();
    let whole = text.filter(|_| outcome.complete && outcome.status == Status::Exited { code: 0 });
    let found = whole.map(of_the_tree).unwrap_or_default();
    if found.is_empty() {
        return Err(SessionCode::BuildProduct.refuse(format_args!(
            "cargo names no source file of {}",
            escape(product, 200)
        )));
    }
    Ok(found)
}

/// The files of the tree in a first line such as `PRODUCT: /flight/src/a\ b.rs …`.
fn of_the_tree(list: &str) -> BTreeSet<RelPath> {
    let tree = format!("{}/", layout::SOURCE);
    let mut paths = vec![String::new()];
    let rule = list.lines().next().unwrap_or_default();
    let mut characters = rule.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(' ')) => {
                paths.last_mut().into_iter().for_each(|p| p.push(' '));
                characters.next();
            }
            (c, _) if c.is_ascii_whitespace() => paths.push(String::new()),
            (c, _) => paths.last_mut().into_iter().for_each(|p| p.push(c)),
        }
    }
    let inside = paths.iter().filter_map(|path| path.strip_prefix(&tree));
    inside.filter_map(|path| RelPath::new(path).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_tree_are_told_from_products_and_dependencies() {
        let list = "/flight/target/debug/a: /flight/src/src/a\\ b.rs /flight/src/src/main.rs \
                    /flight/vendor/x/src/lib.rs /flight/srcs/c.rs\n\n/flight/src/rates.csv:\n";
        let found: Vec<String> = of_the_tree(list).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["src/a b.rs", "src/main.rs"]);
    }
}
