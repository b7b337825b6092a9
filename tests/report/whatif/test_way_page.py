"""Steps and curves on an experiment's page, and the answer at its head."""

import msgspec
from tests.report.whatif_samples import BATCH, REPORT, UNTIL_DONE

from stepscope.report.whatif import page as whatif_page


def test_steps_the_total_and_what_is_left_are_on_the_page() -> None:
    page = whatif_page.render(UNTIL_DONE)
    for text in (
        "<h1>Together graph, xla-on make a step 2.5 times as fast",
        "<code>xla-on</code></td>",
        "400 us, -60.0 % (-60.8 to -59.2)",
        "<li><code>model.compile(..., jit_compile=True)</code></li>",
        "What is left with everything kept",
        '<th scope="row"><code>compute-only</code></th><td>ceiling</td>',
    ):
        assert text in page
    assert page.index("<code>graph</code></td>") < page.index("<code>xla-on</code></td>")


def test_without_steps_and_curves_their_sections_are_missing() -> None:
    page = whatif_page.render(REPORT)
    assert not [key for key in ("way", "then", "curves") if f'<section id="{key}"' in page]


def test_curves_are_on_the_page_with_their_knee() -> None:
    page = whatif_page.render(msgspec.structs.replace(REPORT, curves=(BATCH,)))
    assert "<td>the knee, round 2 failed: it died</td>" in page
    assert "the run 1-batch-4 ended with signal 9" in page
    assert "To set the knee" in page


def test_the_answer_is_that_of_what_was_done() -> None:
    curves = msgspec.structs.replace(REPORT, curves=(BATCH,))
    assert whatif_page.answer(REPORT) == "best: jemalloc-keep makes a step 1.1 times as fast"
    assert whatif_page.answer(UNTIL_DONE).startswith("together ")
    assert whatif_page.answer(curves).startswith(
        "best: jemalloc-keep makes a step 1.1 times as fast. batch: To set the"
    )
    assert whatif_page.answer(msgspec.structs.replace(curves, results=())).startswith("batch: To set the knee")
