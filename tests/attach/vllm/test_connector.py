"""The wrapper around an inner connector: everything goes through unchanged, whatever we do beside it."""

import inspect
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kvtrail_agent.attach import vllm_attach
from kvtrail_agent.attach.guard import MOST_ERRORS, Guard
from kvtrail_agent.attach.vllm_attach import Attached, Sizes
from kvtrail_agent.attach.vllm_settings import attachment_settings
from kvtrail_agent.attach.vllm_worker import StepTimes, TimesMeta, on_clock
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import CapacitySampled, ManifestDeclared, RequestArrived, SwapInLoaded, SwapInQueued

from tests.attach.vllm import tree
from tests.attach.vllm.things import Request, answer, output


class Inner(tree.KVConnectorBase_V1):
    """An inner connector that remembers what it was asked, and answers with objects of its own."""

    _cache_hit_source = tree.CacheHitSource.DISK

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.own_attribute = "inner"

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not inspect.ismethod(found) or name == "build_prom_metrics":
            return found

        def asked(*args: Any, **kwargs: Any) -> Any:
            self.asked.append((name, args, kwargs))
            return self.answers[name] if name in self.answers else found(*args, **kwargs)

        return asked

    def a_method_of_a_later_version(self, what: str) -> str:
        """Not in the interface that we know."""
        return f"later {what}"

    @classmethod
    def build_prom_metrics(cls, vllm_config: Any, *rest: Any) -> Any:
        """Says whose metrics and by which configuration."""
        return cls, vllm_config.kv_transfer_config.kv_connector, rest


class WithHMA(Inner, tree.SupportsHMA):
    """One that knows several kinds of cache."""

    def request_finished_all_groups(self, request: Any, block_ids: Any) -> Any:
        """A request ended."""
        return True, {"sent": block_ids}


@pytest.fixture
def connector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Our class, in a process that has vLLM's modules."""
    for name, module in tree.modules().items():
        monkeypatch.setitem(__import__("sys").modules, name, module)
    tree.CONNECTORS.update({"Inner": Inner, "WithHMA": WithHMA})
    import kvtrail_agent.attach.vllm as ours  # noqa: PLC0415 - only now it can be imported

    yield ours.KvtrailConnector
    for name in tree.ours():
        monkeypatch.delitem(__import__("sys").modules, name)
    tree.CONNECTORS.clear()


def config(inner: str | None = "Inner", **kvtrail: Any) -> Any:
    """A configuration of vLLM."""
    extra: dict[str, Any] = {"kvtrail": kvtrail}
    if inner is not None:
        extra["inner"] = {"kv_connector": inner, "kv_connector_extra_config": {"path": "/x"}}
    return SimpleNamespace(
        kv_transfer_config=tree.KVTransferConfig("KvtrailConnector", "kv_both", "kvtrail_agent.attach.vllm", extra),
        parallel_config=SimpleNamespace(data_parallel_rank=0, data_parallel_size=1, rank=3),
        cache_config=SimpleNamespace(block_size=4, enable_prefix_caching=True),
        scheduler_config=SimpleNamespace(max_num_seqs=8, max_num_batched_tokens=64),
        device_config=SimpleNamespace(device_type="cpu"),
    )


def caches(groups: int = 1) -> Any:
    """The configuration of the cache."""
    group = SimpleNamespace(kv_cache_spec=SimpleNamespace(block_size=4))
    return SimpleNamespace(num_blocks=10, kv_cache_groups=[group] * groups, kv_cache_tensors=[SimpleNamespace(size=10_000)] * 2)


def scheduler_side(
    connector: Any, monkeypatch: pytest.MonkeyPatch, inner: str | None = "Inner"
) -> tuple[Any, CollectingEmitter]:
    """A connector in the scheduler's process, whose recorder keeps its events in memory."""
    emitter = CollectingEmitter()

    def attach(vllm_config: Any, kv_cache_config: Any, found: type, _: Any) -> Attached:
        settings = attachment_settings({"engine": "e", "transport": "file:///unused"}, 0)

        assert settings is not None

        recorder: Any = emitter
        return Attached(recorder, settings, Sizes(vllm_config, kv_cache_config), found)

    monkeypatch.setattr("kvtrail_agent.attach.vllm.attach", attach)
    return connector(config(inner), tree.KVConnectorRole.SCHEDULER, caches()), emitter


