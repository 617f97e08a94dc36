//! Code that rules by name and by statement would pass over, each with its honest twin.

use super::*;
use CertifierCode::SourceAmbiguous;

#[test]
fn whatever_python_could_read_in_another_encoding_is_refused() {
    for (comment, honest) in [
        (
            "# On coding style: see below. coding: raw_unicode_escape",
            false,
        ),
        ("# coding style, coding=utf-7", false),
        ("# coding:\tlatin-1", false),
        ("  # xcoding= \t utf-16", false),
        ("# coding: utf-8, coding: latin-1", false),
        ("# -*- coding: utf-8 -*-", true),
        ("# On coding style: see below.", true),
        ("# encoding = latin-1", true),
        ("# coding: (none)", true),
    ] {
        for before in ["", "#!/usr/bin/python3\n"] {
            let text = format!("{before}{comment}\nx = 1\n");
            let code = code_of(Python, "a.py", text.as_bytes());
            assert_eq!(code, (!honest).then_some(SourceAmbiguous), "{comment}");
        }
        let text = format!("x = 1\ny = 1\n{comment}\n");
        assert_eq!(code_of(Python, "a.py", text.as_bytes()), None, "{comment}");
    }
}

#[test]
fn a_line_of_python_that_is_joined_to_one_without_code_is_refused() {
    let body = |line: &str| format!("def f(n):\n    if n:\n        n = 1\n{line}\n    return n\n");
    for line in [
        "        \\\n    n = 2",
        "    \\\n        n = 2",
        "\\\n    n = 2",
        "        n = 2 \\\n",
        "        n = 2 \\\n    # two",
    ] {
        let code = code_of(Python, "a.py", body(line).as_bytes());
        assert_eq!(code, Some(SourceAmbiguous), "{line}");
    }
    for line in [
        "        n = 1 + \\\n    2",
        "    x = \"\"\"\n\\\n\"\"\"",
        "    # a comment \\\n",
        "    x = '\\\\'\n\n",
    ] {
        assert_eq!(
            code_of(Python, "a.py", body(line).as_bytes()),
            None,
            "{line}"
        );
    }
}
