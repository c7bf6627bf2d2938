"""Clocks that step, and clocks of two hosts that differ."""

import pytest

from core.raws import MS, agent, raw
from turntrace.core.turns import assemble


def turn_of(client, server, *, kinds=("client", "server"), hosts=("a", "b")):
    """A turn with a call to a server that writes spans of its own; (start ms, end ms) of each."""
    spans = [
        agent("r", 0, 1000),
        raw("c", *client, parent="r", kind=kinds[0], resource={"service.name": hosts[0]}),
        raw("s", *server, parent="c", kind=kinds[1], resource={"service.name": hosts[1]}),
    ]
    (turn,) = assemble(spans)
    return turn


def skew_of(turn):
    """What the turn says of clocks."""
    return [(warn.span_ids, warn.message.split()[7]) for warn in turn.warnings if warn.code == "clock_skew"]


def test_r57_a_servers_clock_that_is_ahead():
    """The least that the clocks differ by is told, and the times stay as they were recorded."""
    turn = turn_of((0, 300), (350, 550))
    assert skew_of(turn) == [(("c", "s"), str(250 * MS))]
    server = next(span for span in turn.spans if span.span_id == "s")
    assert (server.start_ns, server.end_ns) == (350 * MS, 550 * MS)


@pytest.mark.parametrize(
    ("client", "server", "more", "skew_ms"),
    [
        ((100, 400), (0, 200), {}, 100),
        ((0, 300), (50, 250), {}, None),
        ((0, 300), (0, 300), {}, None),
        ((0, 300), (100, 500), {}, None),
        ((0, 300), (350, 550), {"hosts": ("a", "a")}, None),
        ((0, 300), (350, 550), {"kinds": ("producer", "consumer")}, None),
        ((0, 300), (350, 550), {"kinds": ("client", "internal")}, None),
    ],
    ids=["behind", "inside", "equal", "outlives", "one process", "a queue", "no server"],
)
def test_only_a_server_that_does_not_fit_tells_of_clocks(client, server, more, skew_ms):
    """A span that may outlive its parent, or has the same clock, says nothing of clocks."""
    expected = [] if skew_ms is None else [(("c", "s"), str(skew_ms * MS))]
    assert skew_of(turn_of(client, server, **more)) == expected
