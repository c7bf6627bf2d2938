"""Many trace files in one embedded database (DuckDB, extra ``query``)."""
