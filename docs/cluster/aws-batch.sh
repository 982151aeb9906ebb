#!/bin/sh
# A task of an AWS Batch array: fetches the project and runs its part, which it pushes while it runs.
# BUCKET is s3://NAME/PREFIX; the job's role may read BUCKET/project, and read and write BUCKET/remote.
set -eu

LABEL=${LABEL:-nightly}
aws s3 sync --only-show-errors "$BUCKET/project" .
# Spot capacity goes away two minutes after SIGTERM, so compeval takes the place of this process.
exec compeval run --label "$LABEL" --part auto --remote "${REMOTE:-$BUCKET/remote}" --no-progress
