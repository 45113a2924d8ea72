"""A gateway beside a cluster: clients outside call its service by HTTP."""

import asyncio
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ordercast.core import LocalError
from ordercast.net.api.open_calls import OpenCalls
from ordercast.net.cluster.file import load_cluster
from ordercast.net.cluster.open_host import open_host
from ordercast.net.gateway.gateway import FAMILIES, GatewaySpec, run_gateway
from ordercast.net.gateway.site import CallLimits
from ordercast.net.gateway.token_file import create_tokens
from ordercast.net.host.loop import run
from ordercast.net.transports.address import Address
from tests.live.cluster_files import free_ports
from tests.live.gateway_client import Outsider, Told
from tests.live.processes import PATIENCE_S
from tests.live.serving import replicas_of, write_service
from tests.live.test_http_server import write_certificate
from tests.live.test_sync_transaction import ALICE, BOB, write_bank


def spec_for(folder: Path, **more: Any) -> GatewaySpec:
    tokens = folder / "gateway.token"
    if not tokens.exists():
        create_tokens(tokens)
    (port,) = free_ports(1)
    return GatewaySpec(address=Address("127.0.0.1", port), tokens=tokens, **more)


Use = Callable[[OpenCalls, Outsider], Awaitable[None]]


async def beside(file: Path, spec: GatewaySpec, use: Use, ends: list[str] | None = None) -> None:
    """Let a client use a gateway that runs here."""
    ended: list[str] = [] if ends is None else ends
    outsider = Outsider(spec.url, spec.tokens, trusted=spec.certificate)
    with closing(outsider):
        async with run_gateway(load_cluster(file), spec, ended.append) as calls:
            await use(calls, outsider)


def serve(file: Path, spec: GatewaySpec, use: Use) -> None:
    """Let a client use a gateway to a cluster whose replicas run here."""

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), replicas_of(file):
            await beside(file, spec, use)

    run(main())


async def call(outsider: Outsider, path: str, *args: object, **more: str) -> Told:
    return await asyncio.to_thread(outsider.call, path, *args, **more)


def test_operations_are_called_and_answered(tmp_path: Path) -> None:
    async def use(_: OpenCalls, outsider: Outsider) -> None:
        assert (await call(outsider, "orders/put", "a", "5")).result is None
        assert (await call(outsider, "orders/get", "a")).result == "5"
        assert (await call(outsider, "orders/take", "a", key="k")).result == 4
        assert (await call(outsider, "orders/take", "a", key="k")).result == 4
        refused = await call(outsider, "orders/take", "a", 9)
        assert (refused.status, refused.content["error"]) == (422, "a has only 4")
        listed = await asyncio.to_thread(outsider.ask, "GET", "/v1")
        assert [one["name"] for one in listed.content["operations"]] == ["get", "put", "take"]

    serve(write_service(tmp_path), spec_for(tmp_path), use)


def test_requests_that_come_together_travel_together(tmp_path: Path) -> None:
    async def use(calls: OpenCalls, outsider: Outsider) -> None:
        reader, writer = await asyncio.open_connection(*spec.address)
        token = outsider._token
        body = b'["a", "1"]'
        head = f"POST /v1/orders/put HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head.encode() + body) * 200)
        for _ in range(200):
            answer = await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(37)
            assert answer.startswith(b"HTTP/1.1 200 OK")
        writer.close()
        assert calls.host.metrics.operations_answered == 200

    spec = spec_for(tmp_path)
    serve(write_service(tmp_path), spec, use)


def test_each_group_is_a_service_of_its_own(tmp_path: Path) -> None:
    file = write_service(tmp_path, replicas=2)
    file.write_text(file.read_text().replace("orders = 2", "east = 1\nwest = 1"))

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        await call(outsider, "east/put", "a", "1")
        assert (await call(outsider, "east/get", "a")).result == "1"
        assert (await call(outsider, "west/get", "a")).result is None

    serve(file, spec_for(tmp_path), use)


