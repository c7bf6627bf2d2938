"""Presets: which command is an agent, and how its telemetry is switched on without touching its folders."""

import json

import pytest

from turntrace.collect.own_telemetry import ClientTls, Forward
from turntrace.collect.preparation import configuration_path, matching, prepared
from turntrace.collect.presets import PRESETS

AT = "http://127.0.0.1:4999"
BASE = f"{AT}/t0ken"


def ready(name, environment=None, argv=None, **more):
    """What becomes of an agent's command."""
    return prepared(PRESETS[name], argv or [name, "go"], environment or {}, AT, "t0ken", **more)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["codex", "exec"], "codex"),
        (["/usr/local/bin/claude", "-p", "hello"], "claude"),
        (["gemini.cmd"], "gemini"),
        (["npx", "opencode-ai", "run"], "opencode"),
        (["npx", "-y", "@google/gemini-cli@0.61.0", "-p", "x"], "gemini"),
        (["npx", "--package", "@openai/codex", "codex", "exec"], "codex"),
        (["bunx", "@anthropic-ai/claude-code"], "claude"),
        (["npm", "exec", "--", "@openai/codex", "exec"], "codex"),
        (["pnpm", "dlx", "opencode-ai"], "opencode"),
        (["node", "--no-warnings", "/lib/codex.js", "exec"], "codex"),
        (["env", "A=1", "-u", "codex", "exec"], "codex"),
        (["timeout", "-k", "5", "60s", "nice", "-n", "10", "npx", "opencode-ai"], "opencode"),
        (["env"], None),
        (["timeout", "60", "make"], None),
        (["python", "codex"], None),
        (["npm", "run", "codex"], None),
        (["npx", "-y"], None),
        (["npx", "@other/codex-like"], None),
        ([], None),
    ],
)
def test_an_agent_is_known_by_its_command(argv, name):
    """By name whatever the path, through npx and the like, or as a script of node."""
    found = matching(argv)
    assert (found and found.name) == name


def test_arguments_go_right_after_the_word_that_names_the_agent():
    """A subcommand of the user's keeps its own arguments."""
    argv = ready("codex", argv=["npx", "-y", "@openai/codex", "exec", "hello"]).argv
    assert argv[:3] == ("npx", "-y", "@openai/codex")
    assert argv[-2:] == ("exec", "hello")
    assert argv[3::2][:3] == ("-c", "-c", "-c")
    assert f'otel.trace_exporter={{otlp-http={{endpoint="{BASE}/v1/traces",protocol="binary"}}}}' in argv


def test_a_preset_chosen_by_name_takes_any_command():
    """A wrapper script gets the arguments too."""
    assert ready("codex", argv=["./agent.sh", "x"]).argv[:2] == ("./agent.sh", "-c")
    assert ready("claude", argv=["./agent.sh", "x"]).argv == ("./agent.sh", "x")


@pytest.mark.parametrize("name", PRESETS)
def test_no_home_and_no_folder_is_moved(name):
    """A logged-in user stays logged in, and what he was given is not changed."""
    before = {
        "HOME": "/h",
        "CODEX_HOME": "/c",
        "CLAUDE_CONFIG_DIR": "/d",
        "XDG_CONFIG_HOME": "/x",
        "PATH": "/p",
    }
    given = dict(before)
    assert before.items() <= ready(name, given).environment.items()
    assert given == before


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "codex"])
def test_the_token_is_in_the_path(name):
    """Agents differ in what they make of headers, so that none is set."""
    environment = ready(name, {"OTEL_EXPORTER_OTLP_HEADERS": "key=mine"}).environment
    assert BASE in environment.values()
    assert environment["OTEL_EXPORTER_OTLP_HEADERS"] == "key=mine"


def test_exporters_of_the_users_own_stay():
    """Prometheus goes on beside OTLP; none is no exporter."""
    given = {
        "OTEL_METRICS_EXPORTER": "prometheus",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_TRACES_EXPORTER": "otlp",
    }
    environment = ready("claude", given).environment
    assert [environment[f"OTEL_{signal}_EXPORTER"] for signal in ("METRICS", "LOGS", "TRACES")] == [
        "prometheus,otlp",
        "otlp",
        "otlp",
    ]


