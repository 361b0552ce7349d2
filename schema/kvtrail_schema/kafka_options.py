"""How to reach a Kafka cluster: the file of options that agent and collector share, so that one file serves both.

The file is TOML and holds secrets, so its owner alone may read it (0600). Loads no Kafka client.
"""

import stat
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from kvtrail_schema.errors import OptionsInvalid

_OTHERS: Final = 0o077


class SecurityProtocol(StrEnum):
    """Whether a connection is encrypted, and whether a name is asked for on it."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(StrEnum):
    """How a name is proven."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class KafkaOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file of options can say; every name is a line of the file."""

    security_protocol: Annotated[
        SecurityProtocol, Meta(description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, as the listener is configured")
    ] = SecurityProtocol.PLAINTEXT
    tls_ca_file: Annotated[Path | None, Meta(description="PEM file with the authority that signed the brokers")] = None
    tls_certificate_file: Annotated[Path | None, Meta(description="PEM file with our own certificate, for mutual TLS")] = None
    tls_key_file: Annotated[Path | None, Meta(description="PEM file with its private key, mode 0600")] = None
    tls_key_password: Annotated[str | None, Meta(description="what the private key is encrypted with")] = None
    tls_check_hostname: Annotated[bool, Meta(description="whether a broker must prove the name that it is called by")] = True
    sasl_mechanism: Annotated[SaslMechanism | None, Meta(description="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")] = None
    sasl_username: Annotated[str | None, Meta(description="our name")] = None
    sasl_password: Annotated[str | None, Meta(description="our password")] = None

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.security_protocol in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def has_name(self) -> bool:
        """Whether connections say who we are."""
        return self.security_protocol in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    def client_settings(self) -> dict[str, object]:
        """The same in the names of kafka-python, for its producer, consumer and admin client."""
        settings: dict[str, object] = {"security_protocol": self.security_protocol.value}
        if self.is_encrypted:
            settings |= {
                "ssl_cafile": _text(self.tls_ca_file),
                "ssl_certfile": _text(self.tls_certificate_file),
                "ssl_keyfile": _text(self.tls_key_file),
                "ssl_password": self.tls_key_password,
                "ssl_check_hostname": self.tls_check_hostname,
            }
        if self.has_name and self.sasl_mechanism is not None:
            settings |= {
                "sasl_mechanism": self.sasl_mechanism.value,
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.sasl_password,
            }
        return settings


def read_options(path: Path | None) -> KafkaOptions:
    """The options in a file that its owner alone may read; without a file, those of an open cluster on a trusted network.

    Raises:
        OptionsInvalid: the file cannot be read, others may read it, or its options cannot be used together.
    """
    if path is None:
        return KafkaOptions()
    try:
        mode = path.stat().st_mode
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        options = msgspec.convert(table, KafkaOptions, dec_hook=lambda kind, value: kind(value))
    except (OSError, ValueError) as error:
        # The text of an error of the file's own may quote a line of it, and a line may be a password.
        what = error.strerror if isinstance(error, OSError) else _without_values(error)
        message = f"Kafka options {path}: {what}"
        raise OptionsInvalid(message) from None
    if stat.S_IMODE(mode) & _OTHERS:
        message = f"Kafka options {path} may be read by others: chmod 600 it"
        raise OptionsInvalid(message)
    _check(options, path)
    return options


def _check(options: KafkaOptions, path: Path) -> None:
    """See that options fit each other and that the files they name are there.

    Raises:
        OptionsInvalid: they do not, or one is not.
    """
    problem = _missing_name(options) or _missing_file(options)
    if problem:
        message = f"Kafka options {path}: {problem}"
        raise OptionsInvalid(message)


def _missing_name(options: KafkaOptions) -> str:
    """What is wrong with how we say who we are, or an empty text."""
    given = (options.sasl_mechanism, options.sasl_username, options.sasl_password)
    if options.has_name and None in given:
        return f"{options.security_protocol} needs sasl_mechanism, sasl_username and sasl_password"
    if not options.has_name and given != (None, None, None):
        return f"a name is given, and {options.security_protocol} would not send it: set security_protocol"
    return ""


def _missing_file(options: KafkaOptions) -> str:
    """What is wrong with the files of TLS, or an empty text."""
    files = (options.tls_ca_file, options.tls_certificate_file, options.tls_key_file)
    if not options.is_encrypted and any(files):
        return f"files for TLS are given, and {options.security_protocol} would not use them: set security_protocol"
    for file in files:
        if file is not None and not file.is_file():
            return f"{file} is not there"
    key = options.tls_key_file
    if key is not None and stat.S_IMODE(key.stat().st_mode) & _OTHERS:
        return f"{key} may be read by others: chmod 600 it"
    return ""


def _without_values(error: ValueError) -> str:
    """What a reader says of a file, without what stands in it."""
    return str(error) if isinstance(error, msgspec.ValidationError) else "it is no TOML"


def _text(path: Path | None) -> str | None:
    """A path as the client takes it."""
    return None if path is None else str(path)


def options_docs() -> list[tuple[str, str, str]]:
    """The reference: name, default and meaning of each option, in the order of the struct."""
    return [(field.name, _default(field), _description(field.type)) for field in msgspec.structs.fields(KafkaOptions)]


def _default(field: msgspec.structs.FieldInfo) -> str:
    """A default as it stands in a file."""
    value = field.default.value if isinstance(field.default, StrEnum) else field.default
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _description(kind: object) -> str:
    """The help text of an option's type."""
    return next((part.description for part in getattr(kind, "__metadata__", ()) if part.description), "")
