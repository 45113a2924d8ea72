"""Cluster files: what they say arrives, and every complaint names the file and the line."""

from pathlib import Path

import pytest

from ordercast.catalogue import protocol_names
from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster, HostSpec, MetricsSpec, SecuritySpec, TransportSpec
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.key_file import create_keys
from ordercast.net.links.datagram import DATAGRAM_BYTES_MAX
from ordercast.net.transports.address import Address, parse_address
from tests.live.cluster_files import write_cluster
from tests.tidy import ROOT

HEAD = 'protocol = "unordered"\n[groups]\norders = 2\n'
HOSTS = "".join(f'[[host]]\nid = {host}\naddress = "127.0.0.1:{7400 + host}"\n' for host in range(3))
"""Lines 4 to 12 after HEAD."""

EVERYTHING = """
name = "shop"
protocol = "hydra"
senders = 2
colocated = true
bundle_bytes = 1000
inbox_bytes = 1000000
trace = false
folder = "data"

[options]
sequencers = 1
spares = 1
replicas = 1
consensus = { window = 8 }

[groups]
orders = 2
audit = 1

[transport]
kind = "multicast"
datagram_bytes = 9000
multicast_address = "239.255.7.7"
multicast_port = 7555
busy_poll = true
buffer_bytes = 1000000
window_bytes = 100000

[security]
mode = "plaintext"
key_file = "secret/other.key"
allow_plaintext_on_network = true

[metrics]
port = 9400
address = "0.0.0.0"

[[host]]
id = 6
address = "10.0.0.7:7400"
start = false
roles = ["sequencer"]
transport = "tcp"

[[host]]
id = 0
address = "10.0.0.1:7400"
roles = ["sender", "receiver"]

[[host]]
id = 1
address = "10.0.0.2:7400"

[[host]]
id = 2
address = "10.0.0.3:7400"

[[host]]
id = 5
address = "10.0.0.6:7400"

[[host]]
id = 7
address = "one.example:7400"
"""


def load(folder: Path, text: str, *, key: bool = True) -> Cluster:
    path = folder / "cluster.toml"
    path.write_text(text)
    if key:
        create_keys(folder / "cluster.key", force=True)
    return load_cluster(path)


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(LocalError) as caught:
        load(folder, text)
    said = str(caught.value)
    assert said.startswith(str(folder / "cluster.toml"))
    return said.removeprefix(str(folder / "cluster.toml"))


def test_everything_that_a_file_says_arrives(tmp_path: Path) -> None:
    cluster = load(tmp_path, EVERYTHING)
    assert (cluster.name, cluster.protocol, cluster.senders, cluster.colocated) == ("shop", "hydra", 2, True)
    assert (cluster.bundle_bytes, cluster.inbox_bytes, cluster.trace) == (1000, 1_000_000, False)
    assert cluster.folder == tmp_path / "data"
    assert cluster.groups == {"orders": (0, 1), "audit": (2,)}
    transport = cluster.transport
    assert (transport.kind, transport.datagram_bytes, transport.busy_poll) == ("multicast", 9000, True)
    assert (transport.multicast_address, transport.multicast_port) == ("239.255.7.7", 7555)
    assert (transport.buffer_bytes, transport.window_bytes) == (1_000_000, 100_000)
    assert cluster.security.key_file == tmp_path / "secret" / "other.key"
    assert cluster.metrics_address(2) == Address("0.0.0.0", 9402)
    assert [host.id for host in cluster.hosts] == [0, 1, 2, 5, 6, 7]
    spare = cluster.find_host("sequencer-1")
    assert (spare.id, spare.start, spare.transport) == (6, False, "tcp")
    assert cluster.host(0).roles == ("receiver", "sender")
    assert cluster.host(7).address == Address("one.example", 7400)


def test_a_short_file_gets_the_defaults(tmp_path: Path) -> None:
    cluster = load(tmp_path, HEAD + HOSTS)
    assert cluster.name == "cluster"
    assert cluster.folder == tmp_path / ".ordercast" / "cluster"
    assert cluster.security.mode == "sealed"
    assert cluster.transport.datagram_bytes == 60_000
    assert cluster.metrics_address(0) is None
    assert cluster.plan().protocol == "unordered"
    assert cluster.socket_path(2) == cluster.folder / "run" / "2.sock"


def test_datagrams_on_a_network_fit_into_its_frames(tmp_path: Path) -> None:
    cluster = load(tmp_path, HEAD + HOSTS.replace("127.0.0.1:7402", "192.168.1.9:7402"))
    assert cluster.transport.datagram_bytes == 1_400
    assert not cluster.loopback


