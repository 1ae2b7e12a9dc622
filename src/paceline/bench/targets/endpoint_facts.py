"""What a server tells of itself: which model, which software, which names its counters have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.bench.targets.counters import has_only_gauges, read_counters
from paceline.bench.targets.endpoint_client import EndpointClient
from paceline.bench.targets.json_fields import EndpointError, decoded, items, text
from paceline.bench.targets.openai_request import ServerKind

if TYPE_CHECKING:
    from httpx2 import Response

OWNERS: Mapping[str, ServerKind] = {
    "paceline": "paceline",
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
}
"""From `owned_by` of `/v1/models`."""

PROPS = ("build_info", "model_path", "model_ftype", "total_slots")
"""Of llama.cpp's `/props`: the rest is long."""

NO_COUNTERS = "none"
GAUGES = "none: SGLang's gauges cannot be attributed to a block"


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    address: str
    model: str
    kind: ServerKind
    described: Mapping[str, Any]


async def learn(client: EndpointClient, address: str, model: str | None) -> EndpointFacts:
    """Ask a server what it is; `model` None takes the first that it lists.

    Raises EndpointError for a server that cannot be reached, and for one that lists no model where none was named.
    """
    page = await client.page("/v1/models")
    entry = _entry(page, model)
    name = model or text(entry, "id")
    if not name:
        raise EndpointError(f"{address}/v1/models lists no model; name one")
    described = {
        "address": address,
        "model": name,
        "server": page.headers.get("server") if page is not None else None,
        "owned_by": entry.get("owned_by"),
        "meta": entry.get("meta") or entry.get("max_model_len"),
        "version": (await _json(client, "/version")).get("version"),
        "props": {key: value for key, value in (await _json(client, "/props")).items() if key in PROPS},
        "counters": await _counters(client),
    }
    told = {key: value for key, value in described.items() if value not in (None, {})}
    return EndpointFacts(address, name, OWNERS.get(text(entry, "owned_by").lower(), "unknown"), told)


def _entry(page: "Response | None", model: str | None) -> Mapping[str, Any]:
    """The model's entry, or the first one where none of that name is listed: it tells whose server this is."""
    if page is None:
        return {}
    entries = [entry for entry in items(decoded(page.text, "/v1/models"), "data") if isinstance(entry, dict)]
    return next((entry for entry in entries if entry.get("id") == model), entries[0] if entries else {})


async def _json(client: EndpointClient, path: str) -> Mapping[str, Any]:
    """Empty where a server has no such page, or one that is no JSON object: these two are not of OpenAI's interface."""
    page = await client.page(path)
    try:
        return {} if page is None else decoded(page.text, path)
    except EndpointError:
        return {}


async def _counters(client: EndpointClient) -> str:
    page = await client.page("/metrics")
    if page is None:
        return NO_COUNTERS
    reading = read_counters(page.text)
    if reading is not None:
        return reading.dialect
    return GAUGES if has_only_gauges(page.text) else NO_COUNTERS
