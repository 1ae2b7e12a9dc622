"""What memory is left, on made-up systems: the tightest of the machine and every control group around the process."""

from pathlib import Path

import pytest

from paceline.runtime.memory import available_memory

MEMINFO = "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"
MACHINE = 8_000_000 * 1024
V2 = {
    "proc/self/cgroup": "0::/system.slice/job\n",
    "sys/fs/cgroup/system.slice/job/memory.max": "4000000000\n",
    "sys/fs/cgroup/system.slice/job/memory.current": "1000000000\n",
    "sys/fs/cgroup/system.slice/job/memory.stat": "anon 600000000\ninactive_file 300000000\nactive_file 100000000\n",
}
V1 = {
    "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/\n",
    "sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes": "3000000000\n",
    "sys/fs/cgroup/memory/docker/b/memory.usage_in_bytes": "1000000000\n",
    "sys/fs/cgroup/memory/docker/b/memory.stat": "inactive_file 1\ntotal_inactive_file 500000000\n",
}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, MACHINE),
        ({"proc/self/cgroup": "0::/\n"}, MACHINE),
        (V2, 3_300_000_000),
        ({**V2, "sys/fs/cgroup/system.slice/job/memory.max": "max\n"}, MACHINE),
        ({**V2, "sys/fs/cgroup/system.slice/job/memory.max": "900000000\n"}, 200_000_000),
        ({**V2, "sys/fs/cgroup/system.slice/job/memory.max": "400000000\n"}, 0),
        (
            {
                **V2,
                "sys/fs/cgroup/system.slice/memory.max": "2000000000\n",
                "sys/fs/cgroup/system.slice/memory.current": "1500000000\n",
            },
            500_000_000,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "5\n", "sys/fs/cgroup/memory.current": "1\n"}, 4),
        (V1, 2_500_000_000),
        ({**V1, "sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes": "9223372036854771712\n"}, MACHINE),
        (
            {  # in a container the mount shows the group itself, whatever its path outside
                "proc/self/cgroup": "4:memory:/docker/b\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "700\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": "100\n",
            },
            600,
        ),
    ],
)
def test_the_tightest_bound_counts(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_memory(tmp_path) == expected


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None


def test_this_system() -> None:
    found = available_memory()
    assert found is None or found >= 0
