"""Encrypted records: nothing in clear, bound to their identity, readable under their key alone."""

import os
from pathlib import Path
from typing import Any

import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import ChecksumError, RecordForeignError, SettingsError
from kvtrail_engine.nvme_settings import DirectIo, NvmeSettings
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.encryption import Cipher, read_secret
from kvtrail_engine.tiers.envelope import Header, Keeping, Origin
from kvtrail_engine.tiers.segments import Put
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import ManifestDeclared, OrphanFound
from kvtrail_schema.identity import Slot
from kvtrail_schema.reasons import OrphanReason

from tests.engine.engines import ask, tiny
from tests.engine.test_nvme_files import on_nvme, same_logits
from tests.engine.tiers.stores import SIZE, block, data, fill, opened, read

pytest.importorskip("cryptography")
SECRET = bytes(range(32))


def header(number: int = 7, generation: int = 1, store: bytes = b"s" * 16) -> Header:
    """The header of one record."""
    return Header(block(number), Slot(0), generation, SIZE, Keeping(), Origin(77, Cipher(SECRET).key_id), store)


def key_file(folder: Path, secret: bytes = SECRET, mode: int = 0o600) -> Path:
    """A key in a file."""
    path = folder / "nvme.key"
    path.write_bytes(secret)
    path.chmod(mode)
    return path


def test_a_sealed_payload_comes_back() -> None:
    """Sealing is undone by opening, and shows nothing of the payload."""
    cipher, payload = Cipher(SECRET), data(5)
    sealed, tag = cipher.seal(header(), payload)

    assert bytes(payload) == cipher.open(header(), memoryview(sealed), tag)
    assert bytes(payload)[:16] not in sealed


@pytest.mark.parametrize("other", [header(8), header(generation=2), header(store=b"t" * 16)])
def test_a_payload_is_bound_to_its_identity(other: Header) -> None:
    """Under another identity, generation or start a payload does not open."""
    sealed, tag = Cipher(SECRET).seal(header(), data(5))
    with pytest.raises(ChecksumError):
        Cipher(SECRET).open(other, memoryview(sealed), tag)


def test_another_secret_does_not_open() -> None:
    """Who has not the key has nothing."""
    sealed, tag = Cipher(SECRET).seal(header(), data(5))
    with pytest.raises(ChecksumError):
        Cipher(os.urandom(32)).open(header(), memoryview(sealed), tag)


def test_no_two_records_share_key_and_nonce(tmp_path: Path) -> None:
    """The same block with the same payload looks different each time, in one start and from start to start."""
    cipher = Cipher(SECRET)
    origin = Origin(77, cipher.key_id)
    puts = [Put(Slot(slot), block(1), data(5)) for slot in range(3)]
    for part in (puts, puts[:1]):
        with opened(tmp_path / str(len(part)), origin=origin, cipher=cipher) as store:
            for put in part:
                store.write([put], store.frames(1))
    content = [next((tmp_path / name).iterdir()).read_bytes()[4096:] for name in ("3", "1")]
    record = SIZE + 1024
    stored = [part[at + 512 : at + 512 + SIZE] for part in content for at in range(0, len(part), record)]

    assert 4 == len(stored) == len(set(stored))


def test_encrypted_records_are_read_and_taken_in_again(tmp_path: Path) -> None:
    """A store with the key serves what it, or one before it, wrote, also where a payload needs padding."""
    cipher = Cipher(SECRET)
    changes: dict[str, Any] = {"origin": Origin(77, cipher.key_id), "cipher": cipher, "payload_bytes": 700}
    fill(tmp_path, Put(Slot(2), block(7), data(9, 700)), **changes)
    with opened(tmp_path, **changes) as store:
        assert bytes(data(9, 700)) == read(store, 2, block(7))


def test_a_record_in_clear_is_not_believed_where_all_are_encrypted(tmp_path: Path) -> None:
    """Who can write the file, but has no key, can give nothing that is read."""
    fill(tmp_path, Put(Slot(2), block(7), data(9)))
    cipher = Cipher(SECRET)
    with opened(tmp_path, origin=Origin(77), cipher=None) as store:
        store.origin = Origin(77, cipher.key_id)
        with pytest.raises(RecordForeignError):
            read(store, 2, block(7))


@pytest.mark.parametrize(("secret", "mode", "problem"), [(SECRET, 0o640, "mode 0640"), (b"short", 0o600, "holds 5 bytes")])
def test_a_key_that_is_no_secret_is_refused(tmp_path: Path, secret: bytes, mode: int, problem: str) -> None:
    """A key that others can read, or guess, is named, with what to do about it."""
    with pytest.raises(SettingsError, match=problem):
        read_secret(key_file(tmp_path, secret, mode))


def test_an_engine_with_a_key_writes_nothing_in_clear(tmp_path: Path, recorded: CollectingEmitter) -> None:
    """Answers are the same bits; files hold none of the arena's bytes; without the key a start finds foreign records."""
    files = NvmeSettings(direct=DirectIo.OFF, key_file=key_file(tmp_path))
    settings, spec = tiny(tmp_path / "engine", nvme_files=files), ask(1, keep_logits=True)
    with Engine(settings) as engine:
        before = on_nvme(engine, spec)
        restored = engine.submit(spec).result(10)
        kept = engine.ask(lambda: [engine.context.gpu.find(known.id) for known in engine.lifecycle.blocks_of(spec)])
        samples = [bytes(engine.gpu_arena.buffer(copy.slot))[:64] for copy in kept if copy is not None]
    content = next((tmp_path / "engine" / "nvme").iterdir()).read_bytes()
    with Engine(settings) as engine:
        again = engine.submit(spec).result(10)
    with Engine(tiny(tmp_path / "engine"), [recorded.as_emitter()]):
        pass

    assert same_logits(before, restored)
    assert same_logits(before, again)
    assert {Tier.NVME: 4} == again.restored
    assert samples
    assert not any(sample in content for sample in samples)
    assert {OrphanReason.FOREIGN} == {event.reason for event in recorded.of(OrphanFound)}
    assert '"is_encrypted":false' in recorded.of(ManifestDeclared)[0].text
    assert "nvme.key" not in recorded.of(ManifestDeclared)[0].text
