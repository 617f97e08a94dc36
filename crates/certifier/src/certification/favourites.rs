//! In which order cases are tried on a mutant: first those that noticed others of its function.

use crate::mutation::Mutant;
use flightproof_core::RelPath;
use std::collections::BTreeMap;

/// The order for every function that a mutant was noticed in, and for all others.
pub(super) struct Favourites {
    anywhere: Vec<usize>,
    functions: BTreeMap<(RelPath, String), Vec<usize>>,
}

impl Favourites {
    pub(super) fn new(cases: usize) -> Self {
        Self {
            anywhere: (0..cases).collect(),
            functions: BTreeMap::new(),
        }
    }

    /// The `at`th case to try.
    pub(super) fn case(&self, mutant: &Mutant, at: usize) -> Option<usize> {
        let order = self.functions.get(&place(mutant));
        order.unwrap_or(&self.anywhere).get(at).copied()
    }

    /// This case noticed it.
    pub(super) fn noticed(&mut self, mutant: &Mutant, case: usize) {
        let order = self.functions.entry(place(mutant));
        first(order.or_insert_with(|| self.anywhere.clone()), case);
        first(&mut self.anywhere, case);
    }
}

fn place(mutant: &Mutant) -> (RelPath, String) {
    (mutant.file.clone(), mutant.function.clone())
}

fn first(order: &mut [usize], case: usize) {
    if let Some(at) = order.iter().position(|one| *one == case) {
        order[..=at].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::Operator;
    use flightproof_core::Digest;

    fn mutant(function: &str) -> Mutant {
        Mutant {
            id: String::new(),
            selector: 1,
            file: RelPath::new("src/lib.rs").unwrap(),
            source: Digest::of(b""),
            line: 1,
            column: 1,
            operator: Operator::Relational,
            original: String::new(),
            replacement: String::new(),
            function: function.to_owned(),
            viable: true,
            aside: false,
        }
    }

    #[test]
    fn what_noticed_a_function_comes_first_there_and_nothing_is_lost() {
        let mut favourites = Favourites::new(4);
        let order = |favourites: &Favourites, function: &str| -> Vec<usize> {
            let mutant = mutant(function);
            (0..9)
                .map_while(|at| favourites.case(&mutant, at))
                .collect()
        };
        assert_eq!(order(&favourites, "a"), [0, 1, 2, 3]);
        favourites.noticed(&mutant("a"), 2);
        favourites.noticed(&mutant("b"), 3);
        assert_eq!(order(&favourites, "a"), [2, 0, 1, 3]);
        assert_eq!(order(&favourites, "b"), [3, 2, 0, 1]);
        assert_eq!(order(&favourites, "c"), [3, 2, 0, 1]);
        favourites.noticed(&mutant("a"), 1);
        assert_eq!(order(&favourites, "a"), [1, 2, 0, 3]);
        favourites.noticed(&mutant("a"), 9);
        assert_eq!(order(&favourites, "a"), [1, 2, 0, 3]);
    }
}
