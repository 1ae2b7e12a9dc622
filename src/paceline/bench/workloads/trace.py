"""A recorded trace: when each request came, and what it asked.

    {"arrival": 0.0, "prompt": "Name three rivers."}
    {"arrival": 1.37, "messages": [{"role": "user", "content": "And three lakes?"}], "max_tokens": 64}

As plain jsonl, and `arrival` in every record: seconds since the trace began, a number from 0 to 1e9. Arrivals never go
back from one record to the next; equal ones came together.
"""

from collections.abc import Mapping
from typing import Any

from paceline.bench.base import Item
from paceline.bench.workloads import fields as check
from paceline.bench.workloads.base import Format, RecordError
from paceline.bench.workloads.plain import plain_item


class TraceFormat(Format):
    name = "trace"
    looks_like = '{"arrival": seconds, "prompt": ...} or {"arrival": seconds, "messages": [...]}'

    def __init__(self) -> None:
        self._latest = 0.0  # arrival of the last item; a record without one does not count

    @classmethod
    def recognises(cls, keys: frozenset[str]) -> bool:
        return "arrival" in keys

    def item(self, fields: Mapping[str, Any], name: str) -> Item:
        arrival = check.seconds(check.required(fields, "arrival"), "arrival")
        if arrival < self._latest:
            raise RecordError(f"arrival is {arrival:g}, before the {self._latest:g} of the request above it")
        item = plain_item(fields, name, arrival=arrival)
        self._latest = arrival
        return item
