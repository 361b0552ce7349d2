"""How frames come from a shipper to the collector: straight over HTTP, or by a real broker; each over a wire that breaks."""

from pathlib import Path
from typing import Final, Protocol

from kvtrail_cli.demo.broker import LocalBroker
from kvtrail_collector.settings import Settings

from tests.broker import jars, new_topic
from tests.chaos.proxy import Proxy

_HOST: Final = "127.0.0.1"


class Route(Protocol):
    """**Protocol:** a way to a collector, for the life of a world."""

    proxy: Proxy

    @property
    def transport(self) -> str:
        """Where shippers send to."""
        ...

    def settings(self, store: Path, port: int) -> Settings:
        """What the collector is told."""
        ...

    def close(self) -> None:
        """End what is on the way."""
        ...


class HttpRoute:
    """The collector's own port, behind the wire."""

    def __init__(self, port: int) -> None:
        self.proxy = Proxy(port)

    @property
    def transport(self) -> str:
        """The near end of the wire."""
        return f"http://{_HOST}:{self.proxy.port}"

    def settings(self, store: Path, port: int) -> Settings:
        """A store and a port."""
        return Settings(store=str(store), port=port)

    def close(self) -> None:
        """Cut the wire for good."""
        self.proxy.close()


class KafkaRoute:
    """A broker of the world's own. It names the wire as its address, so shippers and collector both speak over it."""

    def __init__(self, folder: Path) -> None:
        self.proxy = Proxy(0)
        self.broker = LocalBroker(jars(), folder, extra={"advertised.listeners": f"PLAINTEXT://{_HOST}:{self.proxy.port}"})
        self.proxy.lead_to(int(self.broker.bootstrap.rpartition(":")[2]))
        self.broker.start()
        self._topic = new_topic(self.broker.bootstrap)

    @property
    def transport(self) -> str:
        """The topic, behind the wire."""
        return f"kafka://{_HOST}:{self.proxy.port}/{self._topic}"

    def settings(self, store: Path, port: int) -> Settings:
        """A store, a port, and the topic to read."""
        bootstrap = f"{_HOST}:{self.proxy.port}"
        return Settings(store=str(store), port=port, kafka_bootstrap=bootstrap, kafka_topic=self._topic)

    def close(self) -> None:
        """Cut the wire and end the broker."""
        self.proxy.close()
        self.broker.stop()