def test_shards_are_one_service(tmp_path: Path) -> None:
    """Whichever of them holds the keys; the path names neither."""

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        assert (await call(outsider, "all/deposit", [ALICE, BOB], 5)).result is None
        assert (await call(outsider, "all/balances", [ALICE, BOB])).result == {ALICE: 5, BOB: 5}
        keyless = await call(outsider, "all/balances", [])
        assert (keyless.status, keyless.content["error"]) == (400, "balances was called without a key")
        strange = await call(outsider, "orders/balances", [ALICE])
        assert (strange.status, strange.content["error"]) == (
            404,
            "there is no group 'orders'; the groups are: all",
        )

    serve(write_bank(tmp_path), spec_for(tmp_path), use)


def test_over_tls(tmp_path: Path) -> None:
    certificate, private_key = tmp_path / "cert.pem", tmp_path / "key.pem"
    write_certificate(certificate, private_key)
    private_key.chmod(0o600)
    spec = spec_for(tmp_path, certificate=certificate, private_key=private_key)
    assert spec.url.startswith("https://")

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        assert (await call(outsider, "orders/get", "a")).result is None

    serve(write_service(tmp_path), spec, use)


def test_files_that_are_no_use_for_tls_are_told_in_words(tmp_path: Path) -> None:
    certificate, private_key = tmp_path / "cert.pem", tmp_path / "key.pem"
    write_certificate(certificate, private_key)
    file = write_service(tmp_path)

    def complaint() -> str:
        spec = spec_for(tmp_path, certificate=certificate, private_key=private_key)

        async def main() -> None:
            async with run_gateway(load_cluster(file), spec, lambda why: None):
                pass

        with pytest.raises(LocalError) as raised:
            run(main())
        return str(raised.value)

    private_key.chmod(0o644)
    assert "other users may read it (mode 644)" in complaint()
    private_key.chmod(0o600)
    certificate.write_text("no certificate")
    assert "cannot be used for TLS" in complaint()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"address": Address("10.1.2.3", 80)}, "10.1.2.3:80 can be reached from other machines: serve TLS"),
        ({"certificate": Path("a")}, "TLS needs both, a certificate and its private key"),
        ({"private_key": Path("a")}, "TLS needs both, a certificate and its private key"),
        ({"give_up_s": float("inf")}, "a time of a gateway is at most 86400 seconds, not inf"),
        ({"limits": CallLimits(silent_s=float("nan"))}, "at most 86400 seconds, not nan"),
        ({"give_up_s": 5.0}, "calls are given up after 5 s, but requests wait for 10 s"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, more: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LocalError, match=complaint):
        GatewaySpec(**{"address": Address("127.0.0.1", 80), "tokens": tmp_path, **more})


def test_a_restarted_gateway_has_another_life_and_has_forgotten_keys(tmp_path: Path) -> None:
    file, lives = write_service(tmp_path), [""]

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        if lives[0]:
            refused = await call(outsider, "orders/put", "a", "2", key="k", life=lives[0])
            assert (refused.status, refused.content["outcome"]) == (412, "not-called")
            assert (await call(outsider, "orders/get", "a")).result == "1"
        told = await call(outsider, "orders/put", "a", "1", key="k")
        assert told.result is None and told.life != lives[0]
        lives[0] = told.life

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), replicas_of(file):
            for _ in range(2):
                await beside(file, spec_for(tmp_path), use)

    run(main())


def test_the_end_answers_requests_under_way(tmp_path: Path) -> None:
    """The replica starts when the gateway already ends: the request that waits for it is answered."""
    file, spec = write_service(tmp_path), spec_for(tmp_path, limits=CallLimits(wait_s=60.0))
    under_way: list[asyncio.Task[Told]] = []

    async def use(calls: OpenCalls, outsider: Outsider) -> None:
        under_way.append(asyncio.create_task(call(outsider, "orders/put", "a", "1")))
        while not calls.host.metrics.messages_submitted:
            await asyncio.sleep(0.01)

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            ending = asyncio.create_task(beside(file, spec, use))
            while not under_way or not await refuses(spec.address):
                await asyncio.sleep(0.02)
            replica = open_host(load_cluster(file), 0)
            await replica.start()
            assert (await under_way[0]).result is None
            await ending
            await replica.stop()

    run(main())


