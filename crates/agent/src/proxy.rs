//! The session's one way to a model provider: a socket in its own network that reads one strict request, holds
//! it against the plan's endpoints and what is left of the hold, counts it, and only then forwards
//! it. Everything else has no way out.
//!
//! [`Head`] and [`Gate`] are pure; [`Proxy`] moves the bytes.

mod head;
mod serve;
mod tls;

pub use head::{Body, Head, MAX_HEAD};
pub use serve::{Credential, Dial, Proxy, Stream, TcpLoopback};
pub use tls::Network;

use crate::{AgentCode, AgentRefusal};
use flightproof_core::{MicroUsd, escape};

/// One provider endpoint of a plan: `METHOD host/path/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    method: String,
    host: String,
    path: String,
}

impl Endpoint {
    /// Reads `POST api.anthropic.com/v1/messages`: `GET` or `POST`; a host in lower case, with a
    /// port if it is not the usual one; a path of plain segments, which matches itself and what
    /// lies below it.
    ///
    /// # Errors
    /// `ORDER_INVALID`
    pub fn read(text: &str) -> Result<Self, AgentRefusal> {
        let bad = || AgentCode::OrderInvalid.refuse(format!("endpoint {}", escape(text, 100)));
        let (method, rest) = text.split_once(' ').ok_or_else(bad)?;
        let slash = rest.find('/').ok_or_else(bad)?;
        let (host, path) = rest.split_at(slash);
        let fits = matches!(method, "GET" | "POST")
            && head::is_host(host)
            && path.len() > 1
            && head::is_plain_path(path);
        if !fits || path.ends_with('/') {
            return Err(bad());
        }
        Ok(Self {
            method: method.to_owned(),
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The host, with its port if it has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    fn covers(&self, head: &Head) -> bool {
        let below = head.path.strip_prefix(&self.path);
        self.method == head.method && below.is_some_and(|b| b.is_empty() || b.starts_with('/'))
    }
}

/// Decides about each request of one run, and counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    endpoints: Vec<Endpoint>,
    inside: Option<String>,
    left: MicroUsd,
    charge: MicroUsd,
    most: u32,
    counts: Counts,
    open: bool,
}

/// What came to a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Requests let through. Each counts, whatever the provider answered.
    pub admitted: u64,
    /// Requests refused, unreadable ones too.
    pub refused: u64,
}

impl Gate {
    /// A gate for one run. Each request takes `charge` from the hold, the least that one is taken
    /// to cost, so that a program whose own budget fails still ends; and there are at most `most`.
    pub fn new(endpoints: Vec<Endpoint>, hold: MicroUsd, charge: MicroUsd, most: u32) -> Self {
        Self {
            endpoints,
            inside: None,
            left: hold,
            charge,
            most,
            counts: Counts::default(),
            open: true,
        }
    }

    /// The same gate where programs know the provider by another name, such as the address of a
    /// relay in their session. Requests to that name go to the plan's host, if it has only one.
    #[must_use]
    pub fn known_inside_as(mut self, name: &str) -> Self {
        self.inside = Some(name.to_owned());
        self
    }

    /// Lets a request through, or refuses it, and counts either way. Gives the host to ask.
    ///
    /// # Errors
    /// `PROXY_CLOSED`, `HOST_REFUSED`, `ENDPOINT_REFUSED`, `REQUESTS_USED_UP`, `HOLD_USED_UP`.
    pub fn admit(&mut self, head: &Head) -> Result<String, AgentRefusal> {
        let judged = self.judge(head);
        match judged {
            Ok((host, left)) => {
                self.left = left;
                self.counts.admitted += 1;
                Ok(host)
            }
            Err(refusal) => {
                self.refused();
                Err(refusal)
            }
        }
    }

    /// Counts a request that could not be read.
    pub fn refused(&mut self) {
        self.counts.refused += 1;
    }

