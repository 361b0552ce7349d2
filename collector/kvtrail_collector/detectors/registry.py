"""All detectors of population verdicts, as data. To add one: write its file, name it here, give it a test that fires."""

from typing import Final

from kvtrail_collector.detectors import sched_queue, tier_queue, tier_slow
from kvtrail_collector.verdicts_case import Detector

DETECTORS: Final[tuple[Detector, ...]] = (tier_slow.DETECTOR, tier_queue.DETECTOR, sched_queue.DETECTOR)