def test_what_the_user_chose_is_kept_where_it_does_no_harm():
    """A default gives way to the user's own value."""
    assert (
        ready("gemini", {"GEMINI_TELEMETRY_LOG_PROMPTS": "true"}).environment["GEMINI_TELEMETRY_LOG_PROMPTS"]
        == "true"
    )
    assert ready("opencode", {"OTEL_BSP_SCHEDULE_DELAY": "7"}).environment["OTEL_BSP_SCHEDULE_DELAY"] == "7"


def test_a_document_is_merged_over_the_users_own():
    """What he configured in the same variable stays."""
    given = {"OPENCODE_CONFIG_CONTENT": '{"model": "m", "experimental": {"other": 1}}'}
    merged = json.loads(ready("opencode", given).environment["OPENCODE_CONFIG_CONTENT"])
    assert merged == {"model": "m", "experimental": {"other": 1, "openTelemetry": True}}


@pytest.mark.parametrize("text", ["{broken", "[1]"])
def test_a_document_that_cannot_be_merged_stays(text):
    """It is left alone and told."""
    found = ready("opencode", {"OPENCODE_CONFIG_CONTENT": text})
    assert found.environment["OPENCODE_CONFIG_CONTENT"] == text
    assert "OPENCODE_CONFIG_CONTENT" in found.notes[0]


def test_a_setting_with_which_nothing_is_sent_is_taken_away():
    """Codex gives up on exporting where a compression is asked for that it lacks."""
    assert (
        "OTEL_EXPORTER_OTLP_COMPRESSION"
        not in ready("codex", {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}).environment
    )


def test_what_leads_telemetry_elsewhere_is_told():
    """A file of the user's takes all of it."""
    (note,) = ready("gemini", {"GEMINI_TELEMETRY_OUTFILE": "/f"}).notes
    assert "GEMINI_TELEMETRY_OUTFILE" in note


def test_an_endpoint_of_its_own_is_told():
    """By variables: one for all signals and one for a signal, which is verbatim."""
    given = {
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://mine.example/otlp/",
        "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "https://logs.example/x",
        "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "grpc",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        **dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "otlp"),
    }
    found = ready("claude", given)
    assert found.forward == Forward(
        endpoints={
            "traces": "https://mine.example/otlp/v1/traces",
            "metrics": "https://mine.example/otlp/v1/metrics",
            "logs": "https://logs.example/x",
        },
        protocols={"traces": "http/json", "metrics": "http/json", "logs": "grpc"},
    )
    assert found.notes == (
        "claude sends its own telemetry to logs.example, mine.example, which still gets it",
    )
    assert "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT" not in found.environment
    assert "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL" not in found.environment


def test_the_files_for_tls_are_those_of_the_signal_else_of_all():
    """What the agent trusted and showed is used when its telemetry is passed on."""
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://mine.example",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "ca.pem",
        "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "other.pem",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE": "me.pem",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY": "key.pem",
    }
    assert ready("otel", given).forward.tls == {
        "traces": ClientTls("other.pem", "me.pem", "key.pem"),
        "metrics": ClientTls("ca.pem"),
        "logs": ClientTls("ca.pem"),
    }


@pytest.mark.parametrize(
    ("endpoint", "insecure", "address"),
    [
        ("mine.example:4317", {}, "https://mine.example:4317"),
        ("mine.example:4317", {"OTEL_EXPORTER_OTLP_INSECURE": "true"}, "http://mine.example:4317"),
        ("mine.example:4317", {"OTEL_EXPORTER_OTLP_LOGS_INSECURE": "true"}, "https://mine.example:4317"),
        ("http://mine.example:4317", {}, "http://mine.example:4317"),
    ],
)
def test_grpc_without_a_scheme_is_encrypted_unless_told(endpoint, insecure, address):
    """As the exporters that read these variables do it."""
    given = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, "OTEL_LOGS_EXPORTER": "none", **insecure}
    forward = ready("otel", given).forward
    assert (forward.endpoints, forward.protocols) == ({"traces": address}, {"traces": "grpc"})


