"""The command `rxagent`: thin shells around the library, one module for each subcommand.

`command` is the way in; `parser` says what can be asked; a subcommand's module is imported when it is asked for.
"""

from rxagent.cli.command import main

__all__ = ["main"]
