use super::{MARKER, SESSION_TEXT};

/// A result as a list of fields with their raw JSON, in the order they are written. Order, double
/// fields and broken values are the forger's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document(Vec<(String, String)>);

/// The fields of an honest success, as recorded, shortened; `type` is not the first of them.
const HONEST: [(&str, &str); 18] = [
    ("is_error", "false"),
    ("duration_api_ms", "3324"),
    ("duration_ms", "2135"),
    ("num_turns", "4"),
    ("stop_reason", "\"end_turn\""),
    ("total_cost_usd", "0.5331585"),
    ("usage", USAGE),
    ("modelUsage", MODELS),
    ("permission_denials", "[]"),
    ("terminal_reason", "\"completed\""),
    ("fast_mode_state", "\"off\""),
    ("subtype", "\"success\""),
    ("api_error_status", "null"),
    ("ttft_ms", "812"),
    ("uuid", "\"5f1de1b4-97f0-4a53-a66c-3e1c0a1f2b3c\""),
    ("session_id", ""),
    ("result", ""),
    ("type", "\"result\""),
];

const USAGE: &str = r#"{"input_tokens":2,"cache_creation_input_tokens":52437,"cache_read_input_tokens":0,"output_tokens":211,"cache_creation":{"ephemeral_1h_input_tokens":52437,"ephemeral_5m_input_tokens":0},"server_tool_use":{"web_search_requests":0},"service_tier":"standard"}"#;

const MODELS: &str = r#"{"claude-opus-5[1m]":{"inputTokens":2,"outputTokens":211,"cacheReadInputTokens":0,"cacheCreationInputTokens":52437,"webSearchRequests":0,"costUSD":0.5331585,"contextWindow":1000000,"maxOutputTokens":128000,"canonicalModel":"claude-opus-5","provider":"firstParty","costBasis":"list"}}"#;

impl Document {
    /// An honest success.
    pub fn honest() -> Self {
        let fields = HONEST.map(|(name, raw)| (name.to_owned(), raw.to_owned()));
        Self(fields.to_vec())
            .set("session_id", &format!("\"{SESSION_TEXT}\""))
            .set("result", &format!("\"Done: {MARKER}. \\u2713\""))
    }

    /// A failure of a kind, with its list of errors and without a result text, as recorded.
    pub fn failed(subtype: &str) -> Self {
        Self::honest()
            .set("subtype", &format!("\"{subtype}\""))
            .set("is_error", "true")
            .set("stop_reason", "null")
            .set("errors", &format!("[\"Reached something ({MARKER})\"]"))
            .without("result")
    }

    /// The same with a field that has this raw JSON, in the place it had or at the end.
    #[must_use]
    pub fn set(mut self, name: &str, raw: &str) -> Self {
        match self.0.iter_mut().find(|(n, _)| n == name) {
            Some((_, value)) => raw.clone_into(value),
            None => self.0.push((name.to_owned(), raw.to_owned())),
        }
        self
    }

    /// The same with one more field, even if it is there.
    #[must_use]
    pub fn also(mut self, name: &str, raw: &str) -> Self {
        self.0.push((name.to_owned(), raw.to_owned()));
        self
    }

    /// The same without a field.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.retain(|(n, _)| n != name);
        self
    }

    /// The same with another text inside a field.
    ///
    /// # Panics
    /// The field does not have the text: the forger is out of date.
    #[must_use]
    pub fn edit(self, name: &str, from: &str, to: &str) -> Self {
        let field = self.0.iter().find(|(n, _)| n == name);
        let raw = field.map(|(_, raw)| raw.clone()).unwrap_or_default();
        assert!(raw.contains(from), "{name} has no {from}");
        self.set(name, &raw.replacen(from, to, 1))
    }

    /// The same with this total, and this cost of its one model.
    #[must_use]
    pub fn cost(self, total: &str) -> Self {
        self.set("total_cost_usd", total).edit(
            "modelUsage",
            "\"costUSD\":0.5331585",
            &format!("\"costUSD\":{total}"),
        )
    }

    /// As one line.
    pub fn bytes(&self) -> Vec<u8> {
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(n, raw)| format!("\"{n}\":{raw}"))
            .collect();
        format!("{{{}}}\n", fields.join(",")).into_bytes()
    }

    /// Over several lines.
    pub fn pretty(&self) -> Vec<u8> {
        let fields: Vec<String> = self
            .0
            .iter()
            .map(|(n, raw)| format!("  \"{n}\" : {raw}"))
            .collect();
        format!("{{\n{}\n}}\n", fields.join(",\n")).into_bytes()
    }
}
