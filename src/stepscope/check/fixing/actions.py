"""All actions that a plan may name, listed by hand, with the function of each (docs/writing-rules.md)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from stepscope.check.fixing import calls, chains, statements
from stepscope.check.fixing.work import Action

ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        "add-decorator": statements.add_decorator,
        "add-keyword": calls.add_keyword,
        "hoist-expression": statements.hoist_expression,
        "hoist-statement": statements.hoist_statement,
        "insert-call-in-chain": chains.insert_call_in_chain,
        "insert-statement": statements.insert_statement,
        "move-call-in-chain": chains.move_call_in_chain,
        "remove-call-from-chain": chains.remove_call_from_chain,
        "remove-decorator": statements.remove_decorator,
        "remove-keyword": calls.remove_keyword,
        "remove-statement": statements.remove_statement,
        "rename-call": calls.rename_call,
        "replace-expression": calls.replace_expression,
        "replace-keyword": calls.replace_keyword,
        "replace-statement": statements.replace_statement,
        "unwrap-call": calls.unwrap_call,
        "wrap-call": calls.wrap_call,
    }
)
