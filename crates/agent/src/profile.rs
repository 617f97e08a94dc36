use crate::{AgentCode, AgentRefusal, Version};
use flightproof_core::{MicroUsd, escape};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is known about one agent program: how it is started, what it may be given, and how its
/// result is read. Data, checked when it is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    name: String,
    format: Format,
    version_argv: Vec<String>,
    #[serde(default)]
    version_prefix: String,
    #[serde(default)]
    version_suffix: String,
    version_floor: [u32; 3],
    argv: Vec<String>,
    #[serde(default)]
    settings: String,
    tools: BTreeSet<String>,
    denied: BTreeSet<String>,
    pass: BTreeSet<String>,
    providers: BTreeSet<String>,
    #[serde(default)]
    provider: Option<Provider>,
    env: BTreeMap<String, String>,
    models: Vec<Model>,
}

/// How a program writes its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// One JSON object with cost, turns and tokens.
    ClaudeJson,
    /// One JSON object a line, without a cost.
    CodexEvents,
    /// One JSON object, without a cost.
    GeminiJson,
}

/// How a program is told where its provider is, and how a provider is told who asks. The key itself
/// never enters a session: the proxy adds it outside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Variable of the program with the provider's address.
    base_url: String,
    /// Variable of the program with a key, which programs refuse to start without. The operator's
    /// variable of that name holds the real one.
    key: String,
    /// Header, in lower case, that carries the key.
    header: String,
    /// The provider's hosts. Nobody else gets the key without the operator's word.
    hosts: BTreeSet<String>,
}

