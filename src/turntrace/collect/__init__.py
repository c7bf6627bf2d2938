"""An OTLP receiver: requests in over http and grpc, acknowledged when they are on disk, turns out."""
