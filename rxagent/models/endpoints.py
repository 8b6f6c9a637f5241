"""Well-known servers: rows of data. A new server of a known wire is one row; no code asks for a server's name."""

from collections.abc import Mapping
from types import MappingProxyType

from rxagent.models.wire import Endpoint, Switches

_CHAT = "openai-chat"
# what a server that merely calls itself compatible can be trusted with
COMPATIBLE = Switches()
_LOCAL = Switches(reasoning_effort="reasoning_effort")

_ROWS = (
    Endpoint(
        provider="openai",
        wire=_CHAT,
        base_url="https://api.openai.com/v1",
        base_env=("OPENAI_BASE_URL",),
        version_path="/v1",
        key_env=("OPENAI_API_KEY",),
        switches=Switches(max_tokens="max_completion_tokens", reasoning_effort="openai", strict_schemas=True),
    ),
    Endpoint(
        provider="openai-responses",
        wire="openai-responses",
        base_url="https://api.openai.com/v1",
        base_env=("OPENAI_BASE_URL",),
        version_path="/v1",
        key_env=("OPENAI_API_KEY",),
        switches=Switches(max_tokens="max_output_tokens", strict_schemas=True, images_in_results=True, call_id_longest=64),
    ),
    Endpoint(
        provider="anthropic",
        wire="anthropic",
        base_url="https://api.anthropic.com",
        base_env=("ANTHROPIC_BASE_URL",),
        key_env=("ANTHROPIC_API_KEY",),
        key_header=("x-api-key", ""),
        switches=Switches(images_in_results=True, call_id_longest=64),
    ),
    Endpoint(
        provider="gemini",
        wire="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        version_path="/v1beta",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        key_header=("x-goog-api-key", ""),
    ),
    Endpoint(
        provider="azure",
        wire=_CHAT,
        base_url="",
        base_env=("AZURE_OPENAI_ENDPOINT",),
        version_path="/openai/v1",
        key_env=("AZURE_OPENAI_API_KEY",),
        key_header=("api-key", ""),
        switches=Switches(max_tokens="max_completion_tokens", reasoning_effort="openai", strict_schemas=True),
    ),
    Endpoint(
        provider="openrouter",
        wire=_CHAT,
        base_url="https://openrouter.ai/api/v1",
        key_env=("OPENROUTER_API_KEY",),
        switches=Switches(reasoning_effort="reasoning", reasoning_field="reasoning"),
    ),
    Endpoint(
        provider="groq",
        wire=_CHAT,
        base_url="https://api.groq.com/openai/v1",
        key_env=("GROQ_API_KEY",),
        switches=Switches(max_tokens="max_completion_tokens", reasoning_effort="reasoning_effort", reasoning_field="reasoning"),
    ),
    Endpoint(
        provider="deepseek",
        wire=_CHAT,
        base_url="https://api.deepseek.com/v1",
        key_env=("DEEPSEEK_API_KEY",),
        switches=Switches(
            reasoning_effort="thinking",
            reasoning_field="reasoning_content",
            structured_output="json_object",
            parallel_tool_calls=False,
            images=False,
        ),
    ),
    Endpoint(
        provider="mistral",
        wire=_CHAT,
        base_url="https://api.mistral.ai/v1",
        key_env=("MISTRAL_API_KEY",),
        # refuses fields that it doesn't know; sends usage unasked
        switches=Switches(include_usage=False, call_id_longest=9, call_id_exact=True),
    ),
    Endpoint(
        provider="together",
        wire=_CHAT,
        base_url="https://api.together.xyz/v1",
        key_env=("TOGETHER_API_KEY",),
        switches=Switches(reasoning_effort="reasoning_effort", parallel_tool_calls=False),
    ),
    Endpoint(
        provider="xai",
        wire=_CHAT,
        base_url="https://api.x.ai/v1",
        key_env=("XAI_API_KEY",),
        switches=Switches(reasoning_effort="reasoning_effort"),
    ),
    Endpoint(
        provider="fireworks",
        wire=_CHAT,
        base_url="https://api.fireworks.ai/inference/v1",
        key_env=("FIREWORKS_API_KEY",),
        switches=Switches(reasoning_effort="reasoning_effort", reasoning_field="reasoning_content"),
    ),
    Endpoint(
        provider="cerebras",
        wire=_CHAT,
        base_url="https://api.cerebras.ai/v1",
        key_env=("CEREBRAS_API_KEY",),
        switches=Switches(max_tokens="max_completion_tokens", reasoning_effort="reasoning_effort"),
    ),
    Endpoint(
        provider="moonshot",
        wire=_CHAT,
        base_url="https://api.moonshot.ai/v1",
        key_env=("MOONSHOT_API_KEY",),
        switches=Switches(reasoning_field="reasoning_content", parallel_tool_calls=False),
    ),
    Endpoint(
        provider="ollama",
        wire=_CHAT,
        base_url="http://localhost:11434/v1",
        base_env=("OLLAMA_HOST",),
        version_path="/v1",
        switches=_LOCAL,
    ),
    Endpoint(provider="vllm", wire=_CHAT, base_url="http://localhost:8000/v1", version_path="/v1", switches=_LOCAL),
    Endpoint(provider="llamacpp", wire=_CHAT, base_url="http://localhost:8080/v1", version_path="/v1"),
    Endpoint(provider="lmstudio", wire=_CHAT, base_url="http://localhost:1234/v1", version_path="/v1"),
    # any other server, by its base URL
    Endpoint(provider="compatible", wire=_CHAT, base_url="", version_path="/v1"),
)

ENDPOINTS: Mapping[str, Endpoint] = MappingProxyType({row.provider: row for row in _ROWS})
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "openai-chat": "openai",
        "openai-compatible": "compatible",
        "google": "gemini",
        "claude": "anthropic",
        "llama.cpp": "llamacpp",
        "llama-cpp": "llamacpp",
        "lm-studio": "lmstudio",
        "grok": "xai",
    }
)
LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm")
