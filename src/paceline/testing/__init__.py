"""What tests of models, proposers, controllers, caches and clients need, ours and others': nothing needs weights."""

from paceline.testing.contracts import RuntimeSizes, check_cache, check_equal_runtimes, check_proposer, check_runtime
from paceline.testing.endpoint import Part, Piece, Reply, ScriptedEndpoint, chat_reply, json_page, text_page
from paceline.testing.scripted_controller import ScriptedController
from paceline.testing.scripted_proposer import ScriptedDraft, ScriptedProposer
from paceline.testing.table_model import CorruptCacheError, TableModel
from paceline.testing.table_proposer import TableProposer
from paceline.testing.tables import LogitsTable, decode_plainly, explicit_table, seeded_table
from paceline.testing.virtual_time import VirtualTimeLoop, run_in_virtual_time

__all__ = [
    "CorruptCacheError",
    "LogitsTable",
    "Part",
    "Piece",
    "Reply",
    "RuntimeSizes",
    "ScriptedController",
    "ScriptedDraft",
    "ScriptedEndpoint",
    "ScriptedProposer",
    "TableModel",
    "TableProposer",
    "VirtualTimeLoop",
    "chat_reply",
    "check_cache",
    "check_equal_runtimes",
    "check_proposer",
    "check_runtime",
    "decode_plainly",
    "explicit_table",
    "json_page",
    "run_in_virtual_time",
    "seeded_table",
    "text_page",
]
