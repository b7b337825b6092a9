#!/bin/sh
# Trains while the search index of last night's data is being rebuilt.
cd "$(dirname "$0")"
python=${PYTHON:-python3}
for shard in 0 1 2 3 4 5; do
  python3 indexer.py "$shard" &
  started="$started $!"
done
$python train.py
code=$?
kill $started
exit $code
