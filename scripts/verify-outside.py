"""Verifies a certificate with securesystemslib and in-toto-attestation, and lays out for openssl and
ssh-keygen what was signed. Called by verify-outside:
  CERTIFICATE PUBLIC_KEY.pem DIRECTORY [SNAPSHOT_ID]
  --damage CERTIFICATE DIRECTORY   writes damaged-*.json, none of which may verify
  --make CERTIFICATE DIRECTORY     writes theirs.json and theirs.pub: the same payload, signed by
                                   securesystemslib with a key of its own"""

import base64
import copy
import json
import pathlib
import sys

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from google.protobuf import json_format
from in_toto_attestation.v1 import statement, statement_pb2
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE_TYPE = "https://flightproof.dev/certificate/v1"


def unique(pairs):
    """Python keeps the last of two equal keys; a certificate has no two."""
    found = dict(pairs)
    if len(found) != len(pairs):
        sys.exit("a key stands twice")
    return found


def load(path):
    return json.loads(pathlib.Path(path).read_bytes(), object_pairs_hook=unique)


def verify(certificate, key_file, directory, subject=None):
    document = load(certificate)
    public = load_pem_public_key(pathlib.Path(key_file).read_bytes())
    key = SSlibKey.from_crypto(public)

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
    if subject and [s.digest["sha256"] for s in message.subject] != [subject]:
        sys.exit("about another tree")

    kind = envelope.payload_type.encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(envelope.payload), envelope.payload)
    work = pathlib.Path(directory)
    (work / "pae").write_bytes(signed)
    (work / "sig").write_bytes(base64.b64decode(signature, validate=True))
    line = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    (work / "allowed").write_text(f'signer namespaces="certificate@flightproof.dev" {line}\n')
    print("securesystemslib: verified,", message.subject[0].name, message.subject[0].digest["sha256"])


def damage(certificate, directory):
    whole = load(certificate)
    payload = base64.b64decode(whole["payload"])

    def write(name, change):
        document = copy.deepcopy(whole)
        change(document)
        (pathlib.Path(directory) / f"damaged-{name}.json").write_text(json.dumps(document))

    def encoded(text):
        return base64.b64encode(text).decode()

    def signature(document, place):
        raw = bytearray(base64.b64decode(document["signatures"][0]["sig"]))
        raw[place] ^= 1
        document["signatures"][0]["sig"] = encoded(bytes(raw))

    write("payload", lambda d: d.update(payload=encoded(payload.replace(b"held", b"hold", 1))))
    write("cut", lambda d: d.update(payload=encoded(payload[:-1])))
    write("type", lambda d: d.update(payloadType="application/json"))
    write("half-r", lambda d: signature(d, 3))
    write("half-s", lambda d: signature(d, 40))
    write("unsigned", lambda d: d.update(signatures=[]))
    write("swapped", lambda d: d["signatures"][0].update(sig=encoded(bytes(64))))


def make(certificate, directory):
    payload = base64.b64decode(load(certificate)["payload"])
    signer = CryptoSigner.generate_ed25519()
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(signer)
    work = pathlib.Path(directory)
    (work / "theirs.json").write_text(json.dumps(envelope.to_dict()))
    public = load_pem_private_key(signer.private_bytes, None).public_key()
    (work / "theirs.pub").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


match sys.argv[1:]:
    case ["--damage", certificate, directory]:
        damage(certificate, directory)
    case ["--make", certificate, directory]:
        make(certificate, directory)
    case arguments:
        verify(*arguments)