def test_every_member_of_the_interface_is_the_inner_ones(connector: Any) -> None:
    """Each method gets the arguments that vLLM gave and gives the object that the inner connector gave; properties, too."""
    ours = connector(config(), tree.KVConnectorRole.WORKER, caches())
    inner = ours._inner
    watched = {"build_connector_worker_meta"}
    methods = [
        name
        for name, member in inspect.getmembers(tree.KVConnectorBase_V1, inspect.isfunction)
        if not name.startswith("_") and name not in watched
    ]
    for name in methods:
        count = len(inspect.signature(getattr(tree.KVConnectorBase_V1, name)).parameters) - 1
        given, expected = tuple(object() for _ in range(count)), (object(), object())
        inner.answers[name], inner.asked[:] = expected, []

        assert expected is getattr(ours, name)(*given)
        assert (name, given, {}) in inner.asked

    assert ours.requires_kv_delivery is inner.requires_kv_delivery is True
    assert "later x" == ours.a_method_of_a_later_version("x")
    assert "inner" == ours.own_attribute
    assert ours._vllm_config is inner._vllm_config


def test_the_inner_connector_sees_itself_configured(connector: Any) -> None:
    """It is the connector of its configuration, with its own extra settings, and the rest as the operator gave it."""
    seen = connector(config(), tree.KVConnectorRole.WORKER, caches())._inner._vllm_config.kv_transfer_config

    assert ("Inner", None, {"path": "/x"}, "kv_both") == (
        seen.kv_connector,
        seen.kv_connector_module_path,
        seen.kv_connector_extra_config,
        seen.kv_role,
    )


def test_class_methods_ask_the_inner_class(connector: Any) -> None:
    """Metrics and statistics are those of the inner connector, by the configuration or by what was seen before."""
    found, name, rest = connector.build_prom_metrics(config(), 1, 2)

    assert (Inner, "Inner", (1, 2)) == (found, name, rest)
    assert connector.build_kv_connector_stats({"a": 1}) is None
    assert connector.requires_piecewise_for_cudagraph({"inner": {"kv_connector": "Inner"}}) is False


def test_an_unknown_inner_connector_is_vllms_own_error(connector: Any) -> None:
    """A name that nobody knows is refused at the start, as vLLM refuses it."""
    with pytest.raises(ValueError, match="Unsupported connector type: Nowhere"):
        connector(config("Nowhere"), tree.KVConnectorRole.SCHEDULER, caches())


