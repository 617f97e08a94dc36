use syn::{BinOp, Lit};

/// The families of mutants. The name of each is stable: it is part of a mutant's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `<` to `<=` (the boundary moves) and to `>=` (the answer turns).
    Relational,
    /// `==` to `!=` and back.
    Equality,
    /// `&&` to `||` and back, and to either operand.
    Logical,
    /// `+ - * / % & | ^ << >>` to their neighbours; `& | ^` to either operand, `% << >>` to the left one.
    Arithmetic,
    /// `+=` and the like to their neighbours; `&=`, `|=` and `^=` to `=` too, and where they are no
    /// statement, to nothing.
    Compound,
    /// The condition of `if`, `while` or a match guard to `true` and `false`.
    Condition,
    /// A branch chosen by a pattern (a match arm, `if let`, its `else`, `let … else`, `while let`)
    /// to the end of the program. Such a choice has no condition that could become a constant;
    /// a branch that no case takes leaves this mutant alive.
    Branch,
    /// A match arm left out, where an arm behind it takes everything. (A guard and an `else if` are left
    /// out by their conditions.)
    ArmDelete,
    /// A function that returns a plain value of its type at once.
    FunctionValue,
    /// An integer literal to 0, 1, one more and one less. One that is written or used as a row of bits:
    /// without each of its bits too, and with the next above.
    IntegerLiteral,
    /// `true` to `false` and back.
    BoolLiteral,
    /// A string literal to the empty string and to another one; one of several parts: without each.
    StringLiteral,
    /// A character, byte, float, byte string or C string literal to another one: a float to one digit
    /// less too, a byte string with each byte another.
    PlainLiteral,
    /// `-x` and `!x` to `x`.
    UnaryDelete,
    /// A statement that only has an effect, to nothing. Without this an effect that no case looks
    /// at would leave no trace.
    StatementDelete,
    /// What a function returns, to no value. (Not in Rust, where a function has its own values.)
    ReturnValue,
    /// A value that is bound to a name, to no value. (Not in Rust.)
    AssignedValue,
    /// `break` to `continue` and back. (Not in Rust.)
    Jump,
}

impl Operator {
    /// Every family.
    pub const ALL: [Self; 18] = [
        Self::Relational,
        Self::Equality,
        Self::Logical,
        Self::Arithmetic,
        Self::Compound,
        Self::Condition,
        Self::Branch,
        Self::ArmDelete,
        Self::FunctionValue,
        Self::IntegerLiteral,
        Self::BoolLiteral,
        Self::StringLiteral,
        Self::PlainLiteral,
        Self::UnaryDelete,
        Self::StatementDelete,
        Self::ReturnValue,
        Self::AssignedValue,
        Self::Jump,
    ];

    /// Whether what the compiler refuses of it says nothing about a choice: `-` on strings.
    pub(super) const fn hangs_on_types(self) -> bool {
        matches!(
            self,
            Self::FunctionValue
                | Self::Branch
                | Self::ArmDelete
                | Self::Arithmetic
                | Self::Compound
                | Self::UnaryDelete
                | Self::StatementDelete
        )
    }

    /// The stable name, as in a mutant's id and on a certificate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relational => "relational",
            Self::Equality => "equality",
            Self::Logical => "logical",
            Self::Arithmetic => "arithmetic",
            Self::Compound => "compound",
            Self::Condition => "condition",
            Self::Branch => "branch",
            Self::ArmDelete => "arm-delete",
            Self::FunctionValue => "function-value",
            Self::IntegerLiteral => "integer-literal",
            Self::BoolLiteral => "bool-literal",
            Self::StringLiteral => "string-literal",
            Self::PlainLiteral => "plain-literal",
            Self::UnaryDelete => "unary-delete",
            Self::StatementDelete => "statement-delete",
            Self::ReturnValue => "return-value",
            Self::AssignedValue => "assigned-value",
            Self::Jump => "jump",
        }
    }
}

