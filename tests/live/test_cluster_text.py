"""New cluster files: they are valid for every protocol, and say what was asked for."""

from pathlib import Path

import msgspec
import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.new_cluster import NewCluster
from ordercast.net.transports.address import Address


def written(folder: Path, wanted: NewCluster) -> Cluster:
    path = folder / "cluster.toml"
    path.write_text(wanted.text())
    return load_cluster(path, check_keys=False)


@pytest.mark.parametrize("protocol", protocol_names())
@pytest.mark.parametrize("groups", [1, 2])
def test_a_file_is_written_for_every_protocol(tmp_path: Path, protocol: str, groups: int) -> None:
    cluster = written(tmp_path, NewCluster(protocol=protocol, receivers=2, groups=groups, port=8000))
    assert cluster.protocol == protocol
    assert [len(members) for members in cluster.groups.values()] == [2] * groups
    assert cluster.senders == 2 * groups and cluster.colocated
    assert [spec.address.port for spec in cluster.hosts] == list(range(8000, 8000 + len(cluster.hosts)))
    assert cluster.loopback and cluster.security.mode == "sealed"


def test_the_last_sequencers_are_spare(tmp_path: Path) -> None:
    cluster = written(tmp_path, NewCluster(options={"sequencers": 2, "spares": 2}))
    spare = [name for spec in cluster.hosts if not spec.start for name in cluster.node_names[spec.id]]
    assert spare == ["sequencer-2", "sequencer-3"]


def test_the_last_receivers_of_each_group_are_left_to_applications(tmp_path: Path) -> None:
    cluster = written(tmp_path, NewCluster(groups=2, receivers=3, applications=2, options={"spares": 1}))
    left = [name for spec in cluster.hosts if not spec.start for name in cluster.node_names[spec.id]]
    assert [name for name in left if "receiver" in name] == [f"receiver-{index}" for index in (1, 2, 4, 5)]
    assert left[-1] == "sequencer-2"


def test_what_is_asked_for_is_written(tmp_path: Path) -> None:
    cluster = written(tmp_path, NewCluster(name="shop", senders=2, plaintext=True, options={"sequencers": 1}))
    assert (cluster.name, cluster.senders, cluster.security.mode) == ("shop", 2, "plaintext")
    assert cluster.options == {"sequencers": 1}


def test_the_comments_tell_the_defaults(tmp_path: Path) -> None:
    """A line that somebody uncomments changes nothing but what it says."""
    text = NewCluster().text()
    path = tmp_path / "cluster.toml"
    path.write_text(text)
    default = load_cluster(path, check_keys=False)
    settings = (line.startswith("# [") or " = " in line for line in text.splitlines())
    lines = [
        line.removeprefix("# ") if setting else line
        for line, setting in zip(text.splitlines(), settings, strict=True)
    ]
    assert len(lines) - sum(line in text.splitlines() for line in lines) == 11
    path.write_text("\n".join(lines))
    plain = load_cluster(path, check_keys=False)
    assert plain.metrics_address(0) == Address("127.0.0.1", 9400)
    assert msgspec.structs.replace(plain, metrics=default.metrics) == default


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (NewCluster(protocol="nobody"), "no protocol 'nobody'"),
        (
            NewCluster(protocol="unordered", options={"sequencers": 2}),
            "options.sequencers: unknown key; there",
        ),
        (NewCluster(receivers=0), "at least one group"),
        (NewCluster(receivers=2, applications=3), "0 to 2 receivers of each group"),
        (NewCluster(port=65_530), "8 hosts do not fit from port 65530 on"),
        (NewCluster(port=0), "ports are 1 to 65535"),
    ],
)
def test_what_cannot_be_is_refused(wanted: NewCluster, said: str) -> None:
    with pytest.raises(LocalError, match=said):
        wanted.text()
