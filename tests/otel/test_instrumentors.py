"""Which instrumentation of a library starts when several are installed."""

from importlib.metadata import EntryPoint

import pytest

from turntrace.otel import instrumentors
from turntrace.otel import sources as source_module
from turntrace.otel.instrumentors import (
    GROUP,
    Instrumentor,
    disabled_names,
    installed,
    judged,
    loaded,
    native,
)
from turntrace.otel.sources import ADAPTERS, sources, start_adapters


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


def test_an_sdk_that_makes_spans_itself_has_no_instrumentation():
    """Its instrumentations would count every call twice; the reason says beside what."""
    found = judged(
        [point(OFFICIAL), point(OPENINFERENCE)], own_spans={"openai": "the spans of openai itself"}
    )

    assert {(one.verdict, one.reason) for one in found} == {("twin", "the spans of openai itself")}


@pytest.mark.parametrize(
    ("requires", "env", "expected"),
    [
        (["opentelemetry-api<2"], {}, ["anthropic"]),
        (["opentelemetry-api<2"], {"ANTHROPIC_OPEN_TELEMETRY": "False"}, []),
        (['opentelemetry-api<2; extra == "otel"', "httpx"], {}, []),
        (None, {}, []),
    ],
)
def test_sdks_that_make_spans_are_known_by_what_they_need(monkeypatch, requires, env, expected):
    """A version that needs OpenTelemetry makes spans, unless its own variable says no."""

    def distribution(name):
        if name != "anthropic" or requires is None:
            raise instrumentors.PackageNotFoundError
        return Package(name, requires)

    monkeypatch.setattr(instrumentors, "distribution", distribution)

    assert list(native(env)) == expected


@pytest.fixture
def sdks(monkeypatch):
    """Both SDKs, as importlib.metadata shows them; anthropic makes no spans unless told."""

    def make(*native_names):
        monkeypatch.setattr(source_module, "native", lambda env=None: dict.fromkeys(native_names, "itself"))
        monkeypatch.setattr(source_module, "_version", {"openai": "3.0", "anthropic": "2.0"}.get)

    return make


def kinds(env, points, *, runs=lambda _: True, own=()):
    """SDK and kind of source, with these instrumentations installed."""
    found = judged(points, disabled_names(env), dict.fromkeys(own, "itself"))
    return {one.sdk: (one.kind, one.package) for one in sources(env, found, runs)}


def test_native_spans_go_before_everything(sdks):
    """Whatever is installed beside them."""
    sdks("anthropic", "openai")

    assert kinds({}, [point(OFFICIAL)], own=["openai"]) == {
        "anthropic": ("native", ""),
        "openai": ("native", ""),
    }


def test_an_installed_instrumentation_goes_before_the_adapter(sdks):
    """For its SDK; the other one gets the adapter."""
    sdks()

    assert kinds({}, [point(OPENINFERENCE), point(OFFICIAL)]) == {
        "anthropic": ("adapter", ""),
        "openai": ("instrumentation", OFFICIAL),
    }


def test_one_that_did_not_start_leaves_it_to_the_adapter(sdks):
    """So that no call goes unseen."""
    sdks()

    assert kinds({}, [point(OFFICIAL)], runs=lambda _: False)["openai"] == ("adapter", "")


def test_a_disabled_name_has_no_source(sdks):
    """The variable means our adapter too."""
    sdks()
    env = {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "openai"}

    assert kinds(env, [point(OFFICIAL)]) == {"anthropic": ("adapter", ""), "openai": ("none", "")}


def test_a_version_that_the_adapter_does_not_know(sdks, monkeypatch):
    """It is left alone, and the reason is the version."""
    sdks()

    class Adapter:
        def instrumentation_dependencies(self):
            return ("openai >= 999",)

    monkeypatch.setattr(source_module, "_adapter", lambda name: Adapter())
    reasons = {one.sdk: one.reason for one in sources({}, ())}

    assert "999" in reasons["openai"]


def test_an_sdk_without_any_source(sdks, monkeypatch):
    """There is no adapter for it."""
    sdks()
    monkeypatch.setattr(source_module, "_version", lambda name: "1.0" if name == "mcp" else None)

    assert kinds({}, []) == {"mcp": ("none", "")}


class Started:
    """An adapter that notes how it was started."""

    def __init__(self, log, name):
        self.log, self.name = log, name

    def instrumentation_dependencies(self):
        return ()

    def instrument(self, **options):
        self.log.append((self.name, options["attempts"]))


@pytest.mark.parametrize("has_http", [True, False])
def test_adapters_start_where_nothing_else_does(sdks, monkeypatch, has_http):
    """With spans for attempts unless the HTTP client's instrumentation makes them."""
    sdks("anthropic")
    log = []
    monkeypatch.setattr(source_module, "_adapter", lambda name: Started(log, name))
    monkeypatch.setattr(source_module, "_runs", lambda one: has_http)
    start_adapters()

    assert log == [("openai", not has_http)]


def test_adapters_that_cannot_start_are_said(monkeypatch, caplog):
    """The agent goes on; its own errors stay its own."""

    def broken(*arguments):
        raise RuntimeError("secret")

    monkeypatch.setattr(source_module, "installed", broken)
    start_adapters()

    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_whether_an_instrumentation_runs_is_asked_of_itself():
    """One that must not start is not even loaded."""
    by_name = {one.name: loaded(one) for one in installed()}
    disabled = {one.name: one for one in installed(frozenset({"*"}))}

    assert source_module._runs(by_name["threading"]) in {True, False}
    assert source_module._runs(disabled["threading"]) is False


def test_our_adapters_are_found():
    """Their entries lead to instrumentors of the SDK of the same name."""
    needs = {name: source_module._adapter(name).instrumentation_dependencies() for name in ADAPTERS}

    assert all(needs[name][0].startswith(name) for name in ADAPTERS)
    assert source_module._version("no-such-package") is None
