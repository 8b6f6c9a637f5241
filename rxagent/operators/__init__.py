"""The consumer's vocabulary: operators over agent events, as ``from rxagent import operators as ops``."""

from rxagent.operators.verify import check, check_run, verify, verify_run

__all__ = ["check", "check_run", "verify", "verify_run"]
