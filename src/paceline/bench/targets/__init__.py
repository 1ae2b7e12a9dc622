"""Targets: what a benchmark asks. `local` is this package's own engine, `endpoint` a server."""