@pytest.mark.parametrize(
    ("name", "given", "signals"),
    [
        ("otel", {}, {"traces", "metrics", "logs"}),
        ("otel", {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "console"}, {"traces"}),
        ("otel", {"OTEL_METRICS_EXPORTER": " "}, {"traces", "metrics", "logs"}),
        ("otel", dict.fromkeys(("OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none"), {"traces"}),
        ("otel", {"OTEL_LOGS_EXPORTER": "console,otlp_proto_http"}, {"traces", "metrics", "logs"}),
        ("claude", {"OTEL_METRICS_EXPORTER": "otlp"}, {"metrics"}),
        ("claude", {"OTEL_METRICS_EXPORTER": "prometheus"}, set()),
    ],
)
def test_what_the_user_had_switched_off_goes_nowhere_but_here(name, given, signals):
    """Its backend gets the signals that it got before, and no other."""
    own = {"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://own"}
    found = ready(name, own | given).forward
    assert set(found.endpoints if found else ()) == signals


@pytest.mark.parametrize(
    ("name", "endpoint", "protocol"),
    [
        ("otel", "http://own:4317", "grpc"),
        ("otel", "own:4317", "grpc"),
        ("otel", "http://own:4318", "http/protobuf"),
        ("otel", "http://[own:4317", "http/protobuf"),
        ("gemini", "http://own:9", "grpc"),
    ],
)
def test_without_a_protocol_it_is_the_agents_usual_one(name, endpoint, protocol):
    """Port 4317 is grpc's; Gemini CLI speaks grpc unless it is told."""
    given = {"GEMINI_TELEMETRY_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    found = ready(name, given)
    assert set(found.forward.protocols.values()) == {protocol}
    assert ("a place unknown" if "[" in endpoint else "to own,") in found.notes[0]


def test_one_exporter_sends_here():
    """Python's names of it would send twice, or in a way that nobody hears."""
    for name in ("otlp_proto_grpc", "otlp_proto_http", "otlp"):
        given = {"OTEL_TRACES_EXPORTER": f"console, {name}"}
        assert ready("otel", given).environment["OTEL_TRACES_EXPORTER"] == "console,otlp"


def test_an_endpoint_is_not_its_own_while_its_telemetry_is_off():
    """The variable may be another program's."""
    assert ready("claude", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}).forward is None
    assert ready("claude", {"CLAUDE_CODE_ENABLE_TELEMETRY": "1"}).forward is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "claude",
            """{"env": {"CLAUDE_CODE_ENABLE_TELEMETRY": 1, "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://own"}}""",
        ),
        ("gemini", '{"telemetry": {"enabled": true, "otlpEndpoint": "http://own", "otlpProtocol": "http"}}'),
        (
            "codex",
            '[otel]\nexporter = { otlp-http = { endpoint = "http://own/v1/logs", headers = { k = "v" } } }',
        ),
        ("codex", '[otel]\ntrace_exporter = { otlp-grpc = { endpoint = "http://own" } }\nexporter = "none"'),
    ],
)
def test_an_endpoint_may_stand_in_the_configuration(name, text):
    """The file is read, never written."""
    found = ready(name, configuration=text).forward
    assert found is not None
    assert all(one.startswith("http://own") for one in found.endpoints.values())
    assert found.headers == ({"k": "v"} if "headers" in text else {})
    protocol = "grpc" if "grpc" in text else "http" if name == "gemini" else "http/protobuf"
    assert set(found.protocols.values()) == {protocol}
    assert found.protocols.keys() == found.endpoints.keys()


@pytest.mark.parametrize("name", ["codex", "claude", "gemini"])
@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "otel = 1", "otel.exporter.otlp-http = 1", '{"env": 1, "telemetry": 2}']
)
def test_an_odd_configuration_says_nothing(name, text):
    """It is the agent's to complain of."""
    assert ready(name, configuration=text).forward is None


def test_where_a_configuration_is():
    """Below the home, or where a variable says."""
    path = configuration_path
    assert str(path(PRESETS["codex"], {"HOME": "/h"})) == "/h/.codex/config.toml"
    assert str(path(PRESETS["codex"], {"HOME": "/h", "CODEX_HOME": "/c"})) == "/c/config.toml"
    assert str(path(PRESETS["gemini"], {"USERPROFILE": "/u"})) == "/u/.gemini/settings.json"
    assert path(PRESETS["otel"], {}) is None


def test_a_receiver_without_a_token_has_no_such_path():
    """The address stays as it is."""
    found = prepared(PRESETS["claude"], ["claude"], {}, AT, "")
    assert found.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == AT


def test_every_preset_says_why_nothing_came():
    """One line a person can act on."""
    assert all(preset.hint and "\n" not in preset.hint for preset in PRESETS.values())
