"""The live benchmark of LLFT: the plain TCP that it compares with, and one kill of a primary."""

import socket

import pytest

from benchmarks import llft


def test_the_echo_server_gives_back_whole_messages() -> None:
    message = bytes(range(256)) * 300
    with llft.echo_server(len(message)) as port, socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(2):
            connection.sendall(message)
            assert llft._read(connection, len(message)) == message


def test_a_round_trip_by_plain_tcp_takes_time() -> None:
    assert 1 < llft.tcp_latency(16, 0.3) < 100_000


@pytest.mark.deep
def test_clients_wait_for_the_detection_at_least() -> None:
    found = llft.fail_over(2, 300, 1, 8_000)
    assert found is not None
    view_ms, outage_ms = found
    assert view_ms > 200
    assert outage_ms >= 200
