"""`ordercast gateway`: serve the operations of a replicated service by HTTP."""

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ordercast.cli.config import CONFIG, ConfigOption, read_config
from ordercast.cli.output import console, print_json
from ordercast.core import LocalError
from ordercast.net.cluster.cluster import Cluster
from ordercast.net.gateway.gateway import GIVE_UP_S, HTTP_LIMITS, GatewaySpec, run_gateway
from ordercast.net.gateway.site import CallLimits
from ordercast.net.gateway.token_file import create_tokens
from ordercast.net.host.loop import run
from ordercast.net.transports.address import parse_address

ADDRESS = "127.0.0.1:9300"
TOKENS = "gateway.token"
LIMITS = CallLimits()
CANNOT_GO_ON = 2
"""Exit code if the host of the gateway cannot go on."""


def gateway(
    address: Annotated[
        str, typer.Option(help="Address to serve. Other than loopback only with TLS.", metavar="HOST:PORT")
    ] = ADDRESS,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the tokens that clients may send, one a line. Default: gateway.token beside the"
            " cluster file, which is made with a new token if it does not exist.",
            metavar="FILE",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Certificate chain (PEM): serve HTTPS.", metavar="FILE")
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option(help="Private key of the certificate (PEM).", metavar="FILE")
    ] = None,
    host: Annotated[
        int | None, typer.Option(help="Host of the client. Default: the first that nobody runs.", metavar="N")
    ] = None,
    wait: Annotated[
        float, typer.Option(help="Seconds that a request waits for the answer of the service.", min=0.01)
    ] = LIMITS.wait_s,
    give_up: Annotated[
        float, typer.Option(help="Seconds after which a call without an answer is given up.", min=0.01)
    ] = GIVE_UP_S,
    silence: Annotated[
        float,
        typer.Option(help="Seconds without any answer after which calls are refused at once.", min=0.01),
    ] = LIMITS.silent_s,
    keep: Annotated[
        float,
        typer.Option(help="Seconds that the answer to a request with an Idempotency-Key is kept.", min=0),
    ] = LIMITS.keep_s,
    keys: Annotated[
        int, typer.Option(help="Requests with an Idempotency-Key that are kept at most.", min=1)
    ] = LIMITS.keys,
    calls: Annotated[int, typer.Option(help="Calls under way at most.", min=1)] = LIMITS.calls,
    connections: Annotated[int, typer.Option(help="Connections at most.", min=1)] = HTTP_LIMITS.connections,
    body_bytes: Annotated[
        int, typer.Option(help="Bytes of the body of a request at most.", min=1, max=64 << 20)
    ] = HTTP_LIMITS.body_bytes_max,
    config: ConfigOption = CONFIG,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object when it is ready.")] = False,
) -> int:
    """Serve the operations of a replicated service by HTTP and JSON, until Ctrl-C or SIGTERM.

    The gateway is for programs that are not in Python or not on a machine of the cluster. It runs one of the
    cluster's clients, so one must be free. It serves all groups:

    GET /v1 lists the operations; POST /v1/GROUP/OPERATION calls one, with its arguments as a JSON object or
    array in the body. Every request needs a token: [bold]Authorization: Bearer TOKEN[/]. A request with an
    [bold]Idempotency-Key[/] may be repeated, and is executed once as long as this gateway runs and keeps the
    key.

    At the end it takes no more requests, answers those under way, and exits with code 0; with 2 if its host
    could not go on.

    [bold]Examples[/]

    ordercast gateway

    ordercast gateway --address 10.0.0.5:9300 --certificate server.pem --private-key server.key
    """
    cluster = read_config(config)
    if not cluster.service:
        raise LocalError(f"{cluster.file}: the cluster has no service; it orders messages: ordercast send")
    spec = GatewaySpec(
        address=parse_address(address),
        tokens=token_file or cluster.file.parent / TOKENS,
        certificate=certificate,
        private_key=private_key,
        host=host,
        give_up_s=give_up,
        http=msgspec.structs.replace(HTTP_LIMITS, connections=connections, body_bytes_max=body_bytes),
        limits=CallLimits(calls=calls, wait_s=wait, silent_s=silence, keep_s=keep, keys=keys),
    )
    if token_file is None and not spec.tokens.exists():
        create_tokens(spec.tokens)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s gateway: %(message)s"
    )
    return int(run(_serve(cluster, spec, json)))


async def _serve(cluster: Cluster, spec: GatewaySpec, json: bool) -> int:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)

    def on_end(why: str) -> None:
        logging.getLogger("ordercast").warning("stops: %s", why)
        stopping.set()

    async with run_gateway(cluster, spec, on_end) as calls:
        _tell(cluster, spec, calls.host.host, json)
        await stopping.wait()
    return 0 if calls.host.failure is None else CANNOT_GO_ON


def _tell(cluster: Cluster, spec: GatewaySpec, host: int, json: bool) -> None:
    if json:
        print_json({"url": spec.url, "service": cluster.service, "host": host, "tokens": str(spec.tokens)})
        sys.stdout.flush()
        return
    text = f"serves {cluster.service} at {spec.url} as host {host}; clients send a token of {spec.tokens}"
    console.print(text, markup=False, soft_wrap=True)
