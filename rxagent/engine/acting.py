"""`Acting`: what an agent is made with, and who has the conversation."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rxagent.engine.config import LoopConfig, ModelLike, Output, Setup, ToolMode, as_models, one_of, prompt_text
from rxagent.engine.limits import Limits, Retry
from rxagent.engine.profile import Profile
from rxagent.errors import UsageError
from rxagent.hooks import Hooks
from rxagent.messages import AnyMessage, ThinkingLevel, as_messages
from rxagent.tools import Tool, as_tools

# what most agents are made with
_HOOKS, _LIMITS, _RETRY = Hooks(), Limits(), Retry()


class Acting:
    """What an agent is made with, and the profile of the agent that has the conversation: this one, until it hands over."""

    def __init__(  # noqa: PLR0913 - the contract's constructor, all but the model by name
        self,
        model: ModelLike,
        *,
        name: str = "agent",
        system_prompt: str = "",
        tools: Sequence[Tool | Callable[..., object]] = (),
        messages: Sequence[AnyMessage] = (),
        thinking_level: ThinkingLevel = "off",
        streaming: bool = True,
        output: type | None = None,
        hooks: Hooks | None = None,
        limits: Limits | None = None,
        retry: Retry | None = None,
        deps: object = None,
    ) -> None:
        self.name = name
        self.streaming = streaming
        self.hooks = hooks or _HOOKS
        self.limits = limits or _LIMITS
        self.retry_policy = retry or _RETRY
        self.deps = deps
        self._tool_mode: ToolMode = "parallel"
        self._output_type = output
        self._output = Output(output) if output is not None else None
        self._setup = self._home = Setup(as_models(model), prompt_text(system_prompt), thinking_level, as_tools(tools))
        self._seed = as_messages(messages)
        self._holder: Profile | None = None
        self._own_profile()  # refuses what it can't be made of
        self._made()

    def _made(self) -> None:
        """Called when it has all this."""

    @property
    def tool_mode(self) -> ToolMode:
        """Whether the calls of an answer run in parallel or one by one; assignable."""
        return self._tool_mode

    @tool_mode.setter
    def tool_mode(self, mode: ToolMode) -> None:
        self._tool_mode = one_of(mode, ToolMode, "tool_mode")

    def profile(self) -> Profile:
        """What a run of this agent on another session, or as a tool, is made with."""
        return replace(self._own_profile(), setup=replace(self._home))

    def find(self, name: str) -> Profile:
        """The profile of this agent, or of one it can hand over to, directly or by others.

        Raises:
            UsageError: there is none of this name.
        """
        seen: list[Acting] = [self]
        for agent in seen:
            if agent.name == name:
                return agent.profile()
            targets = [getattr(tool, "target", None) for tool in agent._home.tools]
            seen.extend(target for target in targets if isinstance(target, Acting) and target not in seen)
        raise UsageError(f"no agent {name!r} can be reached from {self.name!r} by handoff(…); found {[a.name for a in seen]}")

    @property
    def _acting(self) -> Profile:
        """The agent that has the conversation."""
        return self._holder or self._own_profile()

    def _own_profile(self) -> Profile:
        config = LoopConfig(
            model=self._home.models,
            name=self.name,
            thinking_level=self._home.thinking_level,
            streaming=self.streaming,
            output=self._output_type,
            hooks=self.hooks,
            limits=self.limits,
            retry=self.retry_policy,
            tool_mode=self._tool_mode,
            deps=self.deps,
        )
        return Profile(self.name, self._home, config, self._output, self._seed, self.find)

    def _hold(self, profile: Profile) -> Profile:
        """Another agent has the conversation from here on; the limits stay this one's."""
        self._holder = holder = replace(profile, config=replace(profile.config, limits=self.limits))
        self._setup = profile.setup
        return holder
