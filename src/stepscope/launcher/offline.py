"""Settings that keep trackers and hubs of models from sending: a trial is no experiment of the user's.

Where the program chooses a mode itself, they have no effect: what then holds is that the trial has no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.sandbox.isolated_mounts import SHARED_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

TRACKERS = {
    "WANDB_MODE": "offline",
    "COMET_START_ONLINE": "0",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "offline",
    "MLFLOW_ALLOW_FILE_STORE": "true",
}
"""Trackers that write to the working directory instead. Sources: docs.wandb.ai/support/run_wandb_offline,
huggingface.co/docs/transformers/main_classes/callback (COMET_START_ONLINE), docs.neptune.ai/offline,
clear.ml/docs/latest/docs/guides/set_offline, docs.swanlab.cn/en/api/cli-swanlab-offline; MLflow since 3.13 refuses
a folder without its variable (mlflow.org/docs/latest/self-hosting/migrate-from-file-store)."""
HUBS = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""What reads from a hub takes its cache at once, without trying the network. Sources:
huggingface.co/docs/huggingface_hub/package_reference/environment_variables,
huggingface.co/docs/transformers/installation (offline mode), huggingface.co/docs/datasets/loading (offline)."""
_MLFLOW, _MLFLOW_MODELS = "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"
"""URIs; that of a local folder sends nothing. The second one is the first if it is not set. Source:
mlflow.org/docs/latest/tracking."""
_OFF = frozenset({"disabled", "offline", "dryrun", "debug"})
"""Modes of the user's own that send nothing either."""


def environment(before: Mapping[str, str], *, network: bool, folder: str = SHARED_MEMORY) -> dict[str, str]:
    """Copy ``before`` with all trackers offline, and all hubs too unless the trial has the network.

    ``folder``: one that does not outlive the trial.
    """
    wanted = TRACKERS | ({} if network else HUBS)
    kept = {name for name in wanted if before.get(name, "").lower() in _OFF}
    changed = {name: value for name, value in wanted.items() if name not in kept}
    uri = f"file://{folder}/mlruns"
    return {
        **before,
        **changed,
        **{name: uri for name in (_MLFLOW, _MLFLOW_MODELS) if name == _MLFLOW or name in before},
    }
