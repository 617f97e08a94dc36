//! The head of one HTTP/1.1 request, in the one spelling this proxy reads. What two readers could
//! read differently is refused, not repaired.

use crate::{AgentCode, AgentRefusal};

/// Most bytes of a head: agent programs send about 1 KiB.
pub const MAX_HEAD: usize = 16 << 10;
/// Most headers.
const MAX_HEADERS: usize = 64;
/// Most bytes of a target.
const MAX_TARGET: usize = 2 << 10;
/// Most bytes of a body: the provider's own limit for one request.
const MAX_BODY: u64 = 32 << 20;
/// Headers between two neighbours of a connection, or about a secret: never forwarded.
const DROPPED: [&str; 6] = [
    "connection",
    "keep-alive",
    "host",
    "content-length",
    "authorization",
    "x-api-key",
];
/// Headers that change how the rest is read, or lead elsewhere: never accepted.
const REFUSED: [&str; 8] = [
    "upgrade",
    "expect",
    "trailer",
    "te",
    "proxy-authorization",
    "proxy-connection",
    "http2-settings",
    "x-http-method-override",
];

/// A request's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// In upper case.
    pub method: String,
    /// The path, from its slash, without the query.
    pub path: String,
    /// The query with its question mark, or nothing.
    pub query: String,
    /// The host, lower case, with its port if it has one.
    pub host: String,
    /// How long the body is.
    pub body: Body,
    headers: Vec<(String, String)>,
}

/// The body of a request: its length in bytes, at most 32 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body(pub u64);

impl Head {
    /// Reads a head from the start of `bytes`; gives it and how long it is, or nothing if it is
    /// not there as a whole yet.
    ///
    /// # Errors
    /// `HEAD_TOO_LARGE`, `HEAD_MALFORMED`, `BODY_REFUSED`.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, AgentRefusal> {
        let window = &bytes[..bytes.len().min(MAX_HEAD)];
        let Some(end) = window.windows(4).position(|four| four == b"\r\n\r\n") else {
            if bytes.len() >= MAX_HEAD {
                return Err(AgentCode::HeadTooLarge.refuse(format!("at least {MAX_HEAD} bytes")));
            }
            return Ok(None);
        };
        let text = plain(&window[..end])?;
        let mut lines = text.split("\r\n");
        let (method, path, query) = request_line(lines.next().unwrap_or_default())?;
        let headers = lines.map(header).collect::<Result<Vec<_>, _>>()?;
        let (host, body) = judge(&headers, &method)?;
        let forwarded = headers
            .into_iter()
            .filter(|(name, _)| !DROPPED.contains(&name.as_str()));
        let head = Self {
            method,
            path,
            query,
            host,
            body,
            headers: forwarded.collect(),
        };
        Ok(Some((head, end + 4)))
    }

    /// The head as it is forwarded: in our own spelling, for one request on one connection.
    /// `host` is who is asked; `added` are headers of ours, such as the provider's key.
    pub fn forwarded(&self, host: &str, added: &[(&str, &str)]) -> String {
        let mut out = format!(
            "{} {}{} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.method, self.path, self.query, host, self.body.0
        );
        let own = self.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
        let kept = own.filter(|(name, _)| added.iter().all(|(ours, _)| ours != name));
        for (name, value) in kept.chain(added.iter().copied()) {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str("\r\n");
        out
    }
}

fn malformed(what: &str) -> AgentRefusal {
    AgentCode::HeadMalformed.refuse(what)
}

/// Printable ASCII, tabs, and line ends of two bytes: no lone CR or LF, nothing above.
fn plain(bytes: &[u8]) -> Result<&str, AgentRefusal> {
    for (at, byte) in bytes.iter().enumerate() {
        let fits = match byte {
            b'\r' => bytes.get(at + 1) == Some(&b'\n'),
            b'\n' => at > 0 && bytes[at - 1] == b'\r',
            byte => matches!(byte, b'\t' | b' '..=b'~'),
        };
        if !fits {
            return Err(malformed(&format!("byte {at}")));
        }
    }
    std::str::from_utf8(bytes).map_err(|_| malformed("not ASCII"))
}

fn request_line(line: &str) -> Result<(String, String, String), AgentRefusal> {
    let bad = || malformed("the request line");
    let mut parts = line.split(' ');
    let (method, target) = (parts.next().ok_or_else(bad)?, parts.next().ok_or_else(bad)?);
    if parts.next() != Some("HTTP/1.1") || parts.next().is_some() {
        return Err(bad());
    }
    let upper = method.bytes().all(|b| b.is_ascii_uppercase());
    if !upper || method.is_empty() || method.len() > 10 || target.len() > MAX_TARGET {
        return Err(bad());
    }
    let at = target.find('?').unwrap_or(target.len());
    let (path, query) = target.split_at(at);
    let odd = |b: u8| !(b.is_ascii_alphanumeric() || b"?&=._~-".contains(&b));
    if !is_plain_path(path) || query.bytes().any(odd) {
        return Err(malformed("the target"));
    }
    Ok((method.to_owned(), path.to_owned(), query.to_owned()))
}

