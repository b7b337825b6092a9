#!/bin/sh
# Trains; the search index of last night's data is rebuilt when no training runs.
cd "$(dirname "$0")"
python=${PYTHON:-python3}
exec $python train.py
