use crate::{AgentCode, AgentRefusal};
use flightproof_core::escape;

/// Most bytes of all instructions together: what a person would read before starting.
const MAX_TOTAL: usize = 64 << 10;

/// What a repository tells its authors (`AGENTS.md`, `CLAUDE.md` at its root), handed over as text
/// of the task. The bare mode of a program reads no such file, and would obey it where it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    files: Vec<(&'static str, String)>,
}

/// Names that are handed over, at the root of the tree only.
const INSTRUCTION_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

impl Instructions {
    /// Reads the instructions by a function that gives the content of a root file of the baseline
    /// (not of the agent's own work), if it is there as an ordinary file.
    ///
    /// # Errors
    /// `INSTRUCTIONS_UNFIT`: not UTF-8, a control character other than line ends and tabs, or more
    /// than 64 KiB together. They are never cut: the half that is left may say the opposite.
    pub fn read(mut content: impl FnMut(&str) -> Option<Vec<u8>>) -> Result<Self, AgentRefusal> {
        let mut files = Vec::new();
        let mut total = 0;
        for name in INSTRUCTION_FILES {
            let Some(bytes) = content(name) else { continue };
            total += bytes.len();
            let text = plain(name, bytes)?;
            if total > MAX_TOTAL {
                let detail = format!("{total} bytes, at most {MAX_TOTAL}");
                return Err(AgentCode::InstructionsUnfit.refuse(detail));
            }
            // One file is often a copy of, or a pointer to, the other.
            if files.iter().all(|(_, earlier)| *earlier != text) {
                files.push((name, text));
            }
        }
        Ok(Self { files })
    }

    pub(crate) fn write_to(&self, prompt: &mut String) {
        for (name, text) in &self.files {
            prompt.push_str(&format!(
                "\n# What {name} of the repository says\n\n{}\n",
                text.trim()
            ));
        }
    }
}

fn plain(name: &str, bytes: Vec<u8>) -> Result<String, AgentRefusal> {
    let unfit = |what: String| AgentCode::InstructionsUnfit.refuse(format!("{name}: {what}"));
    let text = String::from_utf8(bytes).map_err(|_| unfit("not UTF-8".to_owned()))?;
    let odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.chars().find(odd) {
        Some(c) => Err(unfit(escape(c.to_string(), 8))),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_handed_over_whole_or_not_at_all() {
        let read = |agents: &[u8], claude: Option<&[u8]>| {
            Instructions::read(|name| match name {
                "AGENTS.md" => Some(agents.to_vec()),
                _ => claude.map(<[u8]>::to_vec),
            })
        };
        let mut prompt = String::new();
        read(b"Use tabs.\n", Some(b"Be brief."))
            .unwrap()
            .write_to(&mut prompt);
        assert!(prompt.contains("AGENTS.md of the repository says\n\nUse tabs.\n"));
        assert!(prompt.contains("CLAUDE.md of the repository says\n\nBe brief.\n"));
        let both = read(b"same", Some(b"same")).unwrap();
        assert_eq!(both.files.len(), 1);
        let half = vec![b'x'; MAX_TOTAL / 2];
        assert!(read(&half, Some(&half[1..])).is_ok());
        for (agents, claude) in [
            (&b"\xff"[..], None),
            (&b"a\x1b[31m"[..], None),
            (&half[..], Some(&[b'y'; MAX_TOTAL / 2 + 1][..])),
        ] {
            let code = read(agents, claude).map_err(|e| e.code);
            assert_eq!(code, Err(AgentCode::InstructionsUnfit));
        }
    }
}
