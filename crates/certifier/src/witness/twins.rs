//! Cases with one and the same input.

use super::{Case, Witness};

/// Two cases that ask the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twins {
    /// Id of the earlier one.
    pub first: String,
    /// Id of the later one.
    pub second: String,
    /// Whether they expect the same answer. If not, no program meets both, unless one of them
    /// leaves open what the other demands.
    pub agree: bool,
}

impl Witness {
    /// Every case that asks what an earlier one asks, in the order of the file.
    pub fn twins(&self) -> Vec<Twins> {
        let cases = self.cases().iter().enumerate();
        let found = cases.filter_map(|(at, case)| {
            let earlier = self.cases().get(..at)?.iter();
            let first = earlier
                .into_iter()
                .find(|first| asks_the_same(first, case))?;
            Some(Twins {
                first: first.id.clone(),
                second: case.id.clone(),
                agree: first.expect == case.expect,
            })
        });
        found.collect()
    }
}

fn asks_the_same(a: &Case, b: &Case) -> bool {
    a.args == b.args && a.stdin == b.stdin && a.files == b.files && a.env == b.env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_twice_is_found_whatever_the_answers() {
        let text = r#"{"schema":"flightproof/witness/1","bin":"x","cases":[
            {"id":"a","args":["1"],"expect":{"exit":0,"stdout":"one"}},
            {"id":"b","args":["2"],"expect":{"exit":0,"stdout":"two"}},
            {"id":"c","args":["1"],"expect":{"exit":0,"stdout":"one"}},
            {"id":"d","args":["2"],"expect":{"exit":1,"stdout":"two"}},
            {"id":"e","args":["1"],"stdin":"x","expect":{"exit":0,"stdout":"one"}}]}"#;
        let twins = Witness::parse(text.as_bytes()).unwrap().twins();
        let twin = |first: &str, second: &str, agree| Twins {
            first: first.to_owned(),
            second: second.to_owned(),
            agree,
        };
        assert_eq!(twins, [twin("a", "c", true), twin("b", "d", false)]);
    }
}
