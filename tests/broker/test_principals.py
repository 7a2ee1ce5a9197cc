"""The names and expiries of certificates, and the rules that map names. The expectations are the answers of Java 17 and Kafka 4.1."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from broker.security.certificates import expiry_of, subject_of
from broker.security.principals import BadRule, NoRuleApplies, PrincipalMapper

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
IA5 = _ASN1Type.IA5String
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(subject: x509.Name, end: datetime.datetime | None = None) -> bytes:
    now = datetime.datetime(2020, 1, 1)
    builder = x509.CertificateBuilder(subject, subject, KEY.public_key(), 1, now, end or now + datetime.timedelta(1))
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        (
            [
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.ORGANIZATION_NAME, 'Ex, Inc = + <a> #1; "q" \\b'),
                (NameOID.COMMON_NAME, " a b "),
            ],
            'CN=\\ a b\\ ,O=Ex\\, Inc \\= \\+ \\<a\\> \\#1\\; \\"q\\" \\\\b,C=DE',
        ),
        (
            [
                (NameOID.COMMON_NAME, "Zoë\t"),
                (NameOID.EMAIL_ADDRESS, "a@b.c", IA5),
                (NameOID.USER_ID, "u1"),
                (NameOID.DOMAIN_COMPONENT, "example", IA5),
                (NameOID.STATE_OR_PROVINCE_NAME, "BY"),
                (NameOID.STREET_ADDRESS, "S 1"),
                (NameOID.TITLE, "T"),
            ],
            "2.5.4.12=#0c0154,STREET=S 1,ST=BY,DC=example,UID=u1,1.2.840.113549.1.9.1=#16056140622e63,CN=Zoë\t",
        ),
        ([(NameOID.COMMON_NAME, "a\0b"), (NameOID.COMMON_NAME, "  ")], "CN=\\ \\ ,CN=a\\00b"),
        ([], ""),
    ],
)
def test_the_name_of_a_certificate_is_written_as_in_java(attributes: list[tuple[object, ...]], name: str) -> None:
    subject = x509.Name([x509.NameAttribute(*attribute) for attribute in attributes])  # type: ignore[arg-type]
    assert subject_of(certificate(subject)) == name


@pytest.mark.parametrize("year", [2026, 2049, 2050, 2151])
def test_the_expiry_of_a_certificate_sorts_by_time(year: int) -> None:
    assert expiry_of(certificate(x509.Name([]), datetime.datetime(year, 2, 3, 4, 5, 6))) == f"{year}-02-03 04:05:06"


def test_the_attributes_of_one_part_are_joined() -> None:
    both = [
        x509.NameAttribute(NameOID.COMMON_NAME, "multi"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "ou"),
    ]
    last = x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "o")])
    assert subject_of(certificate(x509.Name([x509.RelativeDistinguishedName(both), last]))) == "O=o,OU=ou+CN=multi"


@pytest.mark.parametrize(
    ("rules", "mapped"),
    [
        ("DEFAULT", DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", "duke"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U, DEFAULT", "DUKE@SERVICEUSERS"),
        ("RULE:^CN=nobody$/x/, DEFAULT", DUKE),
        ("RULE:^C/x/,DEFAULT", DUKE),
        (",DEFAULT", DUKE),
        ("RULE:^CN=(.*),OU.*$/p,$1/", "p,Duke"),
        ("RULE:^CN=(.*?),.*$/$2x$1/", "$2xDuke"),
        ("RULE:^CN=(.*?),.*$/$12/", "Duke2"),
        ("RULE:^CN=(.*?),.*$/a\\/b$1/", "a/bDuke"),
        ("RULE:^CN=([^,]*),.*$/\\$1/", "$1"),
        ("RULE:^CN=(.*),OU.*$/$0/", DUKE),
        ("RULE:.*/x/", "xx"),
        ("RULE:^CN=(?<n>.*?),.*$/${n}/", "Duke"),
        ("RULE:^CN=(Duke),(X)?.*$/$1$2/", "Duke"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_maps_it(rules: str, mapped: str) -> None:
    assert PrincipalMapper(rules).map(DUKE) == mapped


@pytest.mark.parametrize("rules", ["", "RULE:^CN=nobody$/x/,RULE:^cn=duke/y/"])
def test_a_name_that_no_rule_matches_has_no_principal(rules: str) -> None:
    with pytest.raises(NoRuleApplies, match="CN=Duke"):
        PrincipalMapper(rules).map(DUKE)


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAULTX",
        "RULE:a",
        "RULE:a/b",
        "RULE:a/b/x",
        "RULE:^(.*)$/$1/LU",
        "RULE:(/x/",
        "RULE:(a)/$x/",
        "RULE:a/$1/",
    ],
)
def test_a_rule_that_is_not_understood_is_refused(rules: str) -> None:
    with pytest.raises(BadRule):
        PrincipalMapper(rules)


def test_a_client_without_a_certificate_is_anonymous() -> None:
    assert PrincipalMapper("RULE:.*/x/").principal(None) == "User:ANONYMOUS"
