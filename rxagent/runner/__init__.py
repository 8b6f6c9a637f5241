"""`Runner`: agents over stored sessions: query and run, resume, fork, replay. The event log is the only truth."""

from rxagent.engine.launch import Cancel
from rxagent.runner.journal import StoreJournal
from rxagent.runner.pace import times
from rxagent.runner.runner import Runner

__all__ = ["Cancel", "Runner", "StoreJournal", "times"]
