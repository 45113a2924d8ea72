"""The option that names a cluster, for all commands that speak to one."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster

CONFIG = Path("cluster.toml")

ConfigOption: TypeAlias = Annotated[
    Path, typer.Option("--config", "-c", metavar="FILE", help="The cluster file.")
]


def read_config(config: Path) -> Cluster:
    """A cluster to speak to; its keys are for its hosts to read."""
    return load_cluster(config, check_keys=False)