def test_groups_may_list_their_receivers(tmp_path: Path) -> None:
    text = HEAD.replace("orders = 2", "orders = [0, 1]\nmore = [1]") + HOSTS
    assert load(tmp_path, text).groups == {"orders": (0, 1), "more": (1,)}


def test_the_page_shows_a_file_that_works_and_names_every_key(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "live.md").read_text()
    path = tmp_path / "cluster.toml"
    path.write_text(page.partition("```toml\n")[2].partition("```")[0])
    assert load_cluster(path, check_keys=False).find_host("sequencer-2").start is False
    top = {"name", "protocol", "senders", "colocated", "bundle_bytes", "inbox_bytes", "trace", "folder"}
    tables = {
        "[transport] ": TransportSpec,
        "[security] ": SecuritySpec,
        "[metrics] ": MetricsSpec,
        "[[host]] ": HostSpec,
    }
    keys = {f"{table}{key}" for table, spec in tables.items() for key in spec.__struct_fields__}
    for key in top | keys | {"[options]", "[groups]"}:
        assert f"| `{key}` |" in page or f"| `{key}`, `clients` |" in page


SEQUENCED = ("hydra", "hydra_paxos", "nopaxos")
"""With two sequencers, or one and a spare, and three replicas of their service."""
SHARDED = ("eris", "hydra_txn")
"""The same with three coordinators."""


@pytest.mark.parametrize("protocol", protocol_names())
def test_every_protocol_can_be_a_cluster(tmp_path: Path, protocol: str) -> None:
    count = 11 if protocol in SHARDED else 8 if protocol in SEQUENCED else 6 if protocol == "atoms" else 3
    hosts = tuple(range(count))
    cluster = load_cluster(write_cluster(tmp_path, protocol=protocol, hosts=hosts))
    assert {node.host for node in cluster.plan().nodes} == set(hosts)


COMPLAINTS = {
    "not TOML": ("a = = 1", ": not TOML: "),
    "no protocol": ("[groups]\na = 1", ": object missing required field `protocol`"),
    "wrong protocol": (
        HEAD.replace("unordered", "nobody") + HOSTS,
        ", line 1: protocol: no protocol 'nobody'",
    ),
    "unknown key": (
        "colour = 1\n" + HEAD,
        ", line 1: colour: unknown key; there are: protocol, name, senders",
    ),
    "unknown key below": (
        HEAD + "[transport]\nspeed = 1\n" + HOSTS,
        ", line 5: transport.speed: unknown key; there are: kind, datagram_bytes",
    ),
    "unknown key of a host": (
        HEAD + HOSTS + "port = 1",
        ", line 13: host[2].port: unknown key; there are: id, address, start, roles, transport",
    ),
    "wrong type": ("senders = 'two'\n" + HEAD + HOSTS, ", line 1: senders: expected `int`, got `str`"),
    "wrong name": ("name = '../x'\n" + HEAD + HOSTS, ", line 1: name: expected `str` matching regex"),
    "wrong kind": (
        HEAD + "[transport]\nkind = 'dup'\n" + HOSTS,
        ", line 5: transport.kind: invalid enum value 'dup'; there are: multicast, tcp, udp",
    ),
    "wrong option": (
        HEAD + "[options]\nwidow = 1\n" + HOSTS,
        ", line 5: options.widow: unknown key; there are: window (of unordered)",
    ),
    "option of a wrong type": (
        HEAD + "[options]\nwindow = 'x'\n" + HOSTS,
        ", line 5: options.window: expected `int`, got `str` (of unordered)",
    ),
    "no groups": ('protocol = "unordered"\n[groups]', ", line 2: groups: name at least one group"),
    "mixed groups": (
        HEAD + "more = [0]\n" + HOSTS,
        ", line 3: groups.orders: give all groups a count, or all groups a list",
    ),
    "gap between receivers": (
        HEAD.replace("= 2", "= [0, 2]") + HOSTS,
        ", line 2: groups: the receivers of a deployment must be numbered from 0 without gaps",
    ),
    "empty group": (
        HEAD.replace("= 2", "= [0, 1]\naudit = []") + HOSTS,
        ", line 2: groups: group 1 has no receiver; unordered needs one in every group",
    ),
    "no hosts": (HEAD, ": no [[host]] for: 0 (receiver), 1 (receiver), 2 (sender); add one"),
    "missing host": (HEAD + HOSTS[: HOSTS.rindex("[[")], ", line 7: host[1]: no [[host]] for: 2 (sender)"),
    "host twice": (
        HEAD + HOSTS.replace("id = 2", "id = 1"),
        ", line 11: host[2].id: another host already has the id 1",
    ),
    "host not in the plan": (
        HEAD + HOSTS.replace("id = 2", "id = 9"),
        ", line 11: host[2].id: the plan has no host 9; its hosts are: 0, 1, 2",
    ),
    "one address twice": (
        HEAD + HOSTS.replace("7402", "7400"),
        ", line 12: host[2].address: host 0 already has the address 127.0.0.1:7400",
    ),
    "two families": (
        HEAD + HOSTS.replace("127.0.0.1:7402", "[::1]:7402"),
        ", line 12: host[2].address: IPv4 and IPv6 addresses cannot be mixed",
    ),
    "wrong roles": (
        HEAD + HOSTS + "roles = ['receiver']",
        ", line 13: host[2].roles: does not match the plan; the roles of host 2 are: sender",
    ),
    "wrong address": (
        HEAD + HOSTS.replace("127.0.0.1:7402", "127.0.0.1"),
        ", line 12: host[2].address: '127.0.0.1' is not an address: expected HOST:PORT",
    ),
    "no key": (
        HEAD + "[security]\nkey_file = 'no.key'\n" + HOSTS,
        ", line 5: security.key_file: {folder}/no.key: cannot be read: No such file",
    ),
    "plaintext on a network": (
        HEAD + "[security]\nmode = 'plaintext'\n" + HOSTS.replace("127.0.0.1:7402", "10.0.0.1:7402"),
        ", line 5: security.mode: the network can reach host 2 at 10.0.0.1:7402",
    ),
    "datagrams that no host would take": (
        HEAD + f"[transport]\ndatagram_bytes = {DATAGRAM_BYTES_MAX + 1}\n" + HOSTS,
        ", line 5: transport.datagram_bytes: ",
    ),
    "small datagrams": (
        HEAD + "[transport]\ndatagram_bytes = 100\n" + HOSTS,
        ", line 5: transport.datagram_bytes: must be at least 576 bytes",
    ),
    "no multicast address": (
        HEAD + "[transport]\nkind = 'multicast'\nmulticast_address = '10.0.0.1'\n" + HOSTS,
        ", line 6: transport.multicast_address: '10.0.0.1' is not a multicast address",
    ),
    "needless multicast address": (
        HEAD + "[transport]\nmulticast_address = '239.255.1.2'\n" + HOSTS,
        ', line 5: transport.multicast_address: is only allowed with kind = "multicast"',
    ),
    "port of metrics": (
        HEAD + "[metrics]\nport = 65535\n" + HOSTS,
        ", line 5: metrics.port: host 2 would get port 65537",
    ),
}


