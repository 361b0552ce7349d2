"""Real parts (a broker, a browser, a GPU): where one is missing, its tests skip by name, or fail under a flag."""

import os

import pytest

REQUIRE_REAL = "KVTRAIL_REQUIRE_REAL"


def require_real(part: str, found: bool, how: str) -> None:
    """Skip the calling test, naming the part that it needs and how to get it; fail instead under `KVTRAIL_REQUIRE_REAL=1`.

    `how` completes the sentence "…: HOW", as in "install a JRE and unpack Kafka under ~/kafka".
    """
    if found:
        return
    message = f"real part missing: {part}: {how}"
    if os.environ.get(REQUIRE_REAL) == "1":
        pytest.fail(f"{message} ({REQUIRE_REAL}=1 forbids skipping)", pytrace=False)
    pytest.skip(message)
