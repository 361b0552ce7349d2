"""Segments in particular: how they are named, completed, cut, damaged and shared."""

import stat
from pathlib import Path

import pytest
from kvtrail_agent.errors import SettingsInvalid, TransportUnavailable
from kvtrail_agent.transports import open_transport
from kvtrail_agent.transports.file import FileTransport, read_segments
from kvtrail_schema.errors import FrameTooLarge

from tests.agent.frames import frame_of

FRAMES = [frame_of(1 + 3 * n) for n in range(5)]


def sent(directory: Path, name: str = "a", segment_bytes: int = 1 << 20) -> FileTransport:
    """A transport that has five acknowledged frames behind it."""
    transport = FileTransport(directory, name=name, segment_bytes=segment_bytes)
    for frame in FRAMES:
        transport.send(*frame)
        transport.flush(1.0)
    return transport


def test_a_segment_is_complete_by_its_name(private_dir: Path) -> None:
    """`.open` while it is written, `.segment` afterwards; readable in both states, by its owner alone."""
    transport = sent(private_dir)
    while_open = [path.name for path in private_dir.iterdir()]
    early = list(read_segments(private_dir))
    transport.close()
    (complete,) = private_dir.iterdir()

    assert while_open == ["a-000001.open"]
    assert complete.name == "a-000001.segment"
    assert stat.S_IMODE(complete.stat().st_mode) == 0o600
    assert [frame for frame, _ in FRAMES] == early == list(read_segments(private_dir))


def test_full_segments_are_followed_by_new_ones(private_dir: Path) -> None:
    """A segment over its size ends at a flush; frames keep their order over many of them."""
    sent(private_dir, segment_bytes=10).close()

    assert [f"a-{n:06d}.segment" for n in range(1, 6)] == sorted(path.name for path in private_dir.iterdir())
    assert [frame for frame, _ in FRAMES] == list(read_segments(private_dir))


@pytest.mark.parametrize("cut", [1, 2, 5, 90])
def test_a_cut_end_is_skipped(cut: int, private_dir: Path) -> None:
    """What a crash cut off was never acknowledged; everything before it is read."""
    sent(private_dir).close()
    (path,) = private_dir.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])

    assert [frame for frame, _ in FRAMES[:-1]] == list(read_segments(private_dir))


def test_a_damaged_length_is_named(private_dir: Path) -> None:
    """A length over the bound of a frame is an error that names the file; nothing of that length is read."""
    (private_dir / "a-000001.segment").write_bytes(b"\xff\xff\xff\xff" + bytes(100))
    with pytest.raises(FrameTooLarge, match=r"a-000001\.segment says a frame of 4294967295 bytes"):
        list(read_segments(private_dir))


def test_several_may_share_a_directory(private_dir: Path) -> None:
    """Two transports of one directory never write into one segment, and foreign files are left alone."""
    (private_dir / "README").write_text("mine")
    url = private_dir.as_uri()
    first, second = open_transport(url), open_transport(url)
    for transport in (first, second):
        transport.send(*FRAMES[0])
        transport.flush(1.0)
        transport.close()

    assert [FRAMES[0][0]] * 2 == list(read_segments(private_dir))
    assert len(list(private_dir.iterdir())) == 3


def test_a_name_that_is_taken_is_never_overwritten(private_dir: Path) -> None:
    """Whoever lies there already stays as it is, and the transport says that it cannot write."""
    (private_dir / "a-000001.open").write_bytes(b"")
    transport = FileTransport(private_dir, name="a")
    with pytest.raises(TransportUnavailable, match="File exists"):
        transport.send(*FRAMES[0])
    transport.send(*FRAMES[0])
    transport.flush(1.0)
    transport.close()

    assert [FRAMES[0][0]] == list(read_segments(private_dir))


def test_a_directory_is_made_private(private_dir: Path) -> None:
    """An address may name a directory that is not there yet, with spaces and other characters."""
    place = private_dir / "new folder" / "ü"
    open_transport(place.as_uri()).close()

    assert stat.S_IMODE(place.stat().st_mode) == 0o700


@pytest.mark.parametrize("url", ["file://host", "file:relative/path"])
def test_a_directory_must_be_absolute(url: str) -> None:
    """A relative directory would depend on where the shipper was started."""
    with pytest.raises(SettingsInvalid, match="transport "):
        open_transport(url)


def test_a_file_in_the_way_is_named(private_dir: Path) -> None:
    """The error shows the address."""
    (private_dir / "file").write_text("in the way")
    with pytest.raises(SettingsInvalid, match=r"file.*: File exists"):
        open_transport((private_dir / "file").as_uri())
