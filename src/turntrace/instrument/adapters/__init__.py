"""Spans of model SDKs that nobody else makes spans of: adapters for the clients of OpenAI and Anthropic."""
