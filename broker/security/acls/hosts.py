"""Addresses as ACLs name them."""

from __future__ import annotations


def host_name(address: str) -> str:
    """An IP address as Java writes it: Kafka compares the text, so ::1 in an ACL does not mean 0:0:0:0:0:0:0:1."""
    if ":" not in address:
        return address
    from ipaddress import IPv6Address

    plain, percent, scope = address.partition("%")
    try:
        found = IPv6Address(plain)
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    groups = (f"{int(group, 16):x}" for group in found.exploded.split(":"))
    return ":".join(groups) + percent + scope
