"""Reads messages, tools and response formats in any form that people send.

In: OpenAI's, Anthropic's or MCP's data, objects of SDKs, pydantic models, functions. Out: plain data in OpenAI's form
for templates, and frozen values (`Message`, `Tool`, `Request`) for the rest of the library.

Open `wire` first: it has these values, and bounds what comes from outside. `inputs` brings every other form into OpenAI's, and makes
the broken arguments of earlier turns fit to be rendered.

Never break these rules: no argument is changed in place, and every mistake is a `MessageError` that names its place.
"""
