"""The layers of the project: which package may import which.

A layer is a package below `ordercast`, named by its path: `judge.online` is a layer inside `judge`. A module
belongs to the layer with the longest name that fits. It may import its own layer, and those that its layer is
allowed.
"""

from collections.abc import Mapping

_CONTRACT = frozenset({"core", "testing", "catalogue"})
_COMPONENTS = frozenset(
    {
        "components.application_state",
        "components.consensus",
        "components.cross_shard",
        "components.execution",
        "components.logged_service",
        "components.logged_shards",
        "components.membership",
        "components.network_ordered",
        "components.sampling",
        "components.sequencing_graph",
        "components.ticketing",
    }
)
_PROTOCOLS = frozenset({"protocols", "replication", "transactions"})
_JUDGES = frozenset({"trace", "judge", "judge.finding", "judge.histories", "judge.online", "judge.columns"})
_FILES = frozenset({"java", "toml_file"})
_BELOW_DRIVERS = _CONTRACT | _COMPONENTS | _PROTOCOLS | _FILES | {"trace", "kernel", "services"}
_NET = (
    "net.metrics", "net.transports", "net.http", "net.links", "net.host", "net.cluster", "net.tools",
    "net.api", "net.gateway",
)  # fmt: skip
"""The layers of the live runtime, the lowest first; each may import all below it."""
_BELOW_PIPELINE = _BELOW_DRIVERS | _JUDGES | {"scenario", "sim", "engines.epto", "report"} | frozenset(_NET)
_LAB = frozenset({"lab.bench", "lab.trial", "lab.model"})
_ALL = _BELOW_PIPELINE | _LAB | {"pipeline", "experiments", "cli"}

MAY_IMPORT: Mapping[str, frozenset[str]] = {
    "components": frozenset(),
    "engines": frozenset(),
    "lab": frozenset(),
    "core": frozenset(),
    "testing": frozenset({"core"}),
    "catalogue": frozenset({"core"}),
    "java": frozenset({"core"}),
    "toml_file": frozenset({"core"}),
    "components.consensus": frozenset({"core"}),
    "components.cross_shard": frozenset({"core"})
    | {"components.consensus", "components.execution", "components.network_ordered"},
    "components.execution": frozenset({"core"}),
    "components.logged_service": frozenset({"core", "components.execution", "components.consensus"}),
    "components.logged_shards": frozenset({"core"})
    | {"components.consensus", "components.execution", "components.logged_service"},
    "components.membership": frozenset({"core"}),
    "components.network_ordered": frozenset({"core", "components.consensus", "components.execution"}),
    "components.sampling": frozenset({"core"}),
    "components.sequencing_graph": frozenset({"core"}),
    "components.application_state": frozenset({"core", "components.membership"}),
    "components.ticketing": frozenset({"core", "components.application_state", "components.membership"}),
    "kernel": frozenset({"core"}),
    "services": frozenset({"core"}),
    "trace": frozenset({"core"}),
    "judge.finding": frozenset({"core"}),
    "judge.histories": frozenset({"core", "judge.finding"}),
    "judge.online": frozenset({"core", "trace", "judge.finding"}),
    "judge.columns": frozenset({"core", "trace", "judge.finding"}),
    "judge": frozenset({"core", "trace", "judge.finding", "judge.online", "judge.columns"}),
    "protocols": frozenset({"core", "catalogue"}) | _COMPONENTS,
    "replication": frozenset({"core", "catalogue", "protocols"}) | _COMPONENTS,
    "transactions": frozenset({"core", "catalogue", "protocols", "replication"}) | _COMPONENTS,
    "engines.epto": frozenset({"core", "components.sampling", "protocols", "trace"}),
    "scenario": frozenset({"core", "catalogue", "services", "toml_file", "trace"})
    | {"judge", "judge.histories", "judge.online"},
    "sim": (_BELOW_DRIVERS - {"testing", "java"}) | _JUDGES - {"judge.columns"} | {"scenario"},
    "net": frozenset(),
    **{layer: _BELOW_DRIVERS | frozenset(_NET[:index]) for index, layer in enumerate(_NET)},
    "report": frozenset({"core"}),
    "lab.bench": _BELOW_DRIVERS | _JUDGES | {"scenario"} | frozenset(_NET),
    "lab.trial": _BELOW_DRIVERS | _JUDGES | {"scenario", "report"} | frozenset(_NET),
    "lab.model": _BELOW_DRIVERS | _JUDGES,
    "pipeline": _BELOW_PIPELINE,
    "experiments": _BELOW_PIPELINE | {"pipeline"},
    "cli": _ALL,
}

PURE = frozenset({"core", "judge.finding", "judge.histories", "judge.online"}) | _COMPONENTS | _PROTOCOLS
"""Where the same inputs must give the same outputs, so nothing of the world may be asked."""

PEERS = frozenset({"protocols", "replication", "transactions"})
"""Layers whose packages do not import each other."""

APART = PEERS | {"judge.online", "judge.columns"}
"""Layers whose packages have names of their own for things, which are those of their siblings at times."""


def layer_of(name: str) -> str:
    """The layer of a module; its first package where no layer fits, and nothing outside of `ordercast`."""
    parts = name.split(".")
    if parts[0] != "ordercast" or len(parts) < 2:
        return ""
    paths = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
    return next((path for path in paths if path in MAY_IMPORT), parts[1])
