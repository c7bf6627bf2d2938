"""The three APIs, sync and async alike: how a test asks for a stream and reads it."""

import inspect
from dataclasses import dataclass

import anthropic
import openai

__all__ = ["APIS", "Client", "client_of"]

APIS = ("chat", "responses", "messages")
SAID = {"messages": [{"role": "user", "content": "secret"}], "model": "m-1"}


@dataclass
class Client:
    """An API of a client; everything is async, since a sync client's results need no await."""

    api: str
    sdk: object
    is_async: bool

    def create(self, **options):
        """``create`` of the API, as the SDK has it."""
        if self.api == "chat":
            return self.sdk.chat.completions.create(**SAID, **options)
        if self.api == "responses":
            return self.sdk.responses.create(model="m-1", input="secret", **options)
        return self.sdk.messages.create(**SAID, max_tokens=9, **options)

    @property
    def resource(self):
        """Where the API's methods are."""
        if self.api == "chat":
            return self.sdk.chat.completions
        return self.sdk.responses if self.api == "responses" else self.sdk.messages

    @property
    def arguments(self):
        """What ``create`` needs."""
        if self.api == "responses":
            return {"model": "m-1", "input": "secret"}
        return SAID if self.api == "chat" else {**SAID, "max_tokens": 9}

    async def stream(self, **options):
        """A stream."""
        if self.api == "chat":
            options["stream_options"] = {"include_usage": True}
        return await done(self.create(stream=True, **options))

    async def items(self, stream):
        """Its items, async for both kinds."""
        if self.is_async:
            async for item in stream:
                yield item
        else:
            for item in stream:
                yield item


async def done(value):
    """The value, awaited if need be."""
    return await value if inspect.isawaitable(value) else value


def client_of(server, api, *, is_async, session="main", **options):
    """A client of ``api`` for the server."""
    kinds = {
        "messages": (anthropic.Anthropic, anthropic.AsyncAnthropic),
    }.get(api, (openai.OpenAI, openai.AsyncOpenAI))
    path = "" if api == "messages" else "/v1"
    options = {"max_retries": 0, **options}
    sdk = kinds[is_async](api_key="k", base_url=f"{server.url}/s/{session}{path}", **options)
    return Client(api, sdk, is_async)
