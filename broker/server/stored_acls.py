"""The authorizer of a broker, whose ACLs are in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security import acls
from broker.security.acls.authorizer import StandardAuthorizer
from broker.security.acls.bindings import Binding
from broker.storage import StorageError

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig
    from broker.storage import SecurityRecords


class StoredAcls(StandardAuthorizer):
    """Changes are in force at once, and durable after the next flush."""

    def __init__(self, config: BrokerConfig, records: SecurityRecords) -> None:
        """Load the ACLs. Raises StorageError if one cannot be read: without it, too much may be allowed."""
        super().__init__(config.super_user_names, allow_everyone=config.allow_everyone_if_no_acl_found)
        self._records = records
        for text in records.all(acls.RECORD_KIND):
            try:
                super().add(Binding.decode(text))
            except ValueError as error:
                raise StorageError(f"the store has an ACL that this version cannot read: {error}") from error

    def add(self, binding: Binding) -> bool:
        is_new = super().add(binding)
        if is_new:
            # The whole ACL is the name of the record, so there cannot be two of them.
            self._records.put(acls.RECORD_KIND, binding.encode(), "")
        return is_new

    def remove(self, binding: Binding) -> bool:
        was_there = super().remove(binding)
        if was_there:
            self._records.delete(acls.RECORD_KIND, binding.encode())
        return was_there
