"""The NDJSON file: blocks and journals to bytes, bytes to turns, and zero's own way of reading them."""