def test_several_kinds_of_cache_need_an_inner_one_that_knows_them(connector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An inner connector without HMA serves one kind, and is told of that; with HMA it is asked as it is."""
    with pytest.raises(ValueError, match="disable-hybrid-kv-cache-manager"):
        connector(config(), tree.KVConnectorRole.SCHEDULER, caches(groups=2))
    plain, _ = scheduler_side(connector, monkeypatch)
    knowing, _ = scheduler_side(connector, monkeypatch, "WithHMA")

    assert (False, None) == plain.request_finished_all_groups(Request("a", 4), ([1, 2],))
    assert [("request_finished", [1, 2])] == [(name, args[1]) for name, args, _ in plain._inner.asked]
    assert (True, {"sent": ([1, 2],)}) == knowing.request_finished_all_groups(Request("a", 4), ([1, 2],))


def test_without_an_inner_connector_nothing_is_moved(connector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone it finds nothing, keeps no blocks and asks for no delivery; requests are recorded all the same."""
    alone, emitter = scheduler_side(connector, monkeypatch, None)
    alone.on_new_request(Request("a", 8))

    assert (0, False) == alone.get_num_new_matched_tokens(Request("a", 8), 0)
    assert (False, None) == alone.request_finished_all_groups(Request("a", 8), ([1],))
    assert alone.requires_kv_delivery is False
    assert 1 == len(emitter.of(RequestArrived))
    assert connector(config(None), tree.KVConnectorRole.WORKER, caches()).build_connector_worker_meta() is None


def test_a_request_through_both_sides_is_recorded(connector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What vLLM calls in a step with a load, in both processes: the load stands in the scheduler's stream, with its times."""
    scheduler, emitter = scheduler_side(connector, monkeypatch)
    worker = connector(config(), tree.KVConnectorRole.WORKER, caches())
    request = Request("a", 12)
    scheduler._inner.answers["get_num_new_matched_tokens"] = (8, False)
    scheduler.bind_kv_cache_manager(SimpleNamespace(block_pool=SimpleNamespace(get_num_free_blocks=lambda: 7)))
    scheduler.on_new_request(request)

    assert (8, False) == scheduler.get_num_new_matched_tokens(request, 0)

    scheduler.update_state_after_alloc(request, SimpleNamespace(get_block_ids=lambda: ([4, 5, 6],)), 8)
    scheduler.build_connector_meta(output(new={"a": 8}, tokens={"a": 4}))
    worker.start_load_kv(None)
    worker.wait_for_layer_load("layer")
    worker.save_kv_layer("layer", None, None)
    worker.wait_for_save()
    worker.get_transfer_results(set())
    said = answer()
    said.kv_connector_worker_meta = pickle.loads(pickle.dumps(worker.build_connector_worker_meta()))  # noqa: S301 - our own
    scheduler.update_connector_output(said)
    scheduler.take_events()

    assert said.kv_connector_worker_meta is None
    assert [(Tier.NVME, 4), (Tier.NVME, 5)] == [(one.src, one.slot) for one in emitter.of(SwapInQueued)]
    assert emitter.of(SwapInLoaded)[0].io_ns is not None
    assert [2_000 * 7] == [one.free_bytes for one in emitter.of(CapacitySampled)]
    assert 0 == scheduler._kvtrail.guard.errors


def test_the_inner_ones_metadata_comes_back_as_it_was() -> None:
    """What workers tell the inner connector is put together as the inner connector does it, and our times beside it."""
    inner = SimpleNamespace(aggregate=lambda other: ("both", other))
    first, second = StepTimes(0, 0), StepTimes(1, 0)
    both = TimesMeta(inner, (first,)).aggregate(TimesMeta("theirs", (second,)))

    assert ("both", "theirs") == both.inner
    assert (first, second) == both.times
    assert inner is TimesMeta(None, (first,)).aggregate(TimesMeta(inner, ())).inner
    assert inner is TimesMeta(inner, (first,)).aggregate(TimesMeta(None, ())).inner


def test_times_of_another_host_come_onto_the_schedulers_clock() -> None:
    """Within a host clocks are one, whatever the readings say; of another host they are moved by the wall clock."""
    times = StepTimes(0, 5_000_000_000, load_begin_ns=100, save_ns=7)

    assert times == on_clock(times, 5_000_100_000)
    assert 2_000_000_100 == on_clock(times, 3_000_000_000).load_begin_ns
    assert (0, 7) == (on_clock(times, 3_000_000_000).save_end_ns, on_clock(times, 3_000_000_000).save_ns)


def test_what_we_do_wrong_stays_with_us(connector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of a version that has none of the fields we read: vLLM gets every answer, we count, and stop at last."""
    scheduler, _ = scheduler_side(connector, monkeypatch)
    strange = SimpleNamespace()
    scheduler._inner.answers["get_num_new_matched_tokens"] = (3, True)
    for _ in range(MOST_ERRORS):
        scheduler.on_new_request(strange)

        assert (3, True) == scheduler.get_num_new_matched_tokens(strange, 0)

        scheduler.update_state_after_alloc(strange, strange, 3)
        scheduler.build_connector_meta(strange)
        scheduler.update_connector_output(strange)

    assert MOST_ERRORS == scheduler._kvtrail.guard.errors
    assert not scheduler._kvtrail.guard.is_open


def test_what_the_inner_one_raises_reaches_vllm(connector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the inner connector are vLLM's to handle; they are neither swallowed nor counted as ours."""
    scheduler, _ = scheduler_side(connector, monkeypatch)

    def fail(*_: Any) -> None:
        raise RuntimeError("of the inner connector")

    monkeypatch.setattr(Inner, "build_connector_meta", fail)

    with pytest.raises(RuntimeError, match="of the inner connector"):
        scheduler.build_connector_meta(output())

    assert 0 == scheduler._kvtrail.guard.errors


def test_an_engine_starts_without_a_recorder(connector: Any, caplog: pytest.LogCaptureFixture) -> None:
    """No transport, a setting that cannot be, a configuration of another version: it is logged, and the connector works."""
    broken = config(engine="e", transport="file:///tmp", slots="many")
    strange = config(engine="e", transport="file:///tmp")
    strange.scheduler_config = SimpleNamespace()
    for vllm_config in (config(), broken, strange):
        ours = connector(vllm_config, tree.KVConnectorRole.SCHEDULER, caches())
        ours.on_new_request(Request("a", 4))

        assert ours._kvtrail is None

    assert 3 == sum("nothing is recorded" in line for line in caplog.text.splitlines())


def test_a_guard_says_the_first_error_and_the_last(caplog: pytest.LogCaptureFixture) -> None:
    """A log is not filled by what goes wrong in each step."""
    guard = Guard("test")
    for _ in range(MOST_ERRORS + 50):
        guard.run(lambda: 1 // 0)

    assert MOST_ERRORS == guard.errors
    assert 2 == len(caplog.records)


def test_the_manifest_says_what_is_not_known(connector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version, inner connector and sizes stand in it, and what vLLM does not tell; no path and no name of a model."""
    scheduler, emitter = scheduler_side(connector, monkeypatch)
    ours = scheduler._kvtrail
    ours.declare(vllm_attach.manifest(config(), Sizes(config(), caches()), Inner, ours.tier))
    text = emitter.of(ManifestDeclared)[0].text

    assert all(part in text for part in ('"version": "0.32.0"', '"inner_connector": "Inner"', '"offload_nvme"', "coverage"))
    assert "/x" not in text
