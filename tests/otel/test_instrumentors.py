"""Which instrumentation of a library starts when several are installed."""

from importlib.metadata import EntryPoint

import pytest

from turntrace.otel.instrumentors import GROUP, Instrumentor, installed, judged, loaded


class Package:
    """A distribution as importlib.metadata shows it."""

    def __init__(self, name, requires=()):
        self.name = name
        self.version = "1.0"
        self.requires = list(requires)


def point(package, name="openai", requires=(), value="somewhere:Instrumentor"):
    """An entry point of ``package``; None for one without a package."""
    entry = EntryPoint(name=name, value=value, group=GROUP)
    return entry if package is None else entry._for(Package(package, requires))


OFFICIAL = "opentelemetry-instrumentation-genai-openai"
OLD_OFFICIAL = "opentelemetry-instrumentation-openai-v2"
OPENLLMETRY = "opentelemetry-instrumentation-openai"
OPENINFERENCE = "openinference-instrumentation-openai"


@pytest.mark.parametrize(
    ("packages", "starts"),
    [
        ([OPENINFERENCE, OPENLLMETRY, OLD_OFFICIAL, OFFICIAL], OFFICIAL),
        ([OPENINFERENCE, OPENLLMETRY, OLD_OFFICIAL], OLD_OFFICIAL),
        ([OPENINFERENCE, OPENLLMETRY], OPENLLMETRY),
        ([OPENINFERENCE], OPENINFERENCE),
    ],
)
def test_one_of_the_families_starts(packages, starts):
    """Of instrumentations of one name the official one starts, then OpenLLMetry's, then OpenInference's."""
    found = judged(point(package) for package in packages)

    assert [one.package for one in found if one.verdict == "starts"] == [starts]
    assert {one.reason for one in found if one.verdict == "twin"} <= {starts}
    assert len(found) == len(packages)


def test_one_that_cannot_start_leaves_the_place_to_the_next():
    """An official instrumentation whose library is missing does not keep another one from starting."""
    needs = ['no-such-library>=9; extra == "instruments"', "other-thing"]
    found = judged([point(OFFICIAL, requires=needs), point(OPENINFERENCE)])

    assert [(one.package, one.verdict) for one in found] == [
        (OFFICIAL, "conflict"),
        (OPENINFERENCE, "starts"),
    ]
    assert "no-such-library" in found[0].reason


def test_different_names_do_not_concern_one_another():
    """Instrumentations of different libraries all start."""
    found = judged(
        [point(OFFICIAL), point("opentelemetry-instrumentation-httpx", name="httpx"), point(None, name="x")]
    )

    assert {one.verdict for one in found} == {"starts"}
    assert {one.package: one.version for one in found}[""] == ""


def test_disabled_ones_do_not_start():
    """The names of OTEL_PYTHON_DISABLED_INSTRUMENTATIONS, or a star for all of them."""
    points = [point(OFFICIAL), point("opentelemetry-instrumentation-httpx", name="httpx")]

    assert [one.verdict for one in judged(points, frozenset({"openai"}))] == ["starts", "disabled"]
    assert [one.verdict for one in judged(points, frozenset({"*"}))] == ["disabled", "disabled"]


def test_the_installed_ones_are_listed():
    """This Python has the instrumentation of threads."""
    by_name = {one.name: one for one in installed()}

    assert by_name["threading"].package == "opentelemetry-instrumentation-threading"
    assert loaded(by_name["threading"]).verdict == "starts"


def test_a_library_that_only_the_code_names_is_found_missing(monkeypatch):
    """A package for two libraries starts for the one that is there, not for the other."""
    from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor

    needs = ("no-such-library >= 1",)
    monkeypatch.setattr(HTTPX2ClientInstrumentor, "instrumentation_dependencies", lambda self: needs)
    by_name = {one.name: loaded(one) for one in installed()}

    assert by_name["httpx"].verdict == "starts"
    assert by_name["httpx2"].verdict == "conflict"
    assert "no-such-library" in by_name["httpx2"].reason


def test_code_that_cannot_be_loaded_is_a_conflict():
    """An instrumentation whose module is broken does not start, and the reason is given."""
    (broken,) = judged([point(OFFICIAL, value="no_such_module_anywhere:X")])

    assert loaded(broken).verdict == "conflict"
    assert "no_such_module_anywhere" in loaded(broken).reason


def test_only_those_that_would_start_are_loaded():
    """A twin stays a twin, unloaded."""
    twin = Instrumentor(
        name="x",
        package="p",
        version="1",
        verdict="twin",
        reason="q",
        entry_point=point("p", value="no_module:X"),
    )

    assert loaded(twin) is twin
