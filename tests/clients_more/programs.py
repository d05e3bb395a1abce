# ruff: noqa: PLC0415 - each package is imported where it is used: a part of them may be installed
"""Programs that use other client packages with the gateway. Each is a class that does the same five things.

`chat` returns the answer to one question; `streamed`, its pieces; `tool`, the answer after a tool call; `structured`,
the answer as the package parses it. `refusal` names the error, or one of its bases, that the package raises if a prompt
is too long.

Rules: each class uses the settings that its documentation gives for a server like OpenAI's or Anthropic's, and none
special to this gateway. A class imports its package only when used, so each is tested where it is installed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tables import case_rows


class Person(BaseModel):
    """The type of a structured answer."""

    name: str
    age: int
    tags: list[str]


WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def get_weather(city: str) -> str:
    """Return the weather.

    Args:
        city: The name of the city.
    """
    return f"wet in {city}"


class PydanticAI:
    """pydantic-ai on both of OpenAI's APIs. Structured answers are a forced call.

    Its own model for Messages fails before sending anything with Anthropic's package from 2.0 on Python 3.11.
    """

    package = "pydantic_ai"
    refusal = "ModelHTTPError"

    def __init__(self, address: str, api: str) -> None:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        openai = OpenAIProvider(base_url=f"{address}/v1", api_key="any")
        self.model: Any = {
            "chat": lambda: OpenAIChatModel("m", provider=openai),
            "responses": lambda: OpenAIResponsesModel("m", provider=openai),
        }[api]()

    def _agent(self, **more: Any) -> Any:
        from pydantic_ai import Agent

        return Agent(self.model, retries=0, **more)

    def chat(self, question: str) -> str:
        return str(self._agent().run_sync(question).output)

    def streamed(self, question: str) -> list[str]:
        async def run() -> list[str]:
            async with self._agent().run_stream(question) as result:
                return [text async for text in result.stream_text(delta=True, debounce_by=None)]

        return asyncio.run(run())

    def tool(self, question: str) -> str:
        return str(self._agent(tools=[get_weather]).run_sync(question).output)

    def structured(self, question: str) -> Any:
        return self._agent(output_type=Person).run_sync(question).output


class PydanticAINative(PydanticAI):
    """pydantic-ai with structured answers as a response format."""

    def structured(self, question: str) -> Any:
        from pydantic_ai import NativeOutput

        return self._agent(output_type=NativeOutput(Person)).run_sync(question).output


class Instructor:
    """instructor: a pydantic model as a tool or as a response format. It supports no other tools."""

    package = "instructor"
    refusal = "BadRequestError"

    def __init__(self, address: str, api: str) -> None:
        import anthropic
        import instructor
        import openai

        self.own: dict[str, Any] = {"model": "m"}
        if api == "messages":
            client = anthropic.Anthropic(base_url=address, api_key="any", max_retries=0)
            self.client: Any = instructor.from_anthropic(client)
            self.own["max_tokens"] = 500
        else:
            mode = {"chat": "TOOLS", "format": "JSON_SCHEMA", "responses": "RESPONSES_TOOLS"}[api]
            whole = openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)
            self.client = instructor.from_openai(whole, mode=getattr(instructor.Mode, mode))

    def _asked(self, question: str) -> dict[str, Any]:
        return {**self.own, "messages": [{"role": "user", "content": question}], "max_retries": 0}

    def chat(self, question: str) -> str:
        return str(self.client.create(response_model=str, **self._asked(question)))

    def streamed(self, question: str) -> list[str]:
        parts = list(self.client.create_partial(response_model=Person, **self._asked(question)))
        return [str(part.name) for part in parts]

    def structured(self, question: str) -> Any:
        return self.client.create(response_model=Person, **self._asked(question))


class Smolagents:
    """smolagents' model, and its tool-calling agent."""

    package = "smolagents"
    refusal = "BadRequestError"

    def __init__(self, address: str, api: str) -> None:
        from smolagents import LiteLLMModel, OpenAIModel

        if api == "litellm":
            self.model: Any = LiteLLMModel(model_id="openai/m", api_base=f"{address}/v1", api_key="any")
        else:
            self.model = OpenAIModel(model_id="m", api_base=f"{address}/v1", api_key="any")

    def _messages(self, question: str) -> list[Any]:
        from smolagents import ChatMessage, MessageRole

        return [ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": question}])]

    def chat(self, question: str) -> str:
        return str(self.model.generate(self._messages(question), stop_sequences=["Observation:"]).content)

    def streamed(self, question: str) -> list[str]:
        return [delta.content or "" for delta in self.model.generate_stream(self._messages(question))]

    def tool(self, question: str) -> str:
        from smolagents import ToolCallingAgent, tool

        # The agent ends with a call of `final_answer`, which the engine writes when forced.
        agent = ToolCallingAgent(tools=[tool(get_weather)], model=self.model, max_steps=2, verbosity_level=0)
        steps = list(agent.run(question, stream=True))
        return "; ".join(str(getattr(step, "observations", "")) for step in steps)

    def structured(self, question: str) -> Person:
        form = {
            "name": "Person",
            "schema": Person.model_json_schema() | {"additionalProperties": False},
            "strict": True,
        }
        said = self.model.generate(
            self._messages(question), response_format={"type": "json_schema", "json_schema": form}
        ).content
        return Person.model_validate_json(str(said))


class LiteLLM:
    """litellm as a client of Chat Completions, Messages, and Responses."""

    package = "litellm"
    refusal = "ContextWindowExceededError"

    def __init__(self, address: str, api: str) -> None:
        base = address if api == "anthropic" else f"{address}/v1"
        self.own: dict[str, Any] = {"model": f"{api}/m", "api_base": base, "api_key": "any", "num_retries": 0}

    def _asked(self, *messages: Any, **more: Any) -> Any:
        import litellm

        return litellm.completion(messages=list(messages), **self.own, **more)

    def chat(self, question: str) -> str:
        return str(self._asked({"role": "user", "content": question}).choices[0].message.content)

    def streamed(self, question: str) -> list[str]:
        chunks = self._asked({"role": "user", "content": question}, stream=True)
        return [chunk.choices[0].delta.content or "" for chunk in chunks]

    def tool(self, question: str) -> str:
        import litellm

        function = {"name": "get_weather", "description": "Tell the weather.", "parameters": WEATHER}
        tools = [{"type": "function", "function": function}]
        conversation: list[Any] = [{"role": "user", "content": question}]
        chunks = self._asked(*conversation, tools=tools, stream=True)
        message = litellm.stream_chunk_builder(list(chunks)).choices[0].message
        conversation.append(message.model_dump())
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            conversation.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return str(self._asked(*conversation, tools=tools).choices[0].message.content)

    def structured(self, question: str) -> Person:
        said = self._asked({"role": "user", "content": question}, response_format=Person).choices[0].message.content
        return Person.model_validate_json(said)


class LLM:
    """llm, Simon Willison's command line and library, with a model from its file of extra models."""

    package = "llm"
    refusal = "BadRequestError"

    def __init__(self, address: str, api: str) -> None:
        from llm.default_plugins.openai_models import Chat, Responses

        made = Responses if api == "responses" else Chat
        self.model: Any = made(
            "m", model_name="m", api_base=f"{address}/v1", supports_schema=True, supports_tools=True, key="any"
        )

    def chat(self, question: str) -> str:
        return str(self.model.prompt(question, key="any", stream=False).text())

    def streamed(self, question: str) -> list[str]:
        return list(self.model.prompt(question, key="any"))

    def tool(self, question: str) -> str:
        return str(self.model.chain(question, tools=[get_weather], key="any").text())

    def structured(self, question: str) -> Person:
        return Person.model_validate_json(self.model.prompt(question, schema=Person, key="any").text())


class LangChain:
    """LangChain's models, on each of the three APIs."""

    package = "langchain"
    refusal = "ContextOverflowError"

    def __init__(self, address: str, api: str) -> None:
        if api == "messages":
            from langchain_anthropic import ChatAnthropic

            self.model: Any = ChatAnthropic(model="m", base_url=address, api_key="any", max_retries=0, max_tokens=500)
        else:
            from langchain_openai import ChatOpenAI

            self.model = ChatOpenAI(
                model="m", base_url=f"{address}/v1", api_key="any", max_retries=0, use_responses_api=api == "responses"
            )

    def chat(self, question: str) -> str:
        return str(self.model.invoke(question).text)

    def streamed(self, question: str) -> list[str]:
        return [str(piece.text) for piece in self.model.stream(question)]

    def tool(self, question: str) -> str:
        from langchain.agents import create_agent

        agent = create_agent(self.model, [get_weather])
        *_, last = agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"]
        return str(last.text)

    def structured(self, question: str) -> Any:
        return self.model.with_structured_output(Person).invoke(question)


class Haystack:
    """Haystack's generator and its agent, on Chat Completions and on Responses."""

    package = "haystack"
    refusal = "BadRequestError"

    def __init__(self, address: str, api: str) -> None:
        from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
        from haystack.utils import Secret

        self.own = {
            "model": "m",
            "api_base_url": f"{address}/v1",
            "api_key": Secret.from_token("any"),
            "max_retries": 0,
        }
        self.made: Any = OpenAIResponsesChatGenerator if api == "responses" else OpenAIChatGenerator
        self.form = "text_format" if api == "responses" else "response_format"

    def _asked(self, question: str, **more: Any) -> Any:
        from haystack.dataclasses import ChatMessage

        return self.made(**self.own, **more).run([ChatMessage.from_user(question)])["replies"][0]

    def chat(self, question: str) -> str:
        return str(self._asked(question).text)

    def streamed(self, question: str) -> list[str]:
        pieces: list[str] = []
        self._asked(question, streaming_callback=lambda chunk: pieces.append(chunk.content))
        return pieces

    def tool(self, question: str) -> str:
        from haystack.components.agents import Agent
        from haystack.dataclasses import ChatMessage
        from haystack.tools import Tool

        tool = Tool(name="get_weather", description="Tell the weather.", parameters=WEATHER, function=get_weather)
        agent = Agent(chat_generator=self.made(**self.own), tools=[tool])
        return str(agent.run(messages=[ChatMessage.from_user(question)])["last_message"].text)

    def structured(self, question: str) -> Person:
        return Person.model_validate_json(self._asked(question, generation_kwargs={self.form: Person}).text)


class DSPy:
    """DSPy's model, and a signature with a typed field."""

    package = "dspy"
    refusal = "ContextWindowExceededError"

    def __init__(self, address: str, api: str) -> None:
        import dspy

        self.model: Any = dspy.LM(
            "openai/m", api_base=f"{address}/v1", api_key="any", cache=False, num_retries=0, model_type=api
        )

    def chat(self, question: str) -> str:
        (said,) = self.model(question)
        return said["text"] if isinstance(said, Mapping) else str(said)

    def structured(self, question: str) -> Any:
        import dspy

        class Asked(dspy.Signature):  # type: ignore[misc] # unknown where it is not installed
            question: str = dspy.InputField()
            person: Person = dspy.OutputField()

        with dspy.context(lm=self.model, adapter=dspy.JSONAdapter()):
            return dspy.Predict(Asked)(question=question).person


_MADE: list[type[Any]] = [PydanticAI, PydanticAINative, Instructor, Smolagents, LiteLLM, LLM, LangChain, Haystack, DSPy]
CLIENTS: Mapping[str, tuple[type[Any], str]] = {
    row["client"]: (next(made for made in _MADE if made.__name__ == row["made"]), row["api"])
    for row in case_rows(Path(__file__).with_name("clients.jsonl"))
}
"""Each client with its API or mode."""
