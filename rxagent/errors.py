"""Everything rxagent raises, one tree, each error saying whose fault it is and what to do.

RxAgentError
├── UsageError                 the calling program
│   ├── AgentBusy              a run is already going: steer, follow_up or wait
│   ├── NothingToContinue      no transcript, no queue, nothing to retry
│   ├── WouldDeadlock          waiting for the very run that waits for you
│   ├── NoRunningLoop          an asyncio call from a thread without a loop
│   ├── InvalidMessage         an input that is no message
│   ├── InvalidTool            a function that can't be a tool
│   ├── InvalidOption          an argument of an agent that is none of what it may be
│   ├── DuplicateTool          two tools of one name
│   ├── UnknownModel           a model name nobody serves
│   ├── MissingKey             no API key for a provider
│   ├── MissingExtra           an optional dependency isn't installed
│   ├── Unserialisable         a value with no JSON form
│   └── InterruptError         an answer that no interrupt waits for
├── RunFailed                  raised by ``run.result(raise_on_failure=True)``
│   ├── RunAborted             somebody called ``abort``
│   ├── RunInterrupted         the run waits for answers
│   └── LimitReached           ``Limits`` ended the run
├── LoopGone                   a GUI's event loop has ended, or its window is closed
├── ToolFailed                 a tool says "no" to the model, without a traceback
├── ToolInterrupted            control flow of ``ctx.interrupt``; tools let it pass
├── McpServerError             a tool server can't be reached, or broke off
├── GrammarError               an event stream that breaks the grammar (ours to fix)
├── CorruptLog                 an event log that can't be read; names the line
├── BufferOverflow             ``overflow("error")`` found its buffer full
└── StoreError                 an event store refused
    ├── WrongSeq               another writer was there first
    ├── SessionLocked          a second writer of one session
    ├── UnknownSession         no such session
    ├── StoreCorrupt           the file is damaged; left untouched
    ├── StoreTooNew            written by a later version; left untouched
    ├── StoreFull              no room for more; nothing was written
    ├── StoreReadOnly          the file can be read but not written
    └── StoreClosed            used after ``close``
"""


class RxAgentError(Exception):
    """Base of all errors raised by rxagent."""


class UsageError(RxAgentError):
    """The calling program asked for something that can't be done."""


class AgentBusy(UsageError):
    """A run is already going; use ``steer``, ``follow_up`` or ``await agent.wait_for_idle()``."""


class NothingToContinue(UsageError):
    """There is no transcript to continue from, nothing queued, or nothing to retry."""


class WouldDeadlock(UsageError):
    """A listener or tool waits for the run that is waiting for it."""


class NoRunningLoop(UsageError):
    """The call needs a running asyncio loop; use ``prompt_sync`` or a host thread instead."""


class InvalidMessage(UsageError, ValueError):
    """An input is neither text nor a message; says which one and what was expected."""


class InvalidTool(UsageError, TypeError):
    """A function can't be made into a tool; says which parameter and why."""


class InvalidOption(UsageError, ValueError, TypeError):
    """An argument is none of what it may be; says which and what would do."""


class DuplicateTool(UsageError, ValueError):
    """Two tools of one agent have the same name."""


class UnknownModel(UsageError, ValueError):
    """A model name that no provider serves; lists what would be understood."""


class MissingKey(UsageError):
    """No API key was found; names the environment variable that was looked for."""


class MissingExtra(UsageError, ImportError):
    """An optional dependency isn't installed; names the install command."""


class Unserialisable(UsageError, TypeError):
    """A value has no JSON form; says which and how to give it one."""


class InterruptError(UsageError):
    """An answer to an interrupt that isn't pending: unknown, or already settled."""


class RunFailed(RxAgentError):
    """A run did not complete; ``outcome`` and ``message`` say how."""

    def __init__(self, message: str, outcome: str = "failed") -> None:
        super().__init__(message)
        self.message = message
        self.outcome = outcome


class RunAborted(RunFailed):
    """The run was aborted."""


class RunInterrupted(RunFailed):
    """The run stopped to ask; resume it with the answers."""


class LimitReached(RunFailed):
    """A limit ended the run; the message names it."""


class LoopGone(RxAgentError):
    """A GUI's event loop has ended or its window is closed; a bridge to it ends quietly."""


class ToolFailed(RxAgentError):
    """Raise it in a tool to give the model an error result with just this text."""


class ToolInterrupted(RxAgentError):
    """Control flow: a tool asked a question and its run ends here. Don't catch it."""


class McpServerError(RxAgentError):
    """An MCP server can't be started or reached, or doesn't speak the protocol; names the server."""


class GrammarError(RxAgentError):
    """An event came where the grammar has no place for it."""


class CorruptLog(RxAgentError, ValueError):
    """A line of an event log can't be read; nothing before it is lost."""


class BufferOverflow(RxAgentError):
    """A source that can't wait filled its buffer under ``overflow("error")``."""


class StoreError(RxAgentError):
    """An event store could not do what was asked."""


class WrongSeq(StoreError):
    """``append`` expected another next sequence number: somebody else has written."""


class SessionLocked(StoreError):
    """A session already has a writer."""


class UnknownSession(StoreError, KeyError):
    """The store has no such session."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class StoreCorrupt(StoreError):
    """The store's file is damaged; it was left as it is."""


class StoreTooNew(StoreError):
    """The store's file was written by a later version; it was left as it is."""


class StoreFull(StoreError):
    """The disk (or a quota) has no room; nothing of the append was kept, what was there before is whole."""


class StoreReadOnly(StoreError):
    """The store's file may be read but not written."""


class StoreClosed(StoreError):
    """The store was used after it was closed."""


def told(error: BaseException) -> str:
    """An exception in a line: its type, and what it says of itself, if it can."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as broken:  # somebody else's __str__
        return f"{type(error).__name__} (its message can't be read: {type(broken).__name__})"
