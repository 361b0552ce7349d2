"""The recording that comes with the package."""

import pytest
from kvtrail_cli.drill.generated.recorded import Recorded
from kvtrail_cli.drill.generated.run import packaged


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    """One healthy run of the reference engine, shortened."""
    return packaged()
