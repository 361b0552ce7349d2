"""Requests by the names that links give them: never another rank's, nor another process's."""

from kvtrail_dashboards.answers import Attribution, EventRef
from kvtrail_dashboards.compute.event import event_view
from kvtrail_dashboards.compute.worst import exemplar_links
from kvtrail_dashboards.page_answers import OneEvent


def test_an_exemplar_is_read_short_and_linked_in_full() -> None:
    """Its text or number is shown; the link says epoch and rank, too, as two ranks have the number."""
    found = Attribution(exemplars=("chat-9", "7:1:12"), exemplar_requests=("7:0:9", "7:1:12"))

    assert (("chat-9", "7:0:9"), ("12", "7:1:12")) == exemplar_links(found)


def test_a_collector_that_tells_no_more_is_linked_as_it_tells() -> None:
    """One of an earlier version names exemplars alone."""
    assert (("r-1", "r-1"), ("5", "5")) == exemplar_links(Attribution(exemplars=("r-1", 5)))


def test_the_request_of_an_event_is_of_its_process() -> None:
    """After a restart another request has its number."""
    event = OneEvent(EventRef("e", 7, 1, 4), "prefix_hit", 0, 0, {"req": 5})

    assert "7:1:5" == event_view(event).request
