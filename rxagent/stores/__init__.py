"""Places for event logs: in memory, in SQLite (the embedded default), in JSON Lines. See `rxagent.log.EventStore`."""

from rxagent.log import EventStore, SessionInfo
from rxagent.stores.jsonl import JsonlStore
from rxagent.stores.memory import MemoryStore
from rxagent.stores.sqlite import SqliteStore

__all__ = ["EventStore", "JsonlStore", "MemoryStore", "SessionInfo", "SqliteStore"]
