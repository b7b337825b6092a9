"""Pseudonyms: what is replaced, what stays, and that equal words stay equal."""

from __future__ import annotations

import pytest

from stepscope.store.pseudonyms import Pseudonyms, words_of

KEY = bytes(range(16))


def pseudonyms() -> Pseudonyms:
    return Pseudonyms(KEY)


@pytest.mark.parametrize(
    "text",
    [
        "MatMul",
        "gradient_tape/MatMul_1",
        "INP003",
        "fit",
        "/usr/lib/x86_64-linux-gnu/libc.so.6",
        "/host:CPU",
        "/job:worker/replica:0/task:0/device:CPU:0",
        "2.21.0",
        "_MklNativeDepthwiseConv2dNative",
        "functional_1/batch_normalization_8",
        "Iterator::Prefetch::MapAndBatch",
        "MapAndBatchProduce",
        "[18432,24]",
        "EagerLocalExecute: __inference_train_step_7405",
    ],
)
def test_public_text_stays(text: str) -> None:
    """Ops, codes, system libraries, devices and versions say nothing of the user."""
    names = pseudonyms()
    assert names.text(text) == text
    assert names.hidden == set()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("zebra_layer_3/MatMul", "zebra_layer"),
        ("/home/ann/proj x/fraud.py:41 score", "fraud"),
        ("models/acme/train.py", "train"),
        ("call of Zebra.predict_churn", "predict_churn"),
        ("__inference_predict_churn_12", "predict_churn"),
        ("/tmp/__autograph_generated_filepredict.py", "predict"),
        ("10.11.12.13:2222", "10.11.12.13"),
        ("fe80::1c2d:3e4f:5a6b:7c8d", "1c2d"),
        ("customer 4711815", "4711815"),
        ("/opt/acme/lib/python3.11/site-packages/acmelib/core.py", "acme"),
    ],
)
def test_what_is_of_the_user_is_replaced(text: str, secret: str) -> None:
    """Names, files, addresses and long numbers are replaced wherever they stand, and always by the same."""
    names = pseudonyms()
    made = names.text(text)
    assert secret not in made
    assert made == pseudonyms().text(text) != Pseudonyms(b"another key 4567").text(text)


def test_parts_of_a_path() -> None:
    """The shape of a path stays, and so do its extension and what lies in Python's library or a public package."""
    names = pseudonyms()
    folder, file = names.of("ann"), names.of("train")
    assert names.path("/home/ann/train.py") == f"/home/{folder}/{file}.py"
    inside = names.path("/home/ann/venv/lib/python3.11/site-packages/keras/src/x_y.py")
    assert inside == f"/home/{folder}/venv/lib/python3.11/site-packages/keras/src/x_y.py"
    assert names.path("/home/ann/lib/python3.11/json/decoder.py").endswith("/lib/python3.11/json/decoder.py")
    assert "acmelib" not in names.path("/x/lib/python3.11/site-packages/acmelib/core.py")


def test_functions_of_public_files_stay() -> None:
    """What a session says of a library's function is no secret; the same word of the user's own file is."""
    names = pseudonyms()
    names.learn("/home/ann/churn.py", "Zebra.predict_churn")
    names.learn("/home/ann/venv/lib/python3.11/site-packages/keras/src/x.py", "Trainer.multi_step_on_iterator")
    assert names.text("__inference_multi_step_on_iterator_7405") == "__inference_multi_step_on_iterator_7405"
    assert "churn" not in names.text("predict_churn")
    assert names.path("/dev/shm/stepscope-1/arm/stepscope/agent/core/lines.py").endswith(
        "/stepscope/agent/core/lines.py"
    )


def test_names_that_are_made_of_a_users_function_keep_how_they_are_made() -> None:
    """AutoGraph's files and graphs of tf.functions are known by the begin of their names."""
    names = pseudonyms()
    assert names.text("__inference_predict_churn_12") == f"__inference_{names.of('predict_churn')}_12"
    assert names.path("/tmp/__autograph_generated_file7o8.py").startswith("/tmp/__autograph_generated_file")


def test_arguments() -> None:
    """Values of options are replaced as a whole, numbers too; the name of a public option stays."""
    names = pseudonyms()
    assert names.argument("--batch=64") == f"--batch={names.of('64')}"
    assert "acme" not in names.argument("--acme-mode=on")
    assert names.argument("train") != "train"


def test_what_stays_somewhere_is_not_looked_for() -> None:
    """A name that is part of a replaced one, but stays where it is of Python, a short folder, or an id, is no leak."""
    names = pseudonyms()
    names.learn("/home/ann/_bootstrap/train.py", "fit")
    names.learn("/usr/lib/python3.11/threading.py", "Thread._bootstrap")
    assert names.text("<frozen importlib._bootstrap_external>:10") == "<frozen importlib._bootstrap_external>:10"
    assert "zebra" not in names.text("<frozen zebra.train>")
    names.text("/home/zq/train.py was home/zq/train.py")
    names.text("/home/ann/captures/.native-1a21ceb7a69-a46867e5/perf.data is of 1a21ceb7a69-a46867e5")
    assert names.left == {"ann", "zebra"}
    assert words_of("1a21ceb7a69-a46867e5") & names.hidden == set()


def test_a_clock_domain_is_that_of_the_copy() -> None:
    """Links between hosts name a hash of what the copy has other words for."""
    names = pseudonyms()
    names.domains["00112233445566aa"] = "ffeeddccbbaa9988"
    assert names.text("clock:00112233445566aa 2").startswith("clock:ffeeddccbbaa9988 ")
    assert "00112233445566ab" not in names.text("clock:00112233445566ab 2")


def test_hidden_words_are_known() -> None:
    """What was replaced can be looked for afterwards, whatever number it ends in."""
    names = pseudonyms()
    names.text("zebra_7 and /home/ann/fraud_model.py")
    assert {"zebra", "ann", "fraud_model"} <= names.hidden
    assert words_of("the zebra_12") & names.hidden == {"zebra"}
