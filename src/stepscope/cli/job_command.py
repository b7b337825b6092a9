"""Command lines that contain another one: options up to the program are ours, those after it are the program's."""

from __future__ import annotations

import click

UI = "--ui"


class JobCommand(click.Command):
    """Keep the ``--`` that click would swallow: any command may follow it; without it a Python script follows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record in ``ctx.meta`` whether the program is an arbitrary command ("verbatim")."""
        options, verbatim = split_words(args, self.params)
        ctx.meta["verbatim"] = verbatim
        return super().parse_args(ctx, options)


def split_words(args: list[str], params: list[click.Parameter]) -> tuple[list[str], bool]:
    """Split off our options, and say whether ``--`` precedes the first word that is not an option."""
    takes_value = {name for p in params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
    at = 0
    while at < len(args):
        word = args[at]
        if word == UI:  # a port may follow; any other word belongs to the job
            port = args[at + 1] if at + 1 < len(args) and args[at + 1].isdecimal() else ""
            args = [*args[:at], f"{UI}={port}", *args[at + (2 if port else 1) :]]
            word = args[at]
        if word == "--":
            return args, True
        if not word.startswith("-") or word == "-":
            return args, False
        if word == "-m" and at + 1 < len(args):
            return [*args[: at + 2], "--", *args[at + 2 :]], False
        at += 2 if word in takes_value else 1
    return args, False
