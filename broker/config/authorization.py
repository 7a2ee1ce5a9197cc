"""The options of the authorizer: which one, and who may do everything."""

from __future__ import annotations

from broker.config.option import ConfigError

_NAMES = ("StandardAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")


def check_authorizer(class_name: str) -> None:
    """Raise ConfigError unless the name is empty, or that of the one authorizer that there is."""
    if class_name and class_name not in _NAMES:
        raise ConfigError(f"authorizer.class.name={class_name}: this broker has only {_NAMES[0]}")


def parse_super_users(text: str) -> tuple[str, ...]:
    """Principals such as User:admin. Raises ConfigError."""
    users = tuple(user.strip() for user in text.split(";") if user.strip())
    for user in users:
        if ":" not in user:
            raise ConfigError(f"super.users={text}: {user!r} is not a principal such as User:{user}")
    return users
