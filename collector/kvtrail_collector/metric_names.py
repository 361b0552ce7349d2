"""Every metric of the collector: its name is a type, its help is what people read, its unit is in its name."""

from typing import Final, Literal

CounterName = Literal[
    # Rows committed since the start; moves with each commit.
    "kvtrail_events_stored_total",
    # Rows that came again and were left out; moves with retries.
    "kvtrail_events_duplicate_total",
    # Transactions committed with events in them.
    "kvtrail_commits_total",
    # Batches whose commit failed; nothing of them was kept.
    "kvtrail_batches_failed_total",
    # Batches told to come again because the write queue was full.
    "kvtrail_batches_refused_total",
    # Batches that could not be read; label `status` is the answer that the sender got.
    "kvtrail_batches_quarantined_total",
    # Batches whose header named a stage, a reason or a state that this version does not know; they were stored all the same.
    "kvtrail_headers_unknown_total",
    # Events that retention let go since the start: they had been stored, and are no part of `kvtrail_events_dropped`.
    "kvtrail_events_expired_total",
    # Passes of the sealer that failed; each is tried again.
    "kvtrail_seal_failures_total",
    # Records read from Kafka, those that came again included.
    "kvtrail_kafka_records_total",
    # Records from Kafka that could not be read or stored, and were put aside.
    "kvtrail_kafka_records_quarantined_total",
    # Records put aside that the dead-letter topic did not take; the quarantine table has them.
    "kvtrail_kafka_dead_letters_failed_total",
    # Times that the source went back to the stored offsets because a batch was not stored.
    "kvtrail_kafka_rereads_total",
    # Records that retention took before they were read, by partition; survives restarts; anything but 0 is a loss.
    "kvtrail_kafka_records_expired_total",
]

GaugeName = Literal[
    # Batches that wait for the writer.
    "kvtrail_write_queue_batches",
    # Memory of the batches that wait for the writer.
    "kvtrail_write_queue_bytes",
    # 1 while the writer's thread runs and the database is usable.
    "kvtrail_writer_up",
    # Streams (engine, epoch, rank) ever heard of.
    "kvtrail_streams",
    # Events that nobody can explain, by engine: anything but 0 is an alarm.
    "kvtrail_events_unaccounted",
    # Events declared dropped before they were stored, by engine, stage and reason.
    "kvtrail_events_dropped",
    # Sealed files.
    "kvtrail_sealed_files",
    # Events in sealed files.
    "kvtrail_sealed_events",
    # Size of the sealed files.
    "kvtrail_sealed_bytes",
    # Size of the hot file, without its log.
    "kvtrail_hot_bytes",
    # 1 while brokers answer and records are read, or held back because the store is full.
    "kvtrail_kafka_up",
    # 1 while partitions are paused because the store has as much as it can hold.
    "kvtrail_kafka_paused",
    # Records in the topic that are not stored yet, by partition, as of the last second that brokers answered.
    "kvtrail_kafka_lag_records",
]

HistogramName = Literal[
    # Seconds from the first byte of a batch to its commit, as its sender sees it.
    "kvtrail_ingest_seconds",
    # Seconds from arrival to first token, of the requests in the store that have one; by engine.
    "kvtrail_request_ttft_seconds",
    # Seconds a further token, on average of each request in the store that has one; by engine.
    "kvtrail_request_tpot_seconds",
]

MetricName = CounterName | GaugeName | HistogramName

HELP: Final[dict[MetricName, str]] = {
    "kvtrail_events_stored_total": "Events committed since the start.",
    "kvtrail_events_duplicate_total": "Events that came again and were left out.",
    "kvtrail_commits_total": "Transactions committed with events in them.",
    "kvtrail_batches_failed_total": "Batches whose commit failed; nothing of them was kept.",
    "kvtrail_batches_refused_total": "Batches told to come again because the write queue was full.",
    "kvtrail_batches_quarantined_total": "Batches that could not be read, by the status that their sender got.",
    "kvtrail_write_queue_batches": "Batches that wait for the writer.",
    "kvtrail_write_queue_bytes": "Memory of the batches that wait for the writer.",
    "kvtrail_writer_up": "1 while the writer's thread runs and the database is usable.",
    "kvtrail_streams": "Streams (engine, epoch, rank) ever heard of.",
    "kvtrail_events_unaccounted": "Events that nobody can explain, by engine; anything but 0 is an alarm.",
    "kvtrail_events_dropped": "Events declared dropped before they were stored, by engine, stage and reason.",
    "kvtrail_headers_unknown_total": "Batches whose header named a stage, reason or state that this version does not know.",
    "kvtrail_events_expired_total": "Events that retention let go since the start.",
    "kvtrail_seal_failures_total": "Passes of the sealer that failed; each is tried again.",
    "kvtrail_sealed_files": "Sealed files.",
    "kvtrail_sealed_events": "Events in sealed files.",
    "kvtrail_sealed_bytes": "Size of the sealed files.",
    "kvtrail_hot_bytes": "Size of the hot file, without its log.",
    "kvtrail_kafka_records_total": "Records read from Kafka, those that came again included.",
    "kvtrail_kafka_records_quarantined_total": "Records from Kafka that could not be read or stored, and were put aside.",
    "kvtrail_kafka_dead_letters_failed_total": "Records put aside that the dead-letter topic did not take.",
    "kvtrail_kafka_rereads_total": "Times that the source went back to the stored offsets, a batch not being stored.",
    "kvtrail_kafka_records_expired_total": "Records that Kafka's retention took before they were read, by partition.",
    "kvtrail_kafka_up": "1 while Kafka's brokers answer and records are read, or held back by a full store.",
    "kvtrail_kafka_paused": "1 while partitions are paused because the store has as much as it can hold.",
    "kvtrail_kafka_lag_records": "Records in the topic that are not stored yet, by partition.",
    "kvtrail_ingest_seconds": "Seconds from the first byte of a batch to its commit.",
    "kvtrail_request_ttft_seconds": "Seconds from arrival to first token, of all requests that ever got one, by engine.",
    "kvtrail_request_tpot_seconds": "Seconds a further token, the mean of each request ever stored that has one, by engine.",
}
