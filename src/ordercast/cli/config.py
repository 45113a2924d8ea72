"""The option `--config` of all commands that talk to a cluster, and the parser of `--option NAME=VALUE`."""

from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer

from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster

CONFIG = Path("cluster.toml")

ConfigOption: TypeAlias = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The cluster file.")
]


def read_config(config: Path) -> Cluster:
    """Load a cluster to talk to. The keys are not checked: only its hosts read them."""
    return load_cluster(config, check_keys=False)


def parse_options(texts: list[str]) -> dict[str, object]:
    """Options of a protocol, from texts such as ``window=64``."""
    options: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise LocalError(f"--option takes NAME=VALUE, not {text}")
        try:
            options[name] = msgspec.json.decode(value)
        except msgspec.DecodeError:
            options[name] = value
    return options
