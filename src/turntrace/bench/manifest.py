"""Checking one manifest against its schema: every fault with its line, in words for people."""

import difflib
import json
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from turntrace.bench.places import FieldPath, Places, field_text, json_places, toml_places
from turntrace.bench.tasks import Fault

__all__ = ["Checked", "checked_json", "checked_toml"]

MAX_MANIFEST_BYTES: Final = 16 * 1024 * 1024

_WORDS: Final = {"missing": "is required", "too_short": "is empty"}

Model = TypeVar("Model")


class Checked:
    """A file being read: collects faults, and knows where its fields stand."""

    def __init__(self, path: Path, faults: list[Fault]) -> None:
        self.path = path
        self.places = Places()
        self._faults = faults

    def fault(self, at: FieldPath, message: str) -> None:
        """Note that the field ``at`` is wrong."""
        line = self.places.line(at)
        self._faults.append(Fault(file=str(self.path), line=line, field=field_text(at), message=message))

    def broken(self, line: int | None, message: str) -> None:
        """Note that the file cannot be read at all."""
        self._faults.append(Fault(file=str(self.path), line=line, field="", message=message))

    def text(self) -> str | None:
        """The file's text, None with a fault where there is none."""
        try:
            found = self.path.stat()
            if stat.S_ISREG(found.st_mode) and found.st_size <= MAX_MANIFEST_BYTES:
                return self.path.read_bytes().decode()
            self.broken(None, f"is no regular file of at most {MAX_MANIFEST_BYTES} bytes")
        except OSError as error:
            self.broken(None, f"cannot be read: {error.strerror or error}")
        except UnicodeDecodeError as error:
            self.broken(None, f"is not UTF-8 at byte {error.start}")
        return None

    def model(self, kind: type[Model], value: Any) -> Model | None:
        """``value`` as a ``kind``, None with faults where it is none."""
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - the extra is loaded when asked for

        adapter = TypeAdapter(kind)
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            known = _fields(kind)
            found = error.errors(include_url=False, include_input=False, include_context=False)
            for one in found:
                self.fault(one["loc"], _words(one["type"], one["msg"], one["loc"], known))
        try:  # without the faulty fields, so that what is wrong beside them is told too
            return adapter.validate_python(_without(value, [one["loc"] for one in found]))
        except ValidationError:
            return None


def checked_toml(file: Checked, kind: type[Model]) -> Model | None:
    """The TOML file as a ``kind``, None with faults where it is none."""
    text = file.text()
    if text is None:
        return None
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        file.broken(None, f"is not TOML: {error}")
        return None
    file.places = toml_places(text)
    return file.model(kind, value)


def checked_json(file: Checked, kind: type[Model]) -> Model | None:
    """The JSON file as a ``kind``, None with faults where it is none; nothing may follow the value."""
    text = file.text()
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        file.broken(error.lineno, f"is not JSON: {error.msg}")
        return None
    except RecursionError:
        file.broken(None, "is nested too deeply")
        return None
    file.places = json_places(text)
    for at, line in file.places.twice:
        file.broken(line, f"{field_text(at)} stands twice")
    return file.model(kind, value)


def _without(value: Any, paths: Sequence[FieldPath]) -> Any:
    """A copy of ``value`` without the fields in which ``paths`` end."""
    copy = json.loads(json.dumps(value, default=str))
    for path in paths:
        at, holder, key = copy, None, ""
        for part in path:
            if isinstance(part, str):
                holder, key = at, part
            try:
                at = at[part]
            except (KeyError, IndexError, TypeError):
                break
        if isinstance(holder, dict):
            holder.pop(key, None)
    return copy


def _fields(kind: type[Any]) -> set[str]:
    """Every field name that the model or one inside it knows."""
    found: set[str] = set()
    schema = kind.model_json_schema(by_alias=True)
    for table in [schema, *schema.get("$defs", {}).values()]:
        found |= set(table.get("properties", {}))
    return found


def _words(kind: str, message: str, at: FieldPath, known: set[str]) -> str:
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(str(at[-1]), known, n=1)
        return f"is no known field; did you mean {close[0]}?" if close else "is no known field"
    if kind == "string_pattern_mismatch":
        return (
            "is blank" if r"\S" in message else "may hold letters, digits, dots, dashes and underscores only"
        )
    return _WORDS.get(kind, message[:1].lower() + message[1:])