/// A slash, then segments of letters, digits and `._~-`, none empty, `.` or `..`. Nothing is
/// escaped, so nothing can be unescaped differently.
pub(super) fn is_plain_path(path: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || b"._~-".contains(&b);
    let fits = |s: &str| !matches!(s, "" | "." | "..") && s.bytes().all(inside);
    path.strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(fits))
}

/// Lower-case labels with dots between, and a port if there is one.
pub(super) fn is_host(host: &str) -> bool {
    let (name, port) = match host.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let label = |l: &str| !l.is_empty() && l.bytes().all(inside) && !l.starts_with('-');
    let digits = |p: &str| p.bytes().all(|b| b.is_ascii_digit()) && !p.starts_with('0');
    let port = port.is_none_or(|p| digits(p) && p.parse::<u16>().is_ok());
    host.len() <= 255 && name.split('.').all(label) && port
}

fn header(line: &str) -> Result<(String, String), AgentRefusal> {
    let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header"))?;
    let token = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    // White space before the name or the colon continues or hides a header for other readers.
    if name.is_empty() || !name.bytes().all(token) {
        return Err(malformed("a header's name"));
    }
    let value = value.trim_matches([' ', '\t']);
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}

/// Who is asked, and how long the body is.
fn judge(headers: &[(String, String)], method: &str) -> Result<(String, Body), AgentRefusal> {
    if headers.len() > MAX_HEADERS {
        return Err(malformed("too many headers"));
    }
    let named = |name: &str| -> Result<Option<&str>, AgentRefusal> {
        let mut found = headers.iter().filter(|(n, _)| n == name);
        match (found.next(), found.next()) {
            (_, Some(_)) => Err(malformed(&format!("{name} stands twice"))),
            (first, None) => Ok(first.map(|(_, value)| value.as_str())),
        }
    };
    if let Some((name, _)) = headers.iter().find(|(n, _)| REFUSED.contains(&n.as_str())) {
        return Err(malformed(name));
    }
    if named("transfer-encoding")?.is_some() {
        return Err(AgentCode::BodyRefused.refuse("transfer-encoding"));
    }
    let connection = named("connection")?.map(str::to_ascii_lowercase);
    if !matches!(connection.as_deref(), None | Some("close" | "keep-alive")) {
        return Err(malformed("connection"));
    }
    let host = named("host")?.filter(|host| is_host(host));
    let host = host.ok_or_else(|| malformed("host"))?;
    let body = length(named("content-length")?, method)?;
    Ok((host.to_owned(), body))
}

fn length(stated: Option<&str>, method: &str) -> Result<Body, AgentRefusal> {
    let bad = |what: &str| AgentCode::BodyRefused.refuse(what);
    let length = match stated {
        None if method == "GET" => 0,
        None => return Err(bad("no content-length")),
        Some(text) => {
            let canonical = text == "0" || !text.starts_with('0');
            let digits = text.bytes().all(|b| b.is_ascii_digit()) && canonical;
            let length = text.parse::<u64>().ok().filter(|_| digits);
            length.ok_or_else(|| bad("content-length"))?
        }
    };
    if length > MAX_BODY || (method == "GET" && length > 0) {
        return Err(bad(&format!("{length} bytes")));
    }
    Ok(Body(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8]) -> Result<(), AgentCode> {
        Head::read(bytes).map(drop).map_err(|e| e.code)
    }

    #[test]
    fn a_plain_request_is_read_and_rewritten_without_its_secrets() {
        let text = b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: api.example.com\r\n\
            X-Api-Key: theirs\r\nAuthorization: Bearer theirs\r\nContent-Type:application/json\r\n\
            Connection: keep-alive\r\nContent-Length: 2\r\n\r\n{}";
        let (head, length) = Head::read(text).unwrap().unwrap();
        assert_eq!(&text[length..], b"{}");
        assert_eq!((head.path.as_str(), head.body), ("/v1/messages", Body(2)));
        assert_eq!(
            head.forwarded("api.example.com", &[("x-api-key", "ours")]),
            "POST /v1/messages?beta=true HTTP/1.1\r\nhost: api.example.com\r\nconnection: close\r\n\
             content-length: 2\r\ncontent-type: application/json\r\nx-api-key: ours\r\n\r\n"
        );
    }

    #[test]
    fn a_head_in_pieces_is_waited_for_and_one_without_end_is_not() {
        let whole = b"GET /v1 HTTP/1.1\r\nHost: a.b\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(Head::read(&whole[..end]), Ok(None), "{end}");
        }
        assert!(Head::read(whole).unwrap().is_some());
        let endless = vec![b'a'; MAX_HEAD];
        assert_eq!(code(&endless), Err(AgentCode::HeadTooLarge));
    }
}
