"""The log of a few services in one night: times, levels, fields, now and then a trace of calls."""

from collections.abc import Iterator

from picker import Picker

PATHS = ["/cart", "/cart/items", "/orders", "/orders/export", "/login", "/profile", "/search", "/images/thumb"]
QUEUES = ["mail", "invoices", "reindex", "thumbnails"]
HOSTS = ["node-a", "node-b", "node-c"]
EVENTS = [
    (40, "INFO", "gateway", "request method={method} path={path} status={ok} ms={ms} bytes={bytes}"),
    (8, "WARN", "gateway", "slow request method={method} path={path} status={ok} ms={slow}"),
    (16, "INFO", "worker", "job done queue={queue} id=j-{id} ms={ms} attempt=1"),
    (6, "WARN", "worker", "job failed queue={queue} id=j-{id} attempt={attempt} retry_in={retry}s reason=timeout"),
    (10, "INFO", "store", "checkpoint complete pages={pages} ms={ms}"),
    (5, "WARN", "store", "replica lag host={host} seconds={attempt}"),
    (5, "ERROR", "billing", "charge refused order=o-{id} reason=card_expired customer=c-{pages}"),
    (4, "ERROR", "billing", "provider unreachable order=o-{id} attempt={attempt} host={host}"),
    (3, "ERROR", "worker", "job dropped queue={queue} id=j-{id} attempts=5"),
    (3, "INFO", "scheduler", "started task=cleanup host={host} removed={pages}"),
]
TRACE = """    at charge (billing/provider.ts:{line})
    at settle (billing/orders.ts:{other})
    at run (billing/queue.ts:58)
"""


def sections() -> Iterator[str]:
    pick = Picker(2)
    yield "Log of the shop, 2024-09-17, from 02:00 on, all services\n\n"
    seconds = 2 * 3600
    weighted = [event for event in EVENTS for _ in range(event[0])]
    while True:
        seconds += pick.number(1, 23)
        _, level, service, text = pick.one(weighted)
        line = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} {level:<5} {service} {_filled(pick, text)}\n"
        if "unreachable" in line:
            line += TRACE.format(line=pick.number(88, 140), other=pick.number(20, 60))
        yield line


def _filled(pick: Picker, text: str) -> str:
    return text.format(
        method=pick.one(["GET", "GET", "POST"]),
        path=pick.one(PATHS),
        ok=pick.one([200, 200, 200, 204, 302, 404]),
        ms=pick.number(3, 180),
        slow=pick.number(1200, 5400),
        bytes=pick.number(120, 9800),
        queue=pick.one(QUEUES),
        id=pick.number(4100, 4999),
        attempt=pick.number(2, 4),
        retry=pick.one([10, 30, 90]),
        pages=pick.number(11, 870),
        host=pick.one(HOSTS),
    )
