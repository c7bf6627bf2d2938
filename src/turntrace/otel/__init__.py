"""The only layer that knows the OpenTelemetry SDK."""
