"""Controllers: which proposer drafts for which sequence, and how many tokens. `base` holds the contract."""

from paceline.controller.base import BatchView, Controller, Plan, PlanEntry, SequenceView
from paceline.controller.fixed import OFF, FixedController, OffController
from paceline.registry import Registry

CONTROLLERS: Registry[Controller] = Registry("controller", {"off": OffController, "fixed": FixedController})


def create_controller(name: str, **options: object) -> Controller:
    """The controller called `name`. Raises UsageError for a name, an option or a value that does not exist."""
    return CONTROLLERS.create(name, options)


__all__ = [
    "CONTROLLERS",
    "OFF",
    "BatchView",
    "Controller",
    "FixedController",
    "OffController",
    "Plan",
    "PlanEntry",
    "SequenceView",
    "create_controller",
]
