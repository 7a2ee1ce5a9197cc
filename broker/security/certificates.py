"""What a certificate says: its subject as Java writes it (javax.security.auth.x500.X500Principal, RFC 2253), and its expiry. Pure."""

from __future__ import annotations

from collections.abc import Iterator

_VERSION, _UTC_TIME = 0xA0, 0x17
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString
_TEXTS = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED = frozenset(',=+<>#;"\\')


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER), the most specific part first: "CN=alice,O=Example,C=DE"."""
    parts = ["+".join(map(_attribute, _elements(names))) for _, names in _elements(_field(certificate, 4))]
    return ",".join(reversed(parts))


def expiry_of(certificate: bytes) -> str:
    """The last second in which a certificate (DER) is valid: UTC as "2027-11-22 17:34:00", which sorts by time."""
    _, (tag, end) = _elements(_field(certificate, 3))
    # YYMMDDHHMMSSZ for years from 1950 to 2049, otherwise YYYYMMDDHHMMSSZ (RFC 5280).
    digits = end.decode("ascii").removesuffix("Z")
    if tag == _UTC_TIME:
        digits = ("19" if digits >= "50" else "20") + digits
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:14]}"


def _field(certificate: bytes, number: int) -> bytes:
    """A field of a certificate: 0 serial number, 1 signature algorithm, 2 issuer, 3 validity, 4 subject."""
    (_, fields), *_ = _elements(_content(certificate))
    found = list(_elements(fields))
    # The version comes first if it is not the oldest one.
    return found[number + (found[0][0] == _VERSION)][1]


def _attribute(element: tuple[int, bytes]) -> str:
    (_, oid), (tag, value) = _elements(element[1])
    dotted = _dotted(oid)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or dotted}=#{_encoded(tag, value).hex()}"
    text = "".join(_escape(char) for char in value.decode("utf-8", "replace"))
    bare = text.strip(" \r")
    lead, trail = len(text) - len(text.lstrip(" \r")), len(text) - len(text.rstrip(" \r"))
    if not bare:
        return f"{keyword}=" + "".join("\\" + char for char in text)
    escaped = ("".join("\\" + char for char in part) for part in (text[:lead], text[len(text) - trail :]))
    return f"{keyword}={next(escaped)}{bare}{next(escaped)}"


def _escape(char: str) -> str:
    if char == "\0":
        return "\\00"
    return "\\" + char if char in _ESCAPED else char


def _content(data: bytes) -> bytes:
    (_, content), *_ = _elements(data)
    return content


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The DER elements of a content: tag and content of each. OpenSSL has checked the certificate."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            start, at = at, at + (length & 0x7F)
            length = int.from_bytes(data[start:at], "big")
        yield tag, data[at : at + length]
        at += length


def _encoded(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content


def _dotted(oid: bytes) -> str:
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
