"""The eight stages of the pipeline: their shares, or what would measure them."""

from __future__ import annotations

from stepscope.report import words
from stepscope.report.blocks import Share, Table, columns
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Short, Where

HEAD = columns("Stage | Share: |  | Basis, or why there is none")


def _lines(asked: Asked) -> Said:
    """The stages with their shares, then those not measured and what would measure them."""
    stages, imported = asked.report.stages, words.is_imported(asked.report)
    if stages and not (imported and all(stage.ratio is None for stage in stages)):
        blind = words.blind_stages(stages)
        unseen = Short(f"{words.BLIND}{', '.join(blind)}" if blind else "")
        where = Where.HEAD_END if imported else Where.HEAD
        yield Lines(label="stages", texts=[tuple(words.seen_stages(stages)), unseen], where=where)


def _blocks(asked: Asked) -> Blocks:
    rows = [
        (
            words.stage_word(stage.stage),
            "no figure" if stage.ratio is None else f"{words.percent(stage.ratio)} %",
            "" if stage.ratio is None else Share(stage.ratio),
            words.basis_text(stage),
        )
        for stage in asked.report.stages
    ]
    if rows:
        yield Table(HEAD, rows)


SECTION = Section(key="stages", title="Pipeline stages", lines=_lines, blocks=_blocks)
