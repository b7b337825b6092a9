"""Command lines that hold another one: ours up to the program, the program's behind it."""

from __future__ import annotations

import click

UI = "--ui"


class JobCommand(click.Command):
    """Keeps the ``--`` that click would swallow: behind it stands any command, without it a Python script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Notes in ``ctx.meta`` whether the program is any command ("verbatim")."""
        options, verbatim = split_words(args, self.params)
        ctx.meta["verbatim"] = verbatim
        return super().parse_args(ctx, options)


def split_words(args: list[str], params: list[click.Parameter]) -> tuple[list[str], bool]:
    """Whether the first word that is no option is preceded by ``--``."""
    takes_value = {name for p in params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
    at = 0
    while at < len(args):
        word = args[at]
        if word == UI:  # a port may follow; what else does is the job's
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
