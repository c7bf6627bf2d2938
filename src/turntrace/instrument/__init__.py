"""The API that applications call: turns, phases, streams (OpenTelemetry API only)."""
