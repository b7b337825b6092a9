"""Secrets are masked, ordinary words are not."""

import pytest

from stepscope.launcher.mask import mask_command, mask_environment, mask_source, mask_text


@pytest.mark.parametrize(
    ("argv", "masked"),
    [
        (["train.py", "--api-key=abc"], ["train.py", "--api-key=***"]),
        (["train.py", "--token", "abc", "--lr", "0.1"], ["train.py", "--token", "***", "--lr", "0.1"]),
        (["train.py", "--token", "--lr", "0.1"], ["train.py", "--token", "--lr", "0.1"]),
        (
            ["env", "WANDB_API_KEY=abc", "AWS_SECRET_ACCESS_KEY=x", "python"],
            ["env", "WANDB_API_KEY=***", "AWS_SECRET_ACCESS_KEY=***", "python"],
        ),
        (["git", "clone", "https://me:pass@host/x"], ["git", "clone", "https://me:***@host/x"]),
        (["x", "hf_abcdefghijklmnopqrstuv"], ["x", "***"]),
        (["x", "ghp_abcdefghijklmnopqrstuvwxyz"], ["x", "***"]),
        (["train.py", "--db-password", "p"], ["train.py", "--db-password", "***"]),
    ],
)
def test_secrets_of_commands(argv: list[str], masked: list[str]) -> None:
    """Values of options and variables that name a secret, tokens and passwords in addresses are masked."""
    assert mask_command(argv) == masked


@pytest.mark.parametrize(
    "argv",
    [
        ["train.py", "--max-tokens-per-batch=512", "--keyboard", "x", "--tokenizer", "bert", "--monkey=1"],
        ["train.py", "--key-dim=64", "--num-heads", "8", "--author", "me", "--passes", "3"],
        ["python", "-m", "pkg", "--data", "gs://bucket/secretary/x.tfrecord"],
    ],
)
def test_ordinary_words_stay(argv: list[str]) -> None:
    """Options whose names only resemble a secret's keep their values."""
    assert mask_command(argv) == argv


def test_text_and_environment() -> None:
    """Command lines in one string and environments are masked alike."""
    assert mask_text("python train.py --token abc") == "python train.py --token ***"
    assert mask_environment({"HF_TOKEN": "abc", "PATH": "/bin", "DATABASE_URL": "pg://u:p@h"}) == {
        "HF_TOKEN": "***",
        "PATH": "/bin",
        "DATABASE_URL": "pg://u:***@h",
    }


def test_source_keeps_its_lines() -> None:
    """Masking a source changes literals only: every line stays where it was."""
    source = (
        'API_KEY = "abcdef"\n'
        "client(password='hunter22', name='me')\n"
        'tokenizer = "bert-base"\n'
        "pem = '''-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----'''\n"
        "model.add(Dense(3))\n"
    )
    masked = mask_source(source)
    assert masked.splitlines()[0] == 'API_KEY = "***"'
    assert masked.splitlines()[1] == "client(password='***', name='me')"
    assert masked.splitlines()[2] == 'tokenizer = "bert-base"'
    assert "abc" not in masked
    assert len(masked.splitlines()) == len(source.splitlines())
    assert masked.splitlines()[-1] == "model.add(Dense(3))"
