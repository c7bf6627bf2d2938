"""Files on disk: journals, block append, locks, rotation and readers of paths."""
