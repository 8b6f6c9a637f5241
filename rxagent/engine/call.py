"""One tool call: look up, validate, before hook, run, after hook, `ToolEnd`.

1. Whatever goes wrong becomes an error result that the model sees.
2. Cancelling (abort, timeout, interrupting steer) gives the tool its signal and the grace period; one that
   is still running then is abandoned and reported, and its call gets an error result.
3. A result that was finished is never thrown away.
"""

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Sequence
from copy import deepcopy
from typing import cast

from reactivex import Observable

from rxagent.engine.asking import waiting
from rxagent.engine.host import Host
from rxagent.engine.scope import Ended, HookFailed, Scope
from rxagent.errors import RxAgentError, StoreError, ToolFailed, ToolInterrupted, told
from rxagent.events import Interrupt, ToolEnd, ToolStart
from rxagent.flow import Fault, to_aiter
from rxagent.flow.holds import Link, carry, chain
from rxagent.hooks import Allow, Ask, Block, Edit, HookCall, decision_of
from rxagent.messages import JsonObject, ToolCall, ToolResult, to_json_value
from rxagent.tools import BoundCall, Tool, ToolContext, as_result, error_result, is_resumable


class Abandoned(RxAgentError):
    """A tool that was told to stop went on beyond its grace period; what it still does is ignored."""


