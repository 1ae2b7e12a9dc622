"""What speculation is worth for a model, a workload and a load, measured; `base` and `result` hold the contracts."""