async def refuses(address: Address) -> bool:
    """Whether nobody listens at an address."""
    try:
        _, writer = await asyncio.open_connection(*address)
    except ConnectionError:
        return True
    writer.close()
    return False


def test_a_service_that_is_away_is_told_from_one_that_answers(tmp_path: Path) -> None:
    limits = CallLimits(wait_s=0.3, silent_s=0.1)
    file, spec = write_service(tmp_path), spec_for(tmp_path, give_up_s=0.6, limits=limits)

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        waiting = await call(outsider, "orders/put", "a", "1", key="k")
        assert (waiting.status, waiting.content["outcome"]) == (504, "waiting")
        refused = await call(outsider, "orders/put", "a", "1")
        assert (refused.status, refused.content["outcome"]) == (503, "not-called")
        while (told := await call(outsider, "orders/put", "a", "1", key="k")).content["outcome"] == "waiting":
            assert told.status == 504
        assert (told.status, told.content["outcome"]) == (504, "unknown")
        assert told.content["message"] == "1#0"

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await beside(file, spec, use)

    run(main())


def test_a_client_that_is_told_to_stop_ends_the_gateway(tmp_path: Path) -> None:
    ends: list[str] = []
    file = write_service(tmp_path)

    async def use(calls: OpenCalls, outsider: Outsider) -> None:
        calls.end("the cluster is going down")
        refused = await call(outsider, "orders/get", "a")
        assert (refused.status, refused.content["error"]) == (503, "the cluster is going down")
        health = await asyncio.to_thread(outsider.ask, "GET", "/health")
        assert (health.status, health.content["status"]) == (503, "stopping")

    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S), replicas_of(file):
            await beside(file, spec_for(tmp_path), use, ends)

    run(main())
    assert ends == ["the cluster is going down"]


def test_metrics_are_at_the_endpoint_of_the_host(tmp_path: Path) -> None:
    file = write_service(tmp_path)
    (port,) = free_ports(1)
    file.write_text(file.read_text() + f"[metrics]\nport = {port - 1}\n")

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        for _round in range(3):
            await call(outsider, "orders/put", "a", "1", key="k")
        await call(outsider, "orders/no")
        text = (await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{port}/metrics")).read()
        lines = text.decode().splitlines()
        labels = 'cluster="test",host="1"'
        assert f'ordercast_gateway_requests_total{{status="200",{labels}}} 3' in lines
        assert f'ordercast_gateway_requests_total{{status="404",{labels}}} 1' in lines
        assert f"ordercast_gateway_repeated_total{{{labels}}} 2" in lines
        assert f"ordercast_gateway_keys{{{labels}}} 1" in lines
        assert f"ordercast_gateway_calls{{{labels}}} 0" in lines
        for family in FAMILIES:
            assert f"# TYPE {family.name} {family.kind}" in lines

    serve(file, spec_for(tmp_path), use)


def test_strangers_who_ask_for_its_health_take_no_places(tmp_path: Path) -> None:
    spec = spec_for(tmp_path)

    async def use(_: OpenCalls, outsider: Outsider) -> None:
        assert (await call(outsider, "orders/put", "a", "1")).result is None
        for _round in range(300):
            reader, writer = await asyncio.open_connection(*spec.address)
            writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert (await reader.read()).endswith(b'{"status":"running"}\n')
            writer.close()
        held = [await asyncio.open_connection(*spec.address) for _ in range(300)]
        assert (await call(outsider, "orders/get", "a")).result == "1", "on its old connection"
        for _stranger, writer in held:
            writer.close()

    serve(write_service(tmp_path), spec, use)
