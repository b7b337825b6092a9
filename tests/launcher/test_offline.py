"""Trackers and hubs are offline in a trial."""

import pytest

from stepscope.launcher import offline


def test_trackers_are_offline() -> None:
    """All of them are, with the user's own settings kept otherwise."""
    found = offline.environment(
        {"HOME": "/h", "WANDB_MODE": "online", "MLFLOW_TRACKING_URI": "http://x"}, network=False
    )
    assert found["HOME"] == "/h"
    assert found["MLFLOW_TRACKING_URI"] == "file:///dev/shm/mlruns"
    assert {**offline.TRACKERS, **offline.HUBS}.items() <= found.items()


@pytest.mark.parametrize("mode", ["disabled", "offline", "dryrun"])
def test_modes_that_send_nothing_are_kept(mode: str) -> None:
    """A user who has switched a tracker off does not get it offline."""
    assert offline.environment({"WANDB_MODE": mode}, network=False)["WANDB_MODE"] == mode


def test_hubs_are_left_to_a_trial_with_network() -> None:
    """With the network, data may be read from hubs, and trackers still send nothing."""
    found = offline.environment({}, network=True)
    assert not offline.HUBS.keys() & found.keys()
    assert offline.TRACKERS.items() <= found.items()


def test_models_of_mlflow_stay_inside() -> None:
    """A registry of models that the user names is a local folder, too, which MLflow is allowed to use."""
    found = offline.environment({"MLFLOW_REGISTRY_URI": "http://x"}, network=True)
    assert found["MLFLOW_REGISTRY_URI"] == found["MLFLOW_TRACKING_URI"]
    assert found["MLFLOW_ALLOW_FILE_STORE"] == "true"
    assert "MLFLOW_REGISTRY_URI" not in offline.environment({}, network=True)
