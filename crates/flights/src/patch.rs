//! Two versions of a text as rows: what stayed, what went, what came.

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// What became of the line.
    pub kind: Kind,
    /// Its number in the old text, from 1; 0 if it was not there.
    pub old: u32,
    /// Its number in the new text, from 1; 0 if it is not there.
    pub new: u32,
    /// The line, without its end.
    pub text: &'a str,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It stayed.
    Same,
    /// It went.
    Removed,
    /// It came.
    Added,
}

/// Most pairs of lines that are compared: beyond, everything between the equal ends counts as
/// replaced. Four million pairs take some milliseconds.
const MAX_PAIRS: usize = 4_000_000;

/// The rows between two texts: a longest common subsequence, removals before additions.
pub fn rows<'a>(old: &'a str, new: &'a str) -> Vec<Row<'a>> {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let tail = a[head..]
        .iter()
        .rev()
        .zip(b[head..].iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    let mut out = Rows::default();
    b[..head].iter().for_each(|text| out.push(Kind::Same, text));
    let (left, right) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    middle(left, right, &mut out);
    let end = &b[b.len() - tail..];
    end.iter().for_each(|text| out.push(Kind::Same, text));
    out.rows
}

#[derive(Default)]
struct Rows<'a> {
    rows: Vec<Row<'a>>,
    old: u32,
    new: u32,
}

impl<'a> Rows<'a> {
    fn push(&mut self, kind: Kind, text: &'a str) {
        self.old += u32::from(kind != Kind::Added);
        self.new += u32::from(kind != Kind::Removed);
        self.rows.push(Row {
            kind,
            old: if kind == Kind::Added { 0 } else { self.old },
            new: if kind == Kind::Removed { 0 } else { self.new },
            text,
        });
    }
}

fn middle<'a>(a: &[&'a str], b: &[&'a str], out: &mut Rows<'a>) {
    if a.len().saturating_mul(b.len()) > MAX_PAIRS {
        a.iter().for_each(|text| out.push(Kind::Removed, text));
        return b.iter().for_each(|text| out.push(Kind::Added, text));
    }
    // common[i][j]: length of the longest common subsequence of a[i..] and b[j..].
    let width = b.len() + 1;
    let mut common = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push(Kind::Same, b[j]);
            (i, j) = (i + 1, j + 1);
        } else if j == b.len()
            || i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            out.push(Kind::Removed, a[i]);
            i += 1;
        } else {
            out.push(Kind::Added, b[j]);
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(old: &str, new: &str) -> String {
        rows(old, new)
            .iter()
            .map(|row| {
                let mark = match row.kind {
                    Kind::Same => ' ',
                    Kind::Removed => '-',
                    Kind::Added => '+',
                };
                format!("{mark}{}:{} {}\n", row.old, row.new, row.text)
            })
            .collect()
    }

    #[test]
    fn lines_stay_go_and_come_with_their_numbers() {
        assert_eq!(
            told("a\nb\nc\nd\n", "a\nx\nc\nd\ne\n"),
            " 1:1 a\n-2:0 b\n+0:2 x\n 3:3 c\n 4:4 d\n+0:5 e\n"
        );
        assert_eq!(told("", "a"), "+0:1 a\n");
        assert_eq!(told("a", ""), "-1:0 a\n");
        assert_eq!(told("", ""), "");
    }

    #[test]
    fn rows_give_both_texts_back() {
        let texts = ["a\nb\nc", "c\nb\na", "b\nb\nb\na", "x", ""];
        for old in texts {
            for new in texts {
                let all = rows(old, new);
                let side = |not: Kind| {
                    let lines: Vec<&str> = all
                        .iter()
                        .filter(|r| r.kind != not)
                        .map(|r| r.text)
                        .collect();
                    lines.join("\n")
                };
                assert_eq!(
                    (side(Kind::Added), side(Kind::Removed)),
                    (old.into(), new.into())
                );
            }
        }
    }

    #[test]
    fn texts_too_large_to_compare_are_replaced_whole() {
        let (old, new) = ("a\n".repeat(2_001), "b\n".repeat(2_001));
        let all = rows(&old, &new);
        assert_eq!(all.len(), 4_002);
        assert!(all[..2_001].iter().all(|row| row.kind == Kind::Removed));
    }
}
