#!/bin/sh
# A task of an AWS Batch array: fetches the project, runs its shard, and stores the shard's folder whatever happens.
# BUCKET is s3://NAME/PREFIX; the job's role may read BUCKET/project and write BUCKET/shards.
set -eu

LABEL=${LABEL:-nightly}
aws s3 sync --only-show-errors "$BUCKET/project" .
# What an earlier attempt of this shard paid for.
aws s3 sync --only-show-errors "$BUCKET/shards/$AWS_BATCH_JOB_ARRAY_INDEX" results/.shards

store() { aws s3 sync --only-show-errors results/.shards "$BUCKET/shards/$AWS_BATCH_JOB_ARRAY_INDEX"; }
compeval run --label "$LABEL" --shard auto --selftest selftest.bin --no-progress &
run=$!
# Spot capacity goes away two minutes after SIGTERM: compeval stops, and what it has is stored.
stopped=
trap 'stopped=1; kill -TERM $run' TERM
# While it runs, every five minutes.
while sleep "${STORE_EVERY:-300}" && kill -0 $run 2>/dev/null; do store || true; done >/dev/null 2>&1 &
store_loop=$!
code=0
wait $run || code=$?
# The signal ended the first wait.
if [ -n "$stopped" ]; then code=0; wait $run || code=$?; fi
kill $store_loop 2>/dev/null || true
store
exit $code
