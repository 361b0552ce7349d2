"""Promises of the options file: one that cannot work is refused with its reason, and no secret is ever repeated."""

from pathlib import Path

import pytest
from kvtrail_schema.errors import OptionsInvalid
from kvtrail_schema.kafka_options import KafkaOptions, SaslMechanism, SecurityProtocol, options_docs, read_options

SCRAM = """
security_protocol = "SASL_SSL"
sasl_mechanism = "SCRAM-SHA-512"
sasl_username = "kvtrail"
sasl_password = "hush"
"""


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    """A file of options."""
    path = folder / "kafka.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_no_file_is_an_open_cluster() -> None:
    """Without a file nothing is encrypted and nobody is asked for a name."""
    assert KafkaOptions() == read_options(None)
    assert KafkaOptions().client_settings() == {"security_protocol": "PLAINTEXT"}


def test_options_reach_the_client_under_its_names(private_dir: Path) -> None:
    """Each option of the file becomes the client's setting of that meaning."""
    authority, key = private_dir / "ca.pem", private_dir / "key.pem"
    authority.touch()
    key.touch(mode=0o600)
    more = f'tls_ca_file = "{authority}"\ntls_key_file = "{key}"\ntls_check_hostname = false\n'
    options = read_options(written(private_dir, SCRAM + more))

    assert options.client_settings() == {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(authority),
        "ssl_certfile": None,
        "ssl_keyfile": str(key),
        "ssl_password": None,
        "ssl_check_hostname": False,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "kvtrail",
        "sasl_plain_password": "hush",
    }
    assert (SecurityProtocol.SASL_SSL, SaslMechanism.SCRAM_SHA_512) == (options.security_protocol, options.sasl_mechanism)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('security_protocol = "SASL_SSL"', "needs sasl_mechanism"),
        (SCRAM.replace("SASL_SSL", "SSL"), "would not send it"),
        ('tls_ca_file = "/nowhere/ca.pem"', "would not use them"),
        ('security_protocol = "SSL"\ntls_ca_file = "/nowhere/ca.pem"', "is not there"),
        ("sasl_passwort = 'hush'", "sasl_passwort"),
        ("security_protocol = 'TLS'", "Invalid enum value"),
        ("sasl_password = hush", "no TOML"),
        ("sasl_password = 4711", "Expected `str"),
    ],
)
def test_what_cannot_work_is_refused(private_dir: Path, text: str, said: str) -> None:
    """The error names the file and the trouble, and repeats no secret."""
    path = written(private_dir, text)
    with pytest.raises(OptionsInvalid, match=said) as caught:
        read_options(path)

    assert str(path) in str(caught.value)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_file_that_others_may_read_is_refused(private_dir: Path) -> None:
    """Secrets that lie open are not used."""
    with pytest.raises(OptionsInvalid, match="chmod 600"):
        read_options(written(private_dir, SCRAM, 0o640))


def test_a_key_that_others_may_read_is_refused(private_dir: Path) -> None:
    """The private key of TLS is a secret too."""
    key = private_dir / "key.pem"
    key.touch(mode=0o644)
    key.chmod(0o644)
    with pytest.raises(OptionsInvalid, match="chmod 600"):
        read_options(written(private_dir, f'security_protocol = "SSL"\ntls_key_file = "{key}"'))


def test_a_missing_file_is_named(private_dir: Path) -> None:
    """The error says which file is not there."""
    with pytest.raises(OptionsInvalid, match=r"none\.toml: No such file"):
        read_options(private_dir / "none.toml")


def test_every_option_is_documented() -> None:
    """The reference has each option with its meaning."""
    assert list(KafkaOptions.__struct_fields__) == [name for name, _, meaning in options_docs() if meaning]