/// What a binary operator turns into: its family, its own spelling, the others' spellings.
/// `&&` and `||`, and those on bits, also turn into their operands, which the walker adds.
pub(super) fn binary(op: &BinOp) -> Option<(Operator, &'static str, &'static [&'static str])> {
    use Operator::{Arithmetic, Compound, Equality, Logical, Relational};
    Some(match op {
        BinOp::Lt(_) => (Relational, "<", &["<=", ">="]),
        BinOp::Le(_) => (Relational, "<=", &["<", ">"]),
        BinOp::Gt(_) => (Relational, ">", &[">=", "<="]),
        BinOp::Ge(_) => (Relational, ">=", &[">", "<"]),
        BinOp::Eq(_) => (Equality, "==", &["!="]),
        BinOp::Ne(_) => (Equality, "!=", &["=="]),
        BinOp::And(_) => (Logical, "&&", &["||"]),
        BinOp::Or(_) => (Logical, "||", &["&&"]),
        BinOp::Add(_) => (Arithmetic, "+", &["-", "*"]),
        BinOp::Sub(_) => (Arithmetic, "-", &["+", "/"]),
        BinOp::Mul(_) => (Arithmetic, "*", &["+", "/"]),
        BinOp::Div(_) => (Arithmetic, "/", &["%", "*"]),
        BinOp::Rem(_) => (Arithmetic, "%", &["/", "+"]),
        BinOp::BitAnd(_) => (Arithmetic, "&", &["|", "^"]),
        BinOp::BitOr(_) => (Arithmetic, "|", &["&", "^"]),
        BinOp::BitXor(_) => (Arithmetic, "^", &["|", "&"]),
        BinOp::Shl(_) => (Arithmetic, "<<", &[">>"]),
        BinOp::Shr(_) => (Arithmetic, ">>", &["<<"]),
        BinOp::AddAssign(_) => (Compound, "+=", &["-=", "*="]),
        BinOp::SubAssign(_) => (Compound, "-=", &["+=", "/="]),
        BinOp::MulAssign(_) => (Compound, "*=", &["+=", "/="]),
        BinOp::DivAssign(_) => (Compound, "/=", &["%=", "*="]),
        BinOp::RemAssign(_) => (Compound, "%=", &["/=", "+="]),
        BinOp::BitAndAssign(_) => (Compound, "&=", &["|=", "^=", "="]),
        BinOp::BitOrAssign(_) => (Compound, "|=", &["&=", "^=", "="]),
        BinOp::BitXorAssign(_) => (Compound, "^=", &["|=", "&=", "="]),
        BinOp::ShlAssign(_) => (Compound, "<<=", &[">>="]),
        BinOp::ShrAssign(_) => (Compound, ">>=", &["<<="]),
        _ => return None,
    })
}

/// The other values of a literal.
pub(super) fn literal(lit: &Lit) -> Option<(Operator, Vec<String>)> {
    match lit {
        Lit::Int(int) => Some((
            Operator::IntegerLiteral,
            integers(int.base10_parse().ok()?, Sign::Plus, int.suffix()),
        )),
        Lit::Bool(b) => Some((Operator::BoolLiteral, vec![(!b.value).to_string()])),
        Lit::Str(s) if s.suffix().is_empty() => {
            let value = s.value();
            let others = ["", "xyzzy"].into_iter().filter(|other| *other != value);
            Some((
                Operator::StringLiteral,
                others.map(|other| format!("{other:?}")).collect(),
            ))
        }
        Lit::Char(c) => plain(&["'x'", "'~'"], |other| other != format!("{:?}", c.value())),
        Lit::Byte(b) => plain(&["b'x'", "b'~'"], |other| {
            other.as_bytes().get(2) != Some(&b.value())
        }),
        Lit::Float(f) => {
            let suffix = f.suffix();
            let own: f64 = f.base10_parse().ok()?;
            let others = ["0.0", "1.0", "2.5"]
                .into_iter()
                .filter(|other| other.parse::<f64>().is_ok_and(|o| (o - own).abs() > 0.0));
            let others = others.map(|other| format!("{other}{suffix}")).collect();
            Some((Operator::PlainLiteral, others))
        }
        // Another value of the same type, and a type that knows its length keeps it.
        Lit::ByteStr(s) => {
            let other: Vec<u8> = s.value().iter().map(|b| b ^ 1).collect();
            let code = format!("b\"{}\"", other.escape_ascii());
            (!other.is_empty()).then_some((Operator::PlainLiteral, vec![code]))
        }
        Lit::CStr(_) => plain(&["c\"\"", "c\"xyzzy\""], |_| true),
        _ => None,
    }
}

fn plain(others: &[&str], differs: impl Fn(&str) -> bool) -> Option<(Operator, Vec<String>)> {
    let others = others.iter().filter(|other| differs(other));
    Some((
        Operator::PlainLiteral,
        others.map(|other| (*other).to_owned()).collect(),
    ))
}

/// Whether a literal stands under a minus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// 0, 1, one more, one less: those that differ from the number itself and from each other.
pub(super) fn integers(magnitude: u128, sign: Sign, suffix: &str) -> Vec<String> {
    let own = spelled_in(magnitude, sign);
    // One less than a plain 0 has no spelling in an unsigned type, and so is left out.
    let away = magnitude.checked_add(1).map(|v| spelled_in(v, sign));
    let towards = magnitude.checked_sub(1).map(|v| spelled_in(v, sign));
    let mut out: Vec<String> = Vec::new();
    for text in [Some("0".to_owned()), Some("1".to_owned()), away, towards] {
        out.extend(text.filter(|t| *t != own && !out.contains(t)));
    }
    out.into_iter()
        .filter(|text| fits(text, suffix))
        .map(|text| format!("{text}{suffix}"))
        .collect()
}

pub(super) fn spelled_in(magnitude: u128, sign: Sign) -> String {
    match sign {
        Sign::Minus if magnitude != 0 => format!("-{magnitude}"),
        _ => magnitude.to_string(),
    }
}

/// Whether the compiler would take the number with this suffix.
pub(super) fn fits(text: &str, suffix: &str) -> bool {
    match suffix {
        "u8" => text.parse::<u8>().is_ok(),
        "i8" => text.parse::<i8>().is_ok(),
        "u16" => text.parse::<u16>().is_ok(),
        "i16" => text.parse::<i16>().is_ok(),
        "u32" => text.parse::<u32>().is_ok(),
        "i32" => text.parse::<i32>().is_ok(),
        "u64" | "usize" => text.parse::<u64>().is_ok(),
        "i64" | "isize" => text.parse::<i64>().is_ok(),
        "i128" => text.parse::<i128>().is_ok(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_literals_turn_into_their_neighbours_and_never_into_themselves() {
        assert_eq!(integers(0, Sign::Plus, ""), ["1"]);
        assert_eq!(integers(1, Sign::Plus, ""), ["0", "2"]);
        assert_eq!(integers(2, Sign::Plus, "u8"), ["0u8", "1u8", "3u8"]);
        assert_eq!(integers(255, Sign::Plus, "u8"), ["0u8", "1u8", "254u8"]);
        assert_eq!(integers(128, Sign::Minus, "i8"), ["0i8", "1i8", "-127i8"]);
        assert_eq!(integers(1, Sign::Minus, ""), ["0", "1", "-2"]);
        assert_eq!(
            integers(u128::MAX, Sign::Plus, ""),
            ["0", "1", "340282366920938463463374607431768211454"]
        );
    }

    #[test]
    fn a_string_literal_is_never_replaced_by_itself() {
        let lit = |text: &str| literal(&syn::parse_str(text).unwrap()).unwrap().1;
        assert_eq!(lit(r#""""#), [r#""xyzzy""#]);
        assert_eq!(lit(r#""xyzzy""#), [r#""""#]);
        assert_eq!(lit(r##"r#"a"#"##), [r#""""#, r#""xyzzy""#]);
    }
}
