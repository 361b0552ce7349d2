"""Which namespaces an invalidation means."""

from dataclasses import dataclass, fields

from kvtrail_schema.identity import Namespace, keyed_id

from kvtrail_engine.errors import SettingsError

Members = dict[str, str]
"""Members of a namespace that are set, by name, each as a keyed hash in hexadecimal: no name in clear."""


def hashed_members(key: bytes, namespace: Namespace) -> Members:
    """The members of a namespace, as `namespace_declared` tells them."""
    values = {field.name: getattr(namespace, field.name) for field in fields(namespace)}
    return {name: hashed_value(key, name, value) for name, value in values.items() if value}


def hashed_value(key: bytes, name: str, value: object) -> str:
    """One member under the key; the same value under another name hashes to something else."""
    return f"{keyed_id(key, name.encode(), str(value).encode()):016x}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Every namespace that has all the members which are given here."""

    tenant: str = ""
    model_version: str = ""
    document_version: str = ""
    policy: str = ""
    access_group: str = ""

    def hashed(self, key: bytes) -> Members:
        """What is given, hashed.

        Raises:
            SettingsError: nothing is given; that would mean everything, and nobody asks for that by an empty selector.
        """
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        members = {name: hashed_value(key, name, value) for name, value in given.items() if value}
        if not members:
            message = "a selector names at least one of tenant, model_version, document_version, policy and access_group"
            raise SettingsError(message)
        return members


def is_selected(members: Members, selector: Members) -> bool:
    """Whether a namespace has every member that the selector names. An empty selector selects all."""
    return selector.items() <= members.items()
