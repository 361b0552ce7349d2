"""The client: typed answers, errors that say what to do, and a token that goes nowhere else."""

from collections.abc import Callable, Iterator

import pytest
from kvtrail_dashboards import client as client_module
from kvtrail_dashboards.client import CollectorClient
from kvtrail_dashboards.errors import (
    AccessRefused,
    AnswerUnreadable,
    CollectorError,
    CollectorUnreachable,
    NotKnown,
    QuestionRefused,
)
from kvtrail_dashboards.settings import Settings

from tests.dashboards.answers import BIG_ID, all_answers, attribution, requests, verdict
from tests.dashboards.fake_collector import Script, fake_collector

Ask = Callable[[CollectorClient], object]
ASKS: list[Ask] = [
    lambda client: client.loss(),
    lambda client: client.series(engine=None, bucket_ms=1_000),
    lambda client: client.attribution(engine=None, start_ns=None, end_ns=None),
    lambda client: client.worst_requests(engine=None, start_ns=None, end_ns=None, limit=5),
    lambda client: client.why("r-1", engine=None),
]


@pytest.fixture
def collector() -> Iterator[Script]:
    """A collector with one spike."""
    with fake_collector(all_answers()) as script:
        yield script


def test_questions_carry_what_is_known_and_nothing_else(collector: Script) -> None:
    """Absent bounds are not sent, so that the collector searches for the window."""
    with CollectorClient(Settings(collector.url)) as client:
        client.attribution(engine="engine-a", start_ns=None, end_ns=None)
        client.worst_requests(engine="engine-a", start_ns=0, end_ns=9, limit=5)

    expected = {"engine": "engine-a", "start_ns": "0", "end_ns": "9", "order": "ttft", "limit": "5"}
    assert collector.params_of("/v1/attribution") == [{"engine": "engine-a"}]
    assert [expected] == collector.params_of("/v1/requests")


def test_the_token_is_sent_as_a_bearer(collector: Script) -> None:
    """Each question is authorised."""
    with CollectorClient(Settings(collector.url, "a-token")) as client:
        client.loss()

    assert [asked.authorization for asked in collector.asked] == ["Bearer a-token"]


def test_ids_of_64_bits_survive() -> None:
    """An id is a whole number from end to end."""
    with fake_collector(all_answers()) as script, CollectorClient(Settings(script.url)) as client:
        found = client.worst_requests(engine=None, start_ns=None, end_ns=None, limit=5)

        assert found.requests[0].request == BIG_ID


def test_a_newer_collector_is_understood() -> None:
    """Fields and codes that this version does not know are passed over, not errors."""
    answer = attribution(verdicts=[verdict("A_NEW_CODE", novelty=[1])], more={"to": "come"})
    with fake_collector({"/v1/attribution": answer}) as script, CollectorClient(Settings(script.url)) as client:
        assert client.attribution(engine=None, start_ns=None, end_ns=None).verdicts[0].code == "A_NEW_CODE"


@pytest.mark.parametrize("name", ["a/b", "../loss", "r 1?x=2", "%2e"])
def test_a_pasted_id_stays_one_id(name: str) -> None:
    """Whatever is pasted as an id asks for a request, never for another path."""
    with fake_collector(all_answers()) as script, CollectorClient(Settings(script.url)) as client:
        client.why(name, engine=None)

        assert script.asked[0].path.startswith("/v1/requests/")
        assert dict(script.asked[0].params) == {}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AccessRefused), (403, AccessRefused), (404, NotKnown), (503, QuestionRefused), (302, QuestionRefused)],
)
def test_a_refusal_comes_in_the_collectors_words(status: int, kind: type[CollectorError]) -> None:
    """What the collector says is told; a redirect is not followed, so a token goes nowhere else."""
    trouble = {"error": {"what": "the words of the collector", "where": "here", "do": "this"}}
    with fake_collector({"/v1/loss": trouble}, status=status) as script, CollectorClient(Settings(script.url)) as client:
        with pytest.raises(kind, match="the words of the collector"):
            client.loss()

        assert len(script.asked) == 1


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("body", [b"<html>", b"[1]", b'{"series": 3, "balanced": 1, "components": 2, "requests": 4}', b""])
def test_what_is_no_answer_is_an_error_of_ours(ask: Ask, body: bytes) -> None:
    """Another server at that address, or a broken one, is named as such."""
    paths = ["loss", "series", "attribution", "requests", "requests/"]
    answers = {f"/v1/{name}": body for name in paths}
    with (
        fake_collector(answers) as script,
        CollectorClient(Settings(script.url)) as client,
        pytest.raises(AnswerUnreadable, match="published shape"),
    ):
        ask(client)


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading stops at the bound."""
    monkeypatch.setattr(client_module, "ANSWER_BYTES", 100)
    answers = {"/v1/requests": requests(50)}
    with (
        fake_collector(answers) as script,
        CollectorClient(Settings(script.url)) as client,
        pytest.raises(AnswerUnreadable, match="larger than"),
    ):
        client.worst_requests(engine=None, start_ns=None, end_ns=None, limit=50)


@pytest.mark.parametrize("ask", ASKS)
def test_a_collector_that_is_down_is_told_with_its_address(ask: Ask, free_port: int) -> None:
    """The error says where was asked, and how to start one."""
    with (
        CollectorClient(Settings(f"http://127.0.0.1:{free_port}")) as client,
        pytest.raises(CollectorUnreachable, match=f"{free_port}.*kvtrail collector serve"),
    ):
        ask(client)