    /// Lets nothing through from now on: the run is ending.
    pub fn close(&mut self) {
        self.open = false;
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn is_open(&self) -> bool {
        self.open
    }

    /// The host to ask, and what is left of the hold after the request.
    fn judge(&self, head: &Head) -> Result<(String, MicroUsd), AgentRefusal> {
        if !self.open {
            return Err(AgentCode::ProxyClosed.refuse("the run is ending"));
        }
        let host = self.host(head)?;
        if !self
            .endpoints
            .iter()
            .any(|e| e.host == host && e.covers(head))
        {
            let path = escape(&head.path, 100);
            return Err(AgentCode::EndpointRefused.refuse(format!("{} {path}", head.method)));
        }
        if self.counts.admitted >= u64::from(self.most) {
            return Err(AgentCode::RequestsUsedUp.refuse(format!("{} were made", self.most)));
        }
        if self.charge > self.left {
            let detail = format!("{} dollars are left, one takes {}", self.left, self.charge);
            return Err(AgentCode::HoldUsedUp.refuse(detail));
        }
        Ok((host.to_owned(), self.left.saturating_sub(self.charge)))
    }

    /// The plan's host that a request means.
    fn host(&self, head: &Head) -> Result<&str, AgentRefusal> {
        let mut hosts = self.endpoints.iter().map(Endpoint::host);
        let first = hosts.next().unwrap_or_default();
        let one = hosts.all(|host| host == first);
        if one && self.inside.as_deref() == Some(head.host.as_str()) {
            return Ok(first);
        }
        let named = self.endpoints.iter().find(|e| e.host == head.host);
        named
            .map(Endpoint::host)
            .ok_or_else(|| AgentCode::HostRefused.refuse(escape(&head.host, 100)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(method: &str, host: &str, target: &str) -> Head {
        let text =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n");
        Head::read(text.as_bytes()).unwrap().unwrap().0
    }

    fn gate(hold: u64, charge: u64, most: u32) -> Gate {
        let endpoint = Endpoint::read("POST api.example.com/v1/messages").unwrap();
        let micros = |n| MicroUsd::from_micros(n).unwrap();
        Gate::new(vec![endpoint], micros(hold), micros(charge), most)
    }

    #[test]
    fn only_the_plan_s_endpoints_are_let_through() {
        let mut gate = gate(100, 1, 100);
        let host = "api.example.com";
        for target in [
            "/v1/messages",
            "/v1/messages?beta=true",
            "/v1/messages/count_tokens",
        ] {
            assert_eq!(
                gate.admit(&head("POST", host, target)).as_deref(),
                Ok(host),
                "{target}"
            );
        }
        use AgentCode::{EndpointRefused, HostRefused};
        for (method, host, target, code) in [
            ("GET", host, "/v1/messages", EndpointRefused),
            ("POST", host, "/v1/messages2", EndpointRefused),
            ("POST", host, "/v1/files", EndpointRefused),
            ("POST", host, "/v1", EndpointRefused),
            (
                "POST",
                "api.example.com.evil.net",
                "/v1/messages",
                HostRefused,
            ),
            ("POST", "example.com", "/v1/messages", HostRefused),
            ("POST", "api.example.com:8080", "/v1/messages", HostRefused),
        ] {
            let got = gate.admit(&head(method, host, target)).map_err(|e| e.code);
            assert_eq!(got, Err(code), "{method} {host} {target}");
        }
        let counts = gate.counts();
        assert_eq!((counts.admitted, counts.refused), (3, 7));
    }

    #[test]
    fn the_hold_and_the_count_end_and_a_closed_gate_stays_closed() {
        let one = head("POST", "api.example.com", "/v1/messages");
        let used = |mut gate: Gate| {
            let last = loop {
                if let Err(e) = gate.admit(&one) {
                    break e.code;
                }
            };
            (gate.counts().admitted, last)
        };
        assert_eq!(used(gate(10, 3, 100)), (3, AgentCode::HoldUsedUp));
        assert_eq!(used(gate(9, 3, 100)), (3, AgentCode::HoldUsedUp));
        assert_eq!(used(gate(10, 0, 5)), (5, AgentCode::RequestsUsedUp));
        let mut closed = gate(10, 1, 5);
        closed.close();
        assert_eq!(
            closed.admit(&one).map_err(|e| e.code),
            Err(AgentCode::ProxyClosed)
        );
    }

    #[test]
    fn a_relay_s_name_means_the_plan_s_only_host() {
        let relay = head("POST", "127.0.0.1:8080", "/v1/messages");
        let mut plain = gate(10, 1, 5);
        assert_eq!(
            plain.admit(&relay).map_err(|e| e.code),
            Err(AgentCode::HostRefused)
        );
        let mut known = gate(10, 1, 5).known_inside_as("127.0.0.1:8080");
        assert_eq!(known.admit(&relay).as_deref(), Ok("api.example.com"));
        known
            .endpoints
            .push(Endpoint::read("POST b.example.com/v1").unwrap());
        assert_eq!(
            known.admit(&relay).map_err(|e| e.code),
            Err(AgentCode::HostRefused)
        );
    }

    #[test]
    fn an_endpoint_is_written_one_way() {
        assert!(Endpoint::read("GET 127.0.0.1:8080/v1").is_ok());
        for bad in [
            "",
            "POST",
            "POST api.example.com",
            "POST api.example.com/",
            "POST api.example.com/v1/",
            "post api.example.com/v1",
            "CONNECT api.example.com/v1",
            "POST API.example.com/v1",
            "POST api.example.com/v1/../v2",
            "POST api.example.com/v1?x=1",
            "POST api.example.com/%76",
            "POST a@b.com/v1",
            "POST  api.example.com/v1",
            "POST *.example.com/v1",
            "POST api.example.com:99999/v1",
        ] {
            let code = Endpoint::read(bad).map_err(|e| e.code);
            assert_eq!(code, Err(AgentCode::OrderInvalid), "{bad}");
        }
    }
}