@pytest.mark.parametrize("case", COMPLAINTS)
def test_a_complaint_names_file_and_line(tmp_path: Path, case: str) -> None:
    text, said = COMPLAINTS[case]
    assert complaint(tmp_path, text).startswith(said.format(folder=tmp_path))


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    load(tmp_path, HEAD + HOSTS)
    (tmp_path / "cluster.key").chmod(0o640)
    with pytest.raises(LocalError, match=r"other users may read it \(mode 640\); run chmod 600"):
        load(tmp_path, HEAD + HOSTS, key=False)


def test_plaintext_on_a_network_can_be_insisted_on(tmp_path: Path) -> None:
    security = "[security]\nmode = 'plaintext'\nallow_plaintext_on_network = true\n"
    cluster = load(tmp_path, HEAD + security + HOSTS.replace("127.0.0.1:7402", "10.0.0.1:7402"), key=False)
    assert cluster.security.mode == "plaintext"


def test_a_host_is_found_by_id_or_by_role(tmp_path: Path) -> None:
    cluster = load(tmp_path, HEAD + HOSTS)
    assert cluster.find_host("1").id == 1
    assert cluster.find_host("sender-0").id == 2
    with pytest.raises(LocalError, match=r"no host 'sender-1'; .* receiver-0, receiver-1, sender-0"):
        cluster.find_host("sender-1")
    with pytest.raises(LocalError, match="no host 7; the hosts are: 0, 1, 2"):
        cluster.find_host("7")


@pytest.mark.parametrize(
    "text",
    ["", "7400", "host", "host:", "host:0", "host:65536", "host:-1", "host:x", ":7400", "::1:7400", "[::1]",
     "[10.0.0.1]:7400", "0.0.0.0:7400", "[::]:7400", "239.1.1.1:7400", "a b:7400", "-a:7400", "1.2.3:7400"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(LocalError, match="is not an address"):
        parse_address(text)


@pytest.mark.parametrize("text", ["10.0.0.1:7400", "[::1]:7400", "localhost:1", "a-b.example:65535"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text


def test_loopback_is_known() -> None:
    inside = ("127.0.0.1", "127.9.9.9", "[::1]", "localhost")
    outside = ("10.0.0.1", "[fe80::1]", "one.example")
    assert all(parse_address(f"{host}:1").loopback for host in inside)
    assert not any(parse_address(f"{host}:1").loopback for host in outside)
