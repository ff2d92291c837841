#!/bin/sh
# models.sh [cpu] [gpu] [llm] -- train the models of models/ again and compare them with those that are there.
#
# Each is trained into build/model, from the records of examples/ (cpu, gpu) and, where CDMPP_DATA names them, from the
# public tables of models/README.md (gpu, llm; without them these are left out). Then both answer the same questions
# (scripts/compare_models.py). SHIP=1 replaces the models and their provenance instead.
# Called by `make model`.
set -eu
cd "$(dirname "$0")/.."
. scripts/tied.sh
B=${B:-build/release} W=build/model D=${CDMPP_DATA:-} JOBS=${JOBS:-$(nproc)}
mkdir -p "$W"

# extract FOLDER...: records of examples/FOLDER into $W/FOLDER.h5
extract() {
    for e; do
        tasks=examples/$e/$e.tasks.json.xz
        [ -f "$tasks" ] || tasks=examples/turin/turin.tasks.json.xz # zen3 has the programs of turin
        # exit status 3: some records were rejected, as TVM rejects them; they are listed in $W/$e.h5.skipped.tsv
        $tied "$B/cdmpp-extract" -q --restart --tasks "$tasks" --out "$W/$e.h5" "examples/$e/measure_records" || [ $? -eq 3 ]
    done
}
# extract_sample DEVICE N: at most N records of each task of the archive of gpu-ansor, into $W/DEVICE.h5
extract_sample() {
    rm -rf "$W/ansor-$1"
    mkdir -p "$W/ansor-$1/of/$1"
    tar -xJf "$D/gpu-ansor/$1.tar.xz" -C "$W/ansor-$1"
    python3 -B scripts/sample_logs.py "$W/ansor-$1/measure_records/$1" "$W/ansor-$1/of/$1/programs.json" "$2"
    $tied "$B/cdmpp-extract" -q --restart --tasks "$D/gpu-ansor/network_info/all_tasks.pkl" --out "$W/$1.h5" "$W/ansor-$1/of" || [ $? -eq 3 ]
    rm -rf "$W/ansor-$1"
}
train() { # NAME RECIPE [OPTION...]
    name=$1 recipe=$2
    shift 2
    echo "models: training $name by configs/$recipe.yaml"
    $tied "$B/cdmpp-train" "configs/$recipe.yaml" --quiet -j "$JOBS" "$@" --out "$W/$name.cdmpp" >"$W/$name.txt" || [ $? -eq 3 ]
    grep '^test' "$W/$name.txt" || :
}

[ $# -gt 0 ] || set -- cpu gpu llm
done=
for m; do
    case $m in
    cpu) extract granite zen4 turin zen5 zen3 && train cpu default ;;
    gpu)
        [ -d "$D/gpu-ansor" ] || { echo "models: gpu is left out: CDMPP_DATA names no folder with gpu-ansor"; continue; }
        extract h200
        extract_sample v100 48
        extract_sample k80 32
        extract_sample mi50 32
        train gpu default-gpu ;;
    llm)
        [ -d "$D/llm/aic" ] || { echo "models: llm is left out: CDMPP_DATA names no folder with llm/aic"; continue; }
        ln -sfn "$D/llm/aic" "$W/aic" # no path of this machine in the file
        train llm llm-operators --set data.files="[$W/aic,examples/h200/operators]" ;;
    *) echo "models: expected cpu, gpu or llm, found $m" >&2; exit 2 ;;
    esac
    done="$done $m"
done
[ -n "$done" ] || { echo "models: nothing was trained" >&2; exit 1; }
# shellcheck disable=SC2086 # a list of names
python3 -B scripts/compare_models.py ${SHIP:+--ship} $done
