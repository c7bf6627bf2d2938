"""Errors say what is wrong, where, and the way out."""

import pickle

import pytest

from turntrace import errors
from turntrace.errors import ContractError, MissingExtraError, TraceReadError, TraceWriteError, TurntraceError


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_one_of_ours(name):
    """One except clause catches all of them."""
    assert issubclass(getattr(errors, name), TurntraceError)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ({}, "no turn"),
        ({"path": "t.ndjson"}, "t.ndjson: no turn"),
        ({"path": "t.ndjson", "line": 3}, "t.ndjson:3: no turn"),
        ({"line": 3, "offset": 9}, "<input>:3: no turn"),
    ],
)
def test_a_read_error_says_where(where, text):
    """File and line as far as they are known, as compilers write them; the offset is an attribute."""
    error = TraceReadError("no turn", **where)
    assert str(error) == text
    assert (error.path, error.line, error.offset) == (
        where.get("path", ""),
        where.get("line"),
        where.get("offset"),
    )


def test_a_contract_error_names_its_code():
    """The code is in the message and an attribute; it is a read error."""
    error = ContractError("bad_json_line", "no JSON", path="t", line=2, offset=7)
    assert str(error) == "t:2: bad_json_line: no JSON"
    assert (error.code, error.line, error.offset) == ("bad_json_line", 2, 7)
    assert isinstance(error, TraceReadError)


def test_a_write_error_says_the_path_and_the_reason():
    """Both are attributes too."""
    error = TraceWriteError("/x/t", "Permission denied")
    assert str(error) == "cannot write the trace to /x/t: Permission denied"
    assert (error.path, error.reason) == ("/x/t", "Permission denied")


def test_a_missing_extra_says_how_to_install_it():
    """The command to type is in the message."""
    error = MissingExtraError("comparison", "bench")
    assert str(error) == "comparison needs an optional package: pip install 'turntrace[bench]'"
    assert (error.feature, error.extra) == ("comparison", "bench")


@pytest.mark.parametrize(
    "error",
    [
        TurntraceError("plain"),
        ContractError("bad_json_line", "no JSON", path="t", line=2, offset=7),
        TraceWriteError("out.ndjson", "no space left"),
        MissingExtraError("gRPC", "grpc"),
    ],
)
def test_every_error_survives_a_process_pool(error):
    """Message and attributes come back as they went."""
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301 - bytes made in this line
    assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))
