"""Whether something listens at an endpoint."""

import socket

import pytest

from otlp_receiver import HttpReceiver, refused_endpoint
from turntrace.otel.probe import address_of, is_listening


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://collector:4318/v1/traces", ("collector", 4318)),
        ("collector:4317", ("collector", 4317)),
        ("collector", ("collector", 80)),
        ("https://api.example.com", ("api.example.com", 443)),
        ("grpc://collector", ("collector", 4317)),
        ("http://[::1]:4318", ("::1", 4318)),
        ("", ("localhost", 80)),
    ],
)
def test_the_address_of_an_endpoint(endpoint, address):
    """Host and port, with the scheme's port where none is given."""
    assert address_of(endpoint) == address


def test_a_receiver_listens():
    """A connection that is accepted is enough."""
    with HttpReceiver() as receiver:
        assert is_listening(receiver.endpoint)


def test_nobody_listens_at_a_closed_port():
    """A refusal is no error but an answer."""
    assert not is_listening(refused_endpoint())


def test_a_host_that_says_nothing_takes_no_longer_than_the_timeout(monkeypatch):
    """The time to wait is passed on, and a timeout is an answer too."""
    asked = []

    def slow(address, timeout):
        asked.append((address, timeout))
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", slow)
    assert not is_listening("http://far:4318", 0.1)
    assert asked == [(("far", 4318), 0.1)]
