"""Pure values and arithmetic: no clock, no files, no environment, no OpenTelemetry."""
