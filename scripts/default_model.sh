#!/bin/sh
# default_model.sh [default] [default-gpu] -- train the default cost models, of processors and of GPUs, from the carried records, into $B/models.
#
# Called by `make model`. Each is renamed into place when it is whole, so that a run that is
# interrupted leaves the old model or none.
set -eu
cd "$(dirname "$0")/.."
. scripts/tied.sh
B=${B:-build/release} W=build/model
name_of() { sed -n "s/^#define $1 \"\(.*\)\".*/\1/p" predictor/score/default_model.h; }
cpu=$(name_of CD_DEFAULT_MODEL) gpu=$(name_of CD_DEFAULT_MODEL_GPU)
mkdir -p "$W" "$B/models"

# train RECIPE NAME FOLDER...: the folders of examples whose records the recipe reads
train() {
    recipe=$1 name=$2
    shift 2
    for m; do
        # exit status 3: some records were rejected, as TVM rejects them; they are listed in $W/$m.h5.skipped.tsv
        $tied "$B/cdmpp-extract" -q --restart --tasks "examples/$m/$m.tasks.json.xz" --out "$W/$m.h5" "examples/$m/measure_records" 2>/dev/null || [ $? -eq 3 ]
    done
    $tied "$B/cdmpp-train" "configs/$recipe.yaml" --quiet --out "$W/$name" >"$W/$recipe.txt"
    grep '^test' "$W/$recipe.txt" || :
    mv "$W/$name" "$B/models/$name"
    echo "default cost model: $B/models/$name, $(($(wc -c <"$B/models/$name") / 1024)) KiB"
}

[ $# -gt 0 ] || set -- default default-gpu
for r; do
    case $r in
    default) train default "$cpu" granite zen4 turin zen5 ;;
    default-gpu) train default-gpu "$gpu" h200 ;;
    *) echo "default_model: expected default or default-gpu, found $r" >&2; exit 2 ;;
    esac
done
for old in "$B"/models/cdmpp-default-*.cdmpp; do # `make install` takes all that lie there
    case ${old##*/} in "$cpu" | "$gpu") ;; *) rm -f "$old" ;; esac
done
