use crate::Attack;

const HONEST: &str = "POST /v1/messages HTTP/1.1\r\nHost: api.example.com\r\n\
    Content-Type: application/json\r\nContent-Length: 2\r\n\r\n";

/// Heads of provider requests that smuggle, mislead or never end. The honest one is a `POST` to
/// `api.example.com/v1/messages`.
pub fn heads() -> Vec<Attack> {
    const MALFORMED: &str = "HEAD_MALFORMED";
    const BODY: &str = "BODY_REFUSED";
    let line = "POST /v1/messages HTTP/1.1";
    let length = "Content-Length: 2";
    let host = "Host: api.example.com";
    let rows: &[(&str, &'static str, &str, &str)] = &[
        (
            "two lengths",
            MALFORMED,
            length,
            "Content-Length: 2\r\nContent-Length: 20",
        ),
        (
            "two lengths in one header",
            BODY,
            length,
            "Content-Length: 2, 20",
        ),
        (
            "a length and chunks",
            BODY,
            length,
            "Content-Length: 2\r\nTransfer-Encoding: chunked",
        ),
        ("chunks", BODY, length, "Transfer-Encoding: chunked"),
        (
            "chunks in disguise",
            BODY,
            length,
            "Content-Length: 2\r\nTransfer-Encoding: xchunked",
        ),
        ("no length", BODY, "Content-Length: 2\r\n", ""),
        ("a length with a sign", BODY, length, "Content-Length: +2"),
        (
            "a length in another base",
            BODY,
            length,
            "Content-Length: 0x2",
        ),
        (
            "a length with a leading zero",
            BODY,
            length,
            "Content-Length: 02",
        ),
        (
            "a length beyond every integer",
            BODY,
            length,
            "Content-Length: 99999999999999999999",
        ),
        (
            "a length beyond the limit",
            BODY,
            length,
            "Content-Length: 33554433",
        ),
        (
            "a name with a space",
            MALFORMED,
            length,
            "Content-Length : 2",
        ),
        (
            "a header that goes on in the next line",
            MALFORMED,
            length,
            "Content-Length: 2\r\nX: a\r\n b",
        ),
        (
            "a line end of one byte",
            MALFORMED,
            "\r\nContent-Type",
            "\nContent-Type",
        ),
        ("a lone return", MALFORMED, host, "Host: api.example.com\rX"),
        ("a zero byte", MALFORMED, host, "Host: api.example.com\0"),
        (
            "a byte beyond ASCII",
            MALFORMED,
            host,
            "Host: api.ex\u{e4}mple.com",
        ),
        (
            "two hosts",
            MALFORMED,
            host,
            "Host: api.example.com\r\nHost: evil.net",
        ),
        ("no host", MALFORMED, "Host: api.example.com\r\n", ""),
        (
            "a host with a user",
            MALFORMED,
            host,
            "Host: api.example.com@evil.net",
        ),
        (
            "a host in upper case",
            MALFORMED,
            host,
            "Host: API.example.com",
        ),
        (
            "a host with a path",
            MALFORMED,
            host,
            "Host: api.example.com/",
        ),
        (
            "a tunnel",
            MALFORMED,
            line,
            "CONNECT api.example.com:443 HTTP/1.1",
        ),
        (
            "a whole address for a target",
            MALFORMED,
            line,
            "POST http://evil.net/v1/messages HTTP/1.1",
        ),
        (
            "a path upwards",
            MALFORMED,
            line,
            "POST /v1/messages/../files HTTP/1.1",
        ),
        (
            "a path upwards, escaped",
            MALFORMED,
            line,
            "POST /v1/messages/%2e%2e/files HTTP/1.1",
        ),
        (
            "a double slash",
            MALFORMED,
            line,
            "POST /v1//messages HTTP/1.1",
        ),
        (
            "a backslash",
            MALFORMED,
            line,
            "POST /v1\\messages HTTP/1.1",
        ),
        (
            "a fragment",
            MALFORMED,
            line,
            "POST /v1/messages#x HTTP/1.1",
        ),
        (
            "another version",
            MALFORMED,
            line,
            "POST /v1/messages HTTP/1.0",
        ),
        (
            "the next version's preface",
            MALFORMED,
            line,
            "PRI * HTTP/2.0",
        ),
        ("two spaces", MALFORMED, line, "POST  /v1/messages HTTP/1.1"),
        (
            "a method in lower case",
            MALFORMED,
            line,
            "post /v1/messages HTTP/1.1",
        ),
        (
            "an empty line first",
            MALFORMED,
            line,
            "\r\nPOST /v1/messages HTTP/1.1",
        ),
        (
            "an upgrade",
            MALFORMED,
            length,
            "Content-Length: 2\r\nUpgrade: websocket",
        ),
        (
            "headers that the connection names",
            MALFORMED,
            length,
            "Content-Length: 2\r\nConnection: close, host",
        ),
        (
            "a wait for permission",
            MALFORMED,
            length,
            "Content-Length: 2\r\nExpect: 100-continue",
        ),
        (
            "another method on top",
            MALFORMED,
            length,
            "Content-Length: 2\r\nX-HTTP-Method-Override: DELETE",
        ),
        (
            "a header without a colon",
            MALFORMED,
            length,
            "Content-Length: 2\r\nX",
        ),
        (
            "a header without a name",
            MALFORMED,
            length,
            "Content-Length: 2\r\n: x",
        ),
    ];
    let attack = |name: &str, expect, bytes: Vec<u8>| Attack {
        name: name.to_owned(),
        bytes,
        expect,
        twin: HONEST.as_bytes().to_vec(),
    };
    let mut attacks: Vec<Attack> = rows
        .iter()
        .map(|(name, expect, from, to)| {
            assert!(HONEST.contains(from), "{name}");
            attack(name, expect, HONEST.replacen(from, to, 1).into_bytes())
        })
        .collect();
    let many = "X: y\r\n".repeat(65);
    let many = HONEST.replacen("Content-Type", &format!("{many}Content-Type"), 1);
    attacks.push(attack("a hundred headers", MALFORMED, many.into_bytes()));
    let long = format!("{line}\r\nX: {}", "y".repeat(16 << 10));
    attacks.push(attack(
        "a head without end",
        "HEAD_TOO_LARGE",
        long.into_bytes(),
    ));
    attacks
}
