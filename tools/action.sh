#!/usr/bin/env bash
# The steps of action.yml as functions. All input comes from the environment.
set -euo pipefail

# Installs the released program for this system into a folder on PATH, and checks it against the release's checksums.
install() {
    local target
    case "$SYSTEM" in
        Linux-X64) target=x86_64-unknown-linux-gnu ;;
        Linux-ARM64) target=aarch64-unknown-linux-gnu ;;
        macOS-ARM64) target=aarch64-apple-darwin ;;
        Windows-X64) target=x86_64-pc-windows-msvc ;;
        *) echo "::error::there is no released compeval for $SYSTEM"; exit 1 ;;
    esac
    if [ -z "$VERSION" ]; then
        case "$REF" in
            v[0-9]*.*.*) VERSION=$REF ;;
            *) VERSION=$(gh release view --repo "$REPOSITORY" --json tagName --jq .tagName) ;;
        esac
    fi
    local name="compeval-$VERSION-$target" folder
    folder=$(mktemp -d)
    cd "$folder"
    for file in "$name.tar.gz" SHA256SUMS; do
        curl --fail --silent --show-error --location --retry 3 --output "$file" \
            "$SERVER/$REPOSITORY/releases/download/$VERSION/$file"
    done
    local -a check=(sha256sum --check -)
    if ! command -v sha256sum >/dev/null; then check=(shasum --algorithm 256 --check -); fi
    grep -F " ./$name.tar.gz" SHA256SUMS | "${check[@]}"
    tar xzf "$name.tar.gz"
    echo "$folder/$name" >>"$GITHUB_PATH"
}

# Runs the whole matrix, a part, the merge of parts, or the self-test. The exit code is an output, so that reports can be
# kept before the job fails because of it.
run() {
    cd "$DIRECTORY"
    local -a words more
    local artifact=""
    # Both go into outputs, names of artifacts and a filter of jq, line by line and quoted, and the label into paths.
    case "$PART$LABEL" in
        *[$'\n\r"']*) echo "::error::part and label may have no line ends and no quotes"; exit 2 ;;
    esac
    case "$LABEL" in
        # Its folder in `results` is uploaded, as a pattern.
        "" | . | .. | *[/*?[]*) echo "::error::a label is a name: not empty, no dots alone, no slash, no wildcard"; exit 2 ;;
    esac
    # All lines of it are words.
    read -r -d '' -a more <<<"$ARGS" || true
    if [ "$SELFTEST" = true ]; then
        words=(judge selftest) artifact=selftest
    elif [ -n "$PART" ]; then
        # A slash cannot be in the name of an artifact.
        words=(run --label "$LABEL" --part "$PART") artifact=${PART/\//-of-}
    else
        words=(run --label "$LABEL" --junit compeval-junit.xml)
        if [ -n "$PARTS" ]; then words+=(--offline); fi
        if [ -n "$COMPARE_TO" ]; then
            words+=(--compare-to "$COMPARE_TO")
            if [ "$FAIL_ON_REGRESSION" = true ]; then words+=(--fail-on-regression); fi
        fi
    fi
    if [ -n "$REMOTE" ]; then
        words+=(--remote "$REMOTE")
    elif [ -n "$artifact$PARTS" ]; then
        # Downloaded artifacts have other file modes.
        mkdir -p "$MEETING" && chmod -R u+rwX,o= "$MEETING"
        words+=(--remote "fs://$MEETING")
    fi
    # Texts of models in the log are no commands.
    local code=0 token
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    echo "::stop-commands::$token"
    compeval "${words[@]}" "${more[@]+"${more[@]}"}" --no-progress || code=$?
    echo "::$token::"
    {
        echo "exit-code=$code"
        echo "artifact=$artifact"
        if [ -z "$artifact" ]; then echo "report=$DIRECTORY/results/$LABEL/report.html"; fi
    } >>"$GITHUB_OUTPUT"
    if [ -z "$artifact" ] && [ -f "results/$LABEL/report.md" ] && [ ! -L "results/$LABEL/report.md" ]; then
        head -c 900000 "results/$LABEL/report.md" >>"$GITHUB_STEP_SUMMARY"
    fi
}

# Links to elsewhere must not be uploaded with the results.
unlinked() {
    local folder="$DIRECTORY/results/$LABEL"
    if [ -L "$DIRECTORY/results" ] || [ -L "$DIRECTORY/compeval-junit.xml" ] || [ -n "$(find "$folder" ! -type f ! -type d 2>/dev/null | head -n 1)" ]; then
        echo "::error::there is a link or a special file in $folder; nothing is uploaded"
        exit 1
    fi
}

# Writes report.md into the comment of an earlier run, or into a new one.
comment() {
    if [ ! -f "$REPORT" ] || [ -L "$REPORT" ]; then echo "there is no report to comment with"; exit 0; fi
    local mark="<!-- compeval: $LABEL -->" body id
    body=$(mktemp)
    {
        echo "$mark"
        # A comment has at most 65,536 characters.
        head -c 60000 "$REPORT" | iconv -c -f utf-8 -t utf-8
        echo
        if [ "$(wc -c <"$REPORT")" -gt 60000 ]; then echo "The report is cut off here. "; fi
        echo "[report.html]($RUN_URL#artifacts)"
    } >"$body"
    id=$(gh api --paginate "repos/$REPOSITORY/issues/$NUMBER/comments" \
        --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1) || true
    local -a target=(--method POST "repos/$REPOSITORY/issues/$NUMBER/comments")
    if [ -n "$id" ]; then target=(--method PATCH "repos/$REPOSITORY/issues/comments/$id"); fi
    if ! gh api "${target[@]}" --field body=@"$body" --silent; then
        # The token of a pull request from a fork may not write comments.
        echo "::warning::the comment was not written; the report is in the summary and in the artifact"
    fi
}

"$1"
