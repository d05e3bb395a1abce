"""The gateway in Ray Serve: two replicas answer all three APIs, streamed, and say the same for the same seed.

`scripts/ray.sh` runs it in an environment of its own.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

from ray import init, serve

TURN = [{"role": "user", "content": "Hello"}]
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": TURN, "seed": 3},
    "/v1/responses": {"input": "Hello"},
    "/v1/messages": {"messages": TURN, "max_tokens": 100},
}
ENDS = {"/v1/chat/completions": "data: [DONE]", "/v1/responses": "response.completed", "/v1/messages": "message_stop"}


def gateway() -> Any:
    """Return the application; it is called in each replica, since an engine's connections do not travel."""
    from unrender.gateway import app  # noqa: PLC0415 - in the replica
    from unrender.gateway.config import read  # noqa: PLC0415

    return app(read({"models": [{"name": "m"}]}).models)


def main() -> None:
    """Serve, ask, and exit with 1 where an answer is not as it should be."""
    init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    replicas = serve.deployment(serve.ingress(gateway)(), num_replicas=2, ray_actor_options={"num_cpus": 0.2})
    serve.run(replicas.bind(), route_prefix="/llm")
    failed = [path for path in ASKED if not _streams(path)]
    said = {_asked("/v1/chat/completions", {}) for _ in range(6)}
    print(f"streams that failed: {failed}; answers to six equal requests: {len(said)}")
    serve.shutdown()
    sys.exit(bool(failed) or len(said) != 1)


def _streams(path: str) -> bool:
    return ENDS[path] in _asked(path, {"stream": True})


def _asked(path: str, more: dict[str, Any]) -> str:
    data = json.dumps(ASKED[path] | more).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:8000/llm{path}", data)) as answer:
        text: str = answer.read().decode()
    return text if more else str(json.loads(text)["choices"])


if __name__ == "__main__":
    main()
