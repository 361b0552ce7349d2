"""Metrics that are read when somebody asks: one value, or one for each combination of labels."""

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kvtrail_collector.metric_names import HELP, CounterName, GaugeName


def counter(name: CounterName, value: int) -> Metric:
    """One count that only grows."""
    return CounterMetricFamily(name, HELP[name], value=value)


def gauge(name: GaugeName, value: int) -> Metric:
    """One level."""
    return GaugeMetricFamily(name, HELP[name], value=value)


def labelled(name: GaugeName, labels: list[str], values: Mapping[tuple[str, ...], int]) -> Metric:
    """One level for each combination of labels."""
    family = GaugeMetricFamily(name, HELP[name], labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family


def labelled_counter(name: CounterName, labels: list[str], values: Mapping[tuple[str, ...], int]) -> Metric:
    """One count that only grows, for each combination of labels."""
    family = CounterMetricFamily(name, HELP[name], labels=labels)
    for key, value in values.items():
        family.add_metric(list(key), value)
    return family
