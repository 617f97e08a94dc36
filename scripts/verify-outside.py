"""Verifies a certificate with securesystemslib and in-toto-attestation, and lays out for openssl
what was signed. Called by verify-outside: CERTIFICATE PUBLIC_KEY.pem DIRECTORY [SNAPSHOT_ID]."""

import base64
import json
import pathlib
import sys

from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf import json_format
from in_toto_attestation.v1 import statement, statement_pb2
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "https://flightproof.dev/certificate/v1"


def unique(pairs):
    """Python keeps the last of two equal keys; a certificate has no two."""
    found = dict(pairs)
    if len(found) != len(pairs):
        sys.exit("a key stands twice")
    return found


certificate, key_file, directory = sys.argv[1:4]
document = json.loads(pathlib.Path(certificate).read_bytes(), object_pairs_hook=unique)
key = SSlibKey.from_crypto(load_pem_public_key(pathlib.Path(key_file).read_bytes()))

signature = document["signatures"][0]["sig"]
envelope = Envelope.from_dict(document)  # takes the document apart
if envelope.payload_type != PAYLOAD_TYPE:
    sys.exit("another payload type")
envelope.verify([key], 1)

json.loads(envelope.payload, object_pairs_hook=unique)
message = json_format.Parse(envelope.payload, statement_pb2.Statement())
statement.Statement.copy_from_pb(message).validate()
if message.predicate_type != PREDICATE_TYPE:
    sys.exit("another predicate type")
if len(sys.argv) > 4 and [s.digest["sha256"] for s in message.subject] != [sys.argv[4]]:
    sys.exit("about another tree")

kind = envelope.payload_type.encode()
signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(envelope.payload), envelope.payload)
work = pathlib.Path(directory)
(work / "pae").write_bytes(signed)
(work / "sig").write_bytes(base64.b64decode(signature, validate=True))
print("securesystemslib: verified,", message.subject[0].name, message.subject[0].digest["sha256"])