class Call(Host):
    """Runs one call and emits its events. It is the tool's `ToolHost`."""

    def __init__(self, scope: Scope, call: ToolCall, tool: Tool | None) -> None:
        super().__init__(scope, call)
        self._tool = tool
        self._bound: BoundCall | None = None
        self._problem: ToolResult | None = None
        self._signal = scope.signal.child()
        self._begun = False
        self._lost = False
        self._preset: ToolResult | None = None
        self._told = False
        self._duration = 0.0
        self._task: asyncio.Task[None] | None = None
        self._prepare()

    @property
    def name(self) -> str:
        """The tool's name, as the model gave it."""
        return self._call.name

    @property
    def sequential(self) -> bool:
        """Whether the tool asks for one call at a time."""
        return self._tool is not None and self._tool.sequential

    def _prepare(self) -> None:
        call = self._call
        if call.invalid is not None:
            self._args = call.invalid
            self._problem = error_result(
                f"The arguments of {call.name!r} are not a JSON object, so it was not run. They read: {call.invalid:.500}"
            )
        elif self._tool is None:
            names = ", ".join(tool.declaration.name for tool in self._scope.setup.tools) or "none"
            self._problem = error_result(f"There is no tool {call.name!r}. Tools: {names}.")
        else:
            self._bind(call.arguments)

    def _bind(self, arguments: JsonObject) -> None:
        assert self._tool is not None
        try:
            self._bound = self._tool.bind(arguments)
            self._args = self._bound.arguments
        except ToolFailed as error:
            self._bound, self._args, self._problem = None, arguments, error_result(str(error))
        except Exception as error:  # a foreign tool's binding
            self._bound, self._args = None, arguments
            self._problem = error_result(f"{self._call.name!r} refused the arguments: {told(error)}")

    @property
    def resumable(self) -> bool:
        """Whether the tool goes on from the log when its call is begun again."""
        return self._tool is not None and is_resumable(self._tool)

    def reopen(self) -> None:
        """The call was begun by a process that died, and is still open."""
        self._begun = True

    def preset(self, result: ToolResult) -> None:
        """The call will not run: this is its result."""
        self._preset = result

    def ask_again(self, questions: Sequence[Interrupt], *, lost: bool = False) -> None:
        """The call will not run: it waits for answers to these. ``lost``: about how it ended."""
        self.waits_for(questions)
        self._preset, self._lost = waiting(questions), lost

    async def cut(self) -> None:
        """Ends what a dead process began, so that the call can begin again."""
        self._lost = True
        await self._scope.emit(self._tool_end(ToolResult(summary="the process ended")))
        self._lost = False

    async def announce(self) -> None:
        """Emits `ToolStart`, unless that was done before."""
        if self._begun:
            return
        await self._scope.emit(ToolStart(self._call.id, self._call.name, self._args, origin=self._scope.origin))

    def start(self) -> "asyncio.Task[None]":
        """Begins the rest of the pipeline in a task of its own."""
        self._task = self._loop.create_task(self._run(), name=f"rxagent tool {self._call.name}")
        return self._task

    def cancel(self, reason: str) -> None:
        """Tells the call to end; its task ends within the grace period."""
        if self._task is not None and not self._task.done() and not self._told:
            # Once: a second cancellation would cut the grace period. The signal may be cancelled already, with the run's.
            self._told = True
            self._signal.cancel(reason)
            self._task.cancel()

    def refuse(self, reason: str) -> None:
        """The call will not run; ``reason`` is its error result."""
        self._problem = error_result(reason)

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The questions the call waits for; known when its task is done."""
        return tuple(self._asked)

    async def _run(self) -> None:
        try:
            result = await self._pipeline()
        except (asyncio.CancelledError, Ended):  # before or after the tool itself ran: in a hook, or on the way to one
            self._asked.clear()
            self._lost = False
            result = error_result(self._cancelled_text())
        await self._end(result)

    async def _end(self, result: ToolResult) -> None:
        """Emits `ToolEnd`. It is out even where the wait before it or for its consumers is cut."""
        session = self._scope.session
        try:
            await session.turn()
        finally:
            pending = None if self._is_over() else session.publish(self._finish(result))
        if pending is not None:
            await session.settle(pending)

    def _finish(self, result: ToolResult) -> ToolEnd:
        self._ended = True
        return self._tool_end(result)

    def _tool_end(self, result: ToolResult) -> ToolEnd:
        return ToolEnd(
            self._call.id,
            self._call.name,
            self._args,
            result,
            is_error=result.is_error or self._lost,
            interrupted=bool(self._asked) or self._lost,
            duration=self._duration,
            origin=self._scope.origin,
        )

    def _is_over(self) -> bool:
        """Whether the run ended this call, or itself, already."""
        progress = self._scope.session.progress
        call = progress.calls.get(self._call.id)
        return progress.run_id != self._scope.origin.run_id or not progress.turn_open or call is None or call.result is not None

    async def _pipeline(self) -> ToolResult:
        if self._preset is not None:
            return self._preset
        if self._problem is None:
            self._problem = await self._before()
        if self._asked:
            return waiting(self._asked)
        if self._problem is not None:
            return self._problem
        try:
            await self._scope.session.acknowledged()
        except StoreError as error:
            return error_result(f"{self._call.name} was not run: its start could not be stored: {error}")
        result = await self._execute()
        if self._asked:
            return waiting(self._asked)
        return result if self._signal.cancelled else await self._after(result)

    def _cancelled_text(self) -> str:
        return (
            f"{self._call.name} was aborted: {self._signal.reason}" if self._signal.reason else f"{self._call.name} was aborted"
        )

    # -- hooks

    def _hook_call(self, question: int) -> HookCall:
        args = deepcopy(self._args) if isinstance(self._args, dict) else {}  # a hook may write into it; events may not change
        known = self._scope.session.progress.answers
        key = f"{self._call.id}:hook{question}"
        return HookCall(self._call.id, self._call.name, args, self._scope.hook_context(), key in known, known.get(key))

    async def _before(self) -> ToolResult | None:
        """Asks the hooks, outermost first; the error result of a call that must not run."""
        for number, hook in enumerate(self._scope.config.hooks.before_tool):
            try:
                verdict = await self._scope.call("before_tool", hook, self._hook_call(number))
                problem = self._heed(number, verdict)
            except (HookFailed, ValueError, TypeError) as error:
                return error_result(f"{self._call.name} was not run: {error}")
            if problem is not None or self._asked:
                return problem
        return None

    def _heed(self, number: int, verdict: object) -> ToolResult | None:
        """Does what a verdict says; the error result if that is not to run the call."""
        match verdict:
            case None | Allow():
                return None
            case Edit(args):
                edited = to_json_value(args, "what Edit gives")
                if not isinstance(edited, dict):
                    raise TypeError(f"Edit takes the arguments as a dict, not {args!r:.80}")
                self._bind(edited)
                return None if self._bound is not None else self._problem
            case Block(reason):
                return error_result(str(reason))
            case Ask(question, schema):
                asked = self._hook_call(number)
                if asked.answered:
                    return self._heed(number, decision_of(asked.answer))
                if self.ask(f"hook{number}", question, schema):
                    return None
                return error_result(f"{self._call.name} was not run: the question {question!r} was cancelled")
            case _:
                raise TypeError(f"hook before_tool gave {verdict!r:.80}, which is no verdict")

    async def _after(self, result: ToolResult) -> ToolResult:
        """Lets the hooks change the result, innermost (last registered) first."""
        for hook in reversed(self._scope.config.hooks.after_tool):
            try:
                changed = await self._scope.call("after_tool", hook, self._hook_call(-1), result)
                if changed is not None:
                    result = as_result(changed, self._call.name)
            except (HookFailed, RxAgentError) as error:
                return error_result(f"{self._call.name}: {error}")
        return result

    # -- the tool itself

    async def _execute(self) -> ToolResult:
        assert self._tool is not None
        assert self._bound is not None
        context = ToolContext(self, self._call.id, self._call.name, self._signal, self._scope.config.deps)
        timeout = self._scope.config.limits.tool_timeout if self._tool.timeout is None else self._tool.timeout
        began = self._loop.time()
        work = self._loop.create_task(self._work(self._bound, context))
        try:
            done, _ = await asyncio.wait((work,), timeout=timeout)
            if not done:
                self._signal.cancel(f"it took more than {timeout:g} s")
                await self._stop(work, context)
                return error_result(f"{self._call.name} took more than {timeout:g} s and was stopped")
            return work.result()
        except asyncio.CancelledError:
            if work.done() and not work.cancelled():  # it had finished: its result stands
                return work.result()
            self._signal.cancel(self._scope.signal.reason)
            return await self._stop(work, context)
        finally:
            self._duration = self._loop.time() - began

    async def _stop(self, work: "asyncio.Task[ToolResult]", context: ToolContext) -> ToolResult:
        """Waits the grace period for a cancelled tool; abandons it after that."""
        if not context.signal_taken:  # one that looks at its signal is trusted to act on it
            work.cancel()
        # a resumable tool bounds its own end, and what it has begun must end before its call does
        grace = None if self.resumable else self._scope.config.limits.grace
        done, _ = await asyncio.wait((work,), timeout=grace)
        if not done and grace is not None:
            work.cancel()
            self._report(grace)
        elif not work.cancelled():
            return work.result()
        return error_result(self._cancelled_text())

    def _report(self, grace: float) -> None:
        error = Abandoned(
            f"tool {self._call.name!r} (call {self._call.id}) did not end within {grace:g} s of being cancelled and was "
            "abandoned. Have it watch ctx.signal."
        )
        self._scope.on_fault(Fault(error, self._call, f"run {self._scope.origin.run_id}", source="tool"))

    async def _work(self, bound: BoundCall, context: ToolContext) -> ToolResult:
        waited_for = Link(self._scope.signal)  # the run waits for the tool, so the tool must not wait for the run
        carry((*chain(), waited_for))
        try:
            return await self._output(bound.start(context))
        except ToolInterrupted:
            return ToolResult()
        except ToolFailed as error:
            return error_result(str(error))
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):  # not the tool's own
            raise
        except BaseException as error:  # a crash of a tool, sys.exit() included, is something for the model to know
            return error_result(f"{self._call.name} failed: {told(error)}")
        finally:
            waited_for.open = False

    async def _output(self, output: object) -> ToolResult:
        """Follows what a tool gave: awaits it, or takes its items as progress and the last one as result."""
        if inspect.isawaitable(output) and not isinstance(output, Observable):  # an Observable is awaitable, too
            value: object = await cast("Awaitable[object]", output)
            if isinstance(value, Observable | AsyncIterable):
                return await self._output(value)  # pyright: ignore[reportUnknownArgumentType] checked by its shape
            return as_result(value, self._call.name)
        items = to_aiter(cast("Observable[object]", output), capacity=1) if isinstance(output, Observable) else output
        last: object = None
        async for item in cast("AsyncIterable[object]", items):
            last = item
            shown = to_json_value(item, f"progress of tool {self._call.name!r}")
            await self._scope.session.emit(self.progress_event(shown))
        return as_result(last, self._call.name)
