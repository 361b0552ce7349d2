"""Identities: keyed, typed, and never shared by concatenation."""

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kvtrail_schema.identity import (
    LARGEST_ID,
    BlockId,
    Namespace,
    NamespaceId,
    Stream,
    block_id,
    keyed_id,
    namespace_id,
    namespace_text,
)

from tests.strategies import TEXTS

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
TEXT_MEMBERS = [field.name for field in fields(Namespace) if field.name != "block_size"]
NAMESPACES = st.builds(
    Namespace, block_size=st.integers(0, 4096), **{name: st.sampled_from(["", "a", "b", "ab"]) for name in TEXT_MEMBERS}
)


@given(left=st.lists(st.binary(max_size=6), max_size=4), right=st.lists(st.binary(max_size=6), max_size=4))
def test_parts_do_not_run_together(left: list[bytes], right: list[bytes]) -> None:
    """Two different lists of parts have different ids, however their bytes join: ("ab", "c") is not ("a", "bc")."""
    assume(left != right)

    assert keyed_id(KEY, *left) != keyed_id(KEY, *right)


@given(text=st.text(min_size=2, max_size=8), cut=st.integers(0, 8), other=st.integers(0, 8))
def test_moving_the_border_between_two_parts_changes_the_id(text: str, cut: int, other: int) -> None:
    """The very case of concatenation: the same bytes, cut elsewhere."""
    raw = text.encode()
    cut, other = min(cut, len(raw)), min(other, len(raw))
    assume(cut != other)

    assert keyed_id(KEY, raw[:cut], raw[cut:]) != keyed_id(KEY, raw[:other], raw[other:])


@given(left=NAMESPACES, right=NAMESPACES)
def test_two_namespaces_never_share_an_id(left: Namespace, right: Namespace) -> None:
    """KV of one namespace can never be taken for that of another."""
    assume(left != right)

    assert namespace_id(KEY, left) != namespace_id(KEY, right)


@pytest.mark.parametrize("name", TEXT_MEMBERS)
def test_the_same_text_in_another_member_is_another_namespace(name: str) -> None:
    """A LoRA called X is not a salt called X."""
    others = [namespace_id(KEY, _only(member)) for member in TEXT_MEMBERS if member != name]

    assert namespace_id(KEY, _only(name)) not in others


def _only(member: str) -> Namespace:
    """The namespace whose one member is set to X."""
    values: dict[str, Any] = {member: "X"}
    return Namespace(**values)


@given(namespace=NAMESPACES)
def test_ids_need_the_key(namespace: Namespace) -> None:
    """Nobody without the key can test whether a known tuple was used."""
    assert namespace_id(KEY, namespace) != namespace_id(OTHER_KEY, namespace)


@pytest.mark.parametrize("size", range(16))
def test_short_key_is_refused(size: int) -> None:
    """A key that could be guessed gives no ids at all, and the error says what to do."""
    with pytest.raises(ValueError, match=f"identity key has {size} bytes, at least 16 are needed"):
        keyed_id(bytes(size), b"part")


@given(parts=st.lists(st.binary(max_size=40), max_size=3), key=st.binary(min_size=16, max_size=64))
def test_ids_fit_a_column(parts: list[bytes], key: bytes) -> None:
    """No id is the number that says "absent"."""
    assert 0 <= keyed_id(key, *parts) <= LARGEST_ID


def test_ids_are_stable() -> None:
    """The same block has the same id in every process and version, or nothing stored would be found again."""
    expected = 0x7B8A9348893B45FE
    namespace = namespace_id(KEY, Namespace(tenant="t", model="m", block_size=16))

    assert expected == block_id(KEY, namespace, BlockId(7), b"tokens")


@given(text=TEXTS.filter(lambda text: len(text) > 3))
def test_declaration_holds_no_name_in_clear(text: str) -> None:
    """What is declared of a namespace is one hashed value per member that is set, and no more."""
    declared = json.loads(namespace_text(KEY, Namespace(tenant=text, lora=text)))

    assert declared.keys() == {"tenant", "lora"}
    assert declared["tenant"] != declared["lora"]
    assert all(len(value) == 16 and int(value, 16) <= LARGEST_ID for value in declared.values())


@given(left=st.binary(max_size=8), right=st.binary(max_size=8), parent=st.integers(0, LARGEST_ID))
def test_blocks_differ_by_namespace_prefix_and_tokens(left: bytes, right: bytes, parent: int) -> None:
    """Each of the three is enough to make another block; a block without a parent is not the child of block 0."""
    ns, other = NamespaceId(1), NamespaceId(2)
    ids = {
        block_id(KEY, ns, BlockId(parent), left),
        block_id(KEY, other, BlockId(parent), left),
        block_id(KEY, ns, None, left),
        block_id(KEY, ns, BlockId(parent), left + b"!" + right),
    }

    assert len(ids) == 4


def test_streams_sort_by_engine_epoch_rank() -> None:
    """Listings of streams have one order everywhere."""
    streams = [Stream("b", 1, 0), Stream("a", 2, 0), Stream("a", 1, 1), Stream("a", 1, 0)]  # type: ignore[arg-type]  # plain numbers read better here
    expected = [("a", 1, 0), ("a", 1, 1), ("a", 2, 0), ("b", 1, 0)]

    assert expected == [(stream.engine, stream.epoch, stream.rank) for stream in sorted(streams)]