impl Provider {
    /// The operator's variable that holds the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether a host is the provider's own.
    pub fn is_own(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// The header that carries it.
    pub fn header(&self) -> &str {
        &self.header
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    name: String,
    margin: String,
}

/// What a program finds in place of a key.
const NO_KEY: &str = "held-outside-the-session";
/// Most bytes of a profile.
const MAX_BYTES: usize = 64 << 10;
/// Names a placeholder may have.
const PLACEHOLDERS: [&str; 7] = [
    "{budget}",
    "{turns}",
    "{tools}",
    "{denied}",
    "{settings}",
    "{session}",
    "{model}",
];
/// What a metered program must be told, whatever else.
const DEMANDED: [&str; 4] = ["{budget}", "{turns}", "{session}", "{model}"];
/// Arguments that bring back another run, another's settings, or another shape of the result.
const FORBIDDEN: [&str; 12] = [
    "--verbose",
    "stream-json",
    "--input-format",
    "--resume",
    "-r",
    "--continue",
    "-c",
    "--fork-session",
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
    "bypassPermissions",
    "--fallback-model",
];

impl Profile {
    /// A profile that comes with the program: `claude`, `codex` or `gemini`.
    ///
    /// # Errors
    /// `PROFILE_UNKNOWN`
    pub fn built_in(name: &str) -> Result<Self, AgentRefusal> {
        let text = match name {
            "claude" => include_str!("../profiles/claude.toml"),
            "codex" => include_str!("../profiles/codex.toml"),
            "gemini" => include_str!("../profiles/gemini.toml"),
            other => return Err(AgentCode::ProfileUnknown.refuse(escape(other, 60))),
        };
        Self::read(text)
    }

    /// A profile of the operator.
    ///
    /// # Errors
    /// `PROFILE_INVALID` with the rule that it breaks.
    pub fn read(text: &str) -> Result<Self, AgentRefusal> {
        if text.len() > MAX_BYTES {
            return Err(AgentCode::ProfileInvalid.refuse(format!("{} bytes", text.len())));
        }
        let profile: Self = toml::from_str(text)
            .map_err(|e| AgentCode::ProfileInvalid.refuse(e.message().to_owned()))?;
        match profile.fault() {
            Some(fault) => Err(AgentCode::ProfileInvalid.refuse(fault)),
            None => Ok(profile),
        }
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its result is read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether its result says what it cost.
    pub fn reports_cost(&self) -> bool {
        self.format == Format::ClaudeJson
    }

    /// The oldest version that may run.
    pub fn version_floor(&self) -> Version {
        Version(self.version_floor)
    }

    /// What makes the program print its version.
    pub fn version_argv(&self) -> &[String] {
        &self.version_argv
    }

    /// Most that one answer of its dearest model can cost. A dollar is held for it at least.
    pub fn margin(&self) -> MicroUsd {
        let margins = self.models.iter().filter_map(|m| m.margin.parse().ok());
        margins.max().unwrap_or_default()
    }

    /// Whether a model may be used, by its exact name.
    pub fn knows_model(&self, name: &str) -> bool {
        self.models.iter().any(|model| model.name == name)
    }

    /// The models that may be used, by their exact names.
    pub fn models(&self) -> Vec<&str> {
        self.models
            .iter()
            .map(|model| model.name.as_str())
            .collect()
    }

    /// How its program reaches a provider, if that is known.
    pub fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref()
    }

    /// What its program finds in its environment, inside a session whose proxy listens at `address`:
    /// that address, and a word in place of the key.
    pub fn inside(&self, address: &str) -> BTreeMap<String, String> {
        let provider = self.provider.iter();
        let variables = provider.flat_map(|provider| {
            [
                (provider.base_url.clone(), format!("http://{address}")),
                (provider.key.clone(), NO_KEY.to_owned()),
            ]
        });
        variables.collect()
    }

    pub(crate) fn knows_provider(&self, name: &str) -> bool {
        self.providers.contains(name)
    }

    pub(crate) fn tools(&self) -> &BTreeSet<String> {
        &self.tools
    }

    pub(crate) fn denied(&self) -> &BTreeSet<String> {
        &self.denied
    }

    pub(crate) fn argv(&self) -> &[String] {
        &self.argv
    }

    pub(crate) fn settings(&self) -> &str {
        &self.settings
    }

    pub(crate) fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    pub(crate) fn pass(&self) -> &BTreeSet<String> {
        &self.pass
    }

    pub(crate) fn version_frame(&self) -> (&str, &str) {
        (&self.version_prefix, &self.version_suffix)
    }

    fn fault(&self) -> Option<String> {
        let used = |name: &str| {
            self.argv
                .iter()
                .filter(|argument| *argument == name)
                .count()
        };
        for argument in &self.argv {
            let flag = argument.split('=').next().unwrap_or_default();
            if FORBIDDEN.contains(&flag) || FORBIDDEN.contains(&argument.as_str()) {
                return Some(format!("argv: {} is never given", escape(argument, 60)));
            }
            if argument.contains(['{', '}']) && !PLACEHOLDERS.contains(&argument.as_str()) {
                return Some(format!("argv: no placeholder {}", escape(argument, 60)));
            }
        }
        if self.reports_cost() {
            let missing = DEMANDED.into_iter().find(|name| used(name) != 1);
            if let Some(name) = missing {
                return Some(format!("argv: {name} must stand there once"));
            }
            if self.tools.is_empty() || used("{tools}") == 0 || used("{denied}") == 0 {
                return Some("tools: a metered program runs with an explicit inventory".to_owned());
            }
        }
        if let Some(provider) = &self.provider
            && !(self.pass.contains(&provider.base_url) && self.pass.contains(&provider.key))
        {
            return Some("provider: its variables are not passed".to_owned());
        }
        if let Some(tool) = self.tools.intersection(&self.denied).next() {
            return Some(format!("tools: {} is denied as well", escape(tool, 60)));
        }
        if let Some(bad) = self.names().find(|name| !is_plain(name)) {
            return Some(format!("{} is no plain name", escape(bad, 60)));
        }
        let priced = |m: &Model| m.margin.parse::<MicroUsd>().is_ok();
        if self.models.is_empty() || !self.models.iter().all(priced) {
            return Some("models: at least one, each with a margin above zero".to_owned());
        }
        None
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        let sets = [&self.tools, &self.denied, &self.pass, &self.providers];
        let models = self.models.iter().map(|model| &model.name);
        let first = std::iter::once(&self.name)
            .chain(models)
            .chain(self.env.keys());
        first.chain(sets.into_iter().flatten())
    }
}

/// Letters, digits and `.-_`: nothing that an argument list, a shell or a line could split.
fn is_plain(name: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= 64 && !name.starts_with('-') && name.bytes().all(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(from: &str, to: &str) -> Result<Profile, AgentRefusal> {
        let text = include_str!("../profiles/claude.toml");
        assert!(text.contains(from), "{from}");
        Profile::read(&text.replacen(from, to, 1))
    }

    #[test]
    fn the_built_in_profiles_keep_the_rules_of_profiles() {
        for name in ["claude", "codex", "gemini"] {
            let profile = Profile::built_in(name).unwrap();
            assert_eq!(profile.name(), name);
            assert_eq!(profile.reports_cost(), name == "claude");
        }
        let claude = Profile::built_in("claude").unwrap();
        assert_eq!(claude.version_floor(), Version([2, 1, 266]));
        let unknown = Profile::built_in("qwen").map_err(|e| e.code);
        assert_eq!(unknown, Err(AgentCode::ProfileUnknown));
    }

    #[test]
    fn a_profile_without_limits_or_with_a_way_around_them_is_refused() {
        assert!(changed("TZ = \"UTC\"", "TZ = \"UTC0\"").is_ok());
        for (from, to) in [
            ("\"--max-budget-usd\", \"{budget}\",", ""),
            ("\"{budget}\"", "\"100\""),
            ("\"{turns}\"", "\"{turns}{turns}\""),
            ("\"{session}\"", "\"{other}\""),
            ("\"json\"", "\"stream-json\""),
            ("\"--bare\"", "\"--verbose\""),
            ("\"--bare\"", "\"--resume\""),
            ("\"--bare\"", "\"--resume=x\""),
            ("\"--bare\"", "\"--dangerously-skip-permissions\""),
            ("\"dontAsk\"", "\"bypassPermissions\""),
            ("\"Bash\", ", "\"Agent\", "),
            ("\"Bash\", ", "\"Bash,Agent\", "),
            ("\"14.00\"", "\"0\""),
            ("\"14.00\"", "\"1e3\""),
            ("name = \"claude\"", "name = \"claude\"\nprice = 1"),
            ("key = \"ANTHROPIC_API_KEY\"", "key = \"HOME\""),
        ] {
            let code = changed(from, to).map_err(|e| e.code);
            assert_eq!(code, Err(AgentCode::ProfileInvalid), "{from} -> {to}");
        }
        let long = "#".repeat(MAX_BYTES + 1);
        assert!(Profile::read(&long).is_err());
    }
}
