#!/bin/sh
# models.sh -- every model on every data set and split: figures of the stages models-* and tune-replay (called by run.sh).
#
#   run.sh models             protocol, task, draws, tuner, network, transfer, ablation
#   run.sh search             tuners on recorded measurements, by the models of draws (search.sh)
#   run.sh fresh              draws of tasks that nothing was chosen by, without profile tuner (fresh.sh)
#
# Sets are unpacked and extracted once into $W; a training whose figures are there already is not repeated, so a run that was stopped goes
# on. $W is of one code, configuration and data (run.sh). About two hours on two cores.
set -eu
D=$CDMPP_DATA
[ -n "${SECTIONS:-}" ] || SECTIONS="protocol task draws network transfer ablation"
HEAD='| set | split | model | n | MAPE | median | MAE(log) | RMSE(log) | within 20 % | Spearman | 90 % interval holds | MAPE least certain tenth / rest | out-of-fold MAPE (n) |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |'
TUNER='| set | split | n | MAPE | Spearman | top-1 | top-5 | MAPE, tuner | Spearman, tuner | top-1, tuner | top-5, tuner | out of fold |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
SEARCH='| set | split seed | tuner | tasks | seeds | 10 (zen5: 5) | 50 (10) | 100 (20) | search s |
| --- | ---: | --- | ---: | ---: | --- | --- | --- | ---: |'
put() { python3 -B scripts/results/figures.py put "$@"; } # stage, tables
page() { # section, stage, head of its table
    { echo "$3"; cat "$W/$1.table"; } >"$W/$1.md"
    TEST_SETS=$(sets_of "$1") put "$2" "table:main=$W/$1.md" "text:commands=$W/$1.commands"
}
sets_of() {
    case $1 in
    protocol) echo interleaved ;; task) echo tasks-zen5 tasks-gpu ;; draws | tuner) echo task-draws ;;
    fresh) echo fresh-draws-2 ;; network | ablation) echo networks-of-programs ;; tilted) echo tasks-zen5 tasks-gpu networks-of-programs ;; transfer) echo transfer ;; replay) echo search-replay ;;
    esac
}

# ---- data ----
extract() { # set
    [ -f "$W/$1.h5" ] && return
    mkdir -p "$W/x_$1"
    case $1 in
    zen5) tar=tenset-cpu/records.tar.xz tasks=tenset-cpu/network_info ;;
    *) tar=gpu-ansor/$1.tar.xz tasks=gpu-ansor/network_info ;;
    esac
    tar -xJf "$D/$tar" -C "$W/x_$1"
    # 3: some records were rejected, as TVM rejects them; they are listed beside the file
    "$B/cdmpp-extract" -q -j "$JOBS" --tasks "$D/$tasks" --out "$W/$1.h5" "$W/x_$1/measure_records" || [ $? -eq 3 ]
    rm -rf "$W/x_$1"
}
for s in zen5 v100 k80 mi50; do extract "$s"; done

# ---- one row ----
# number KEY of the object $json, times FACTOR with DIGITS digits; - where null
get() {
    printf '%s' "$json" | tr ',{}' '\n\n\n' | awk -F: -v k="\"$1\"" -v f="$2" -v d="$3" \
        '$1 == k { if ($2 == "null") print "-"; else printf "%.*f\n", d, f * $2; exit }'
}
object() { grep -o "\"$1\":{\"$2\":[^}]*}" "$3" | head -1; } # part, first key, file

# section, set, split, model, configuration, further options
run() {
    section=$1; set_=$2; split=$3; model=$4; config=$5; shift 5
    f="$W/$(echo "$section $set_ $split $model $SEED" | tr -c 'a-zA-Z0-9_.\n' -)"
    if [ ! -s "$f.json" ]; then
        "$B/cdmpp-train" "configs/$config.yaml" --quiet --json -j "$JOBS" --checkpoint "$f.members" --out "$f.cdmpp" "$@" >"$f.tmp" || { rm -f "$f.tmp"; return 1; }
        mv "$f.tmp" "$f.json"
        echo "results: $section, $set_, $split, $model done" >&2
    fi
    json=$(object validation n "$f.json"); valid="$(get mape 100 1) ($(get n 1 0))"
    json=$(object test n "$f.json")
    line="| $set_ | $split | $model | $(get n 1 0) | $(get mape 100 1) | $(get median_ape 100 1) | $(get mae_log 1 3) | $(get rmse_log 1 3) | $(get within_20 100 1) | $(get spearman 1 3) |"
    json=$(object test measured_inside "$f.json")
    echo "$line $(get measured_inside 100 1) | $(get least_certain_mape 100 1) / $(get rest_mape 100 1) | $valid |" >>"$W/$section.table"
    printf '    cdmpp-train configs/%s.yaml' "$config" >>"$W/$section.commands"
    printf ' %s' "$@" | sed "s|$W/|data/|g" >>"$W/$section.commands"
    echo >>"$W/$section.commands"
}

with() { # "key=value key=value" -> --set options, one a line
    for o in $1; do echo "--set"; echo "$o"; done
}
# shellcheck disable=SC2046  # options hold no blanks
row() { section=$1 set_=$2 split=$3 model=$4 config=$5; run "$section" "$set_" "$split" "$model" "$config" $(with "$6"); }

# a set, ours and plain XGBoost on the same programs
pair() { # section, set, label, options
    case $2 in
    zen5) more="data.files=$W/zen5.h5 data.devices=[zen5-avx512] filter.max_per_task=0 split.test=0.2" ;;
    *) more="data.files=$W/$2.h5" ;;
    esac
    row "$1" "$2" "$3" XGBoost baseline-xgb "$more split.seed=$SEED $4"
    row "$1" "$2" "$3" cdmpp "$2" "$more split.seed=$SEED $4"
}

protocol() { # the original's: test programs have neighbours of their own task in training
    for s in v100 k80; do
        more="data.files=$W/$s.h5 split.seed=$SEED split.kind=interleaved split.valid=0.1 filter.max_per_task=0 model.folds=1"
        row protocol $s interleaved XGBoost baseline-xgb "$more"
        row protocol $s interleaved cdmpp $s "$more model.members=[rows,program,transformer]" # a network pays where tasks are known
    done
}
task() { for s in v100 k80 mi50 zen5; do pair task $s task split.kind=task; done; }
draws() { # the task split again, other tasks; and what profile tuner makes of the same test parts
    : >"$W/tuner.table"
    for s in zen5 v100 k80 mi50; do
        for seed in 2 3 4; do
            case $s in
            zen5) more="data.files=$W/zen5.h5 data.devices=[zen5-avx512] filter.max_per_task=0 split.test=0.2" ;;
            *) more="data.files=$W/$s.h5" ;;
            esac
            row draws $s "task, seed $seed" cdmpp $s "$more split.seed=$seed split.kind=task"
            tuner_row $s $seed
        done
    done
}
fresh() { # the same with seeds that no look was taken at before
    for s in mi50 k80 v100 zen5; do
        case $s in
        zen5) more="data.files=$W/zen5.h5 data.devices=[zen5-avx512] filter.max_per_task=0 split.test=0.2" ;;
        *) more="data.files=$W/$s.h5" ;;
        esac
        for seed in 9 10 11 12; do row fresh $s "task, seed $seed" cdmpp $s "$more split.seed=$seed split.kind=task model.tuner=false"; done
    done
}
tuner_row() { # set, seed; of the file that was written last
    line="| $1 | task, seed $2"
    t=$(grep -o '"tuner_metrics":{"test":{[^}]*},"validation":{[^}]*}' "$f.json")
    for json in "$(object test n "$f.json")" "${t%%\}*}"; do
        [ "$line" = "| $1 | task, seed $2" ] && line="$line | $(get n 1 0)"
        line="$line | $(get mape 100 1) | $(get spearman 1 3) | $(get top1 1 3) | $(get top5 1 3)"
    done
    json=$(object validation n "$f.json"); line="$line | $(get spearman 1 3)"
    json=${t#*\}}; line="$line / $(get spearman 1 3) ($(get n 1 0))"
    echo "$line |" >>"$W/tuner.table"
}
# XGBoost that answers with the point of least MAPE, as cdmpp does: the opponent for the bars.
tilted() {
    for s in v100 k80 mi50 zen5; do fair $s task split.kind=task; done
    fair v100 "without nasnet_large" "split.kind=network split.test_names=nasnet_large"
    for n in mobilenet_v3 resnet_18 inception_v3 bert_medium; do fair zen5 "without $n" "split.kind=network split.test_names=$n"; done
}
fair() { # set, label, options
    case $1 in
    zen5) more="data.files=$W/zen5.h5 data.devices=[zen5-avx512] filter.max_per_task=0 split.test=0.2" ;;
    *) more="data.files=$W/$1.h5" ;;
    esac
    row tilted "$1" "$2" "XGBoost, tilted" baseline-xgb "$more split.seed=$SEED predict.point=mape $3"
}
network() {
    for n in nasnet_large; do pair network v100 "without $n" "split.kind=network split.test_names=$n"; done
    for n in mobilenet_v3 resnet_18 inception_v3 bert_medium; do
        pair network zen5 "without $n" "split.kind=network split.test_names=$n"
    done
}
transfer() { # two GPUs to the third, K of whose tasks were measured
    for t in mi50 v100; do
        for seed in 1 2 3 4 5; do
            files="data.files=[$W/k80.h5,$W/mi50.h5,$W/v100.h5]"
            row transfer "$t, seed $seed" "K = 0" cdmpp "cross-device-$t" "$files filter.max_per_task=30 split.target_tasks=0 split.test=0.2 split.seed=$seed"
            for k in 10 20 50 all; do
                case $t$k in mi5050) continue ;; mi50all) n=40 ;; v100all) n=97 ;; *) n=$k ;; esac
                for how in kmeans random; do
                    [ "$k$how" = allrandom ] && continue
                    row transfer "$t, seed $seed" "K = $n, $how" cdmpp "cross-device-$t" \
                        "$files filter.max_per_task=30 split.target_tasks=$n split.target_select=$how split.test=0.2 split.seed=$seed"
                done
            done
        done
    done
}
ablation() {
    z="data.files=$W/zen5.h5 split.seed=$SEED"
    for n in mobilenet_v3 resnet_18; do
        o="$z split.test_names=$n"
        row ablation zen5 "without $n" "two layers, loop context, CDMPP's positions" ablation-pe "$o"
        row ablation zen5 "without $n" "- positions" ablation-pe "$o net.position=none"
        row ablation zen5 "without $n" "- loop context" ablation-pe "$o net.context=false"
        row ablation zen5 "without $n" "rows alone, no attention (default)" ablation-cmd "$o fit.loss=1mape_s"
        row ablation zen5 "without $n" "leaves of the AST for rows" ablation-cmd "$o fit.loss=1mape_s net.tokens=leaves"
        row ablation zen5 "without $n" "+ CMD" ablation-cmd "$o"
        row ablation zen5 "without $n" "head pool, loss 1000mse+1mape of Box-Cox labels" ablation-loss "$o"
        row ablation zen5 "without $n" "head pool, loss 1mape_s" ablation-loss "$o fit.loss=1mape_s fit.label=log"
        row ablation zen5 "without $n" "default, loss 1huber_log" ablation-loss "$o net.head=sum fit.loss=1huber_log fit.label=log"
        row ablation zen5 "without $n" "the recursive baseline (lstm)" baseline-lstm "$o data.devices=[zen5-avx512] split.kind=network filter.max_per_task=0"
        row ablation zen5 "without $n" "multilayer perceptron" baseline-mlp "$o data.devices=[zen5-avx512] split.kind=network model.folds=1 filter.max_per_task=0"
        for l in log box_cox yeo_johnson quantile_normal standard; do
            row ablation zen5 "without $n" "label $l, loss 1mse, head pool" ablation-label "$o fit.label=$l"
        done
    done
}

# ---- tuners on the tasks that the models of `draws` have not seen ----
# set, seed, part, tuners, numbers of seeds, trials, of which, least programs
replay_run() {
    f="$W/replay-$1-$2-$3"
    model=$W/$(echo "draws $1 task, seed $2 cdmpp $SEED" | tr -c 'a-zA-Z0-9_.\n' -).cdmpp
    [ -s "$model" ] || return 0
    case $1 in zen5) d=tenset-cpu tar=records.tar.xz logs=zen5-avx512 ;; *) d=gpu-ansor tar=$1.tar.xz logs=$1 ;; esac
    if [ ! -s "$f.json" ]; then
        [ -d "$W/r_$1" ] || { mkdir -p "$W/r_$1" && tar -xJf "$D/$d/$tar" -C "$W/r_$1"; }
        "$B/cdmpp-tune" --replay --compare "$4" --seeds "$5" --trials "$6" --at "$7" --min "$8" --model "$model" --data "$W/$1.h5" \
            --tasks "$D/$d/network_info" -j "$JOBS" --json "$W/r_$1/measure_records/$logs" >"$f.tmp" || { rm -f "$f.tmp"; return 1; }
        mv "$f.tmp" "$f.json"
    fi
    grep -o '{"tuner":[^}]*}' "$f.json" | tr -d '{}"' | awk -F'[:,]' -v set_="$1" -v seed="$2" '
        { for (k = 1; k < NF; k += 2) v[$k] = $(k + 1)
          if (v["tuner"] != last) { if (last != "") print line " " sprintf("%.2f", was) " |"; line = "| " set_ " | " seed " | " v["tuner"] " | " v["tasks"] " | " v["seeds"] " |" }
          last = v["tuner"]; was = v["search_s"]
          line = line sprintf(" %.1f (%.1f..%.1f) %.1f |", 100 * v["median"], 100 * v["lower"], 100 * v["upper"], 100 * v["mean"]) }
        END { print line " " sprintf("%.2f", v["search_s"]) " |" }' >>"$W/replay.table"
    printf '    cdmpp-tune --replay --compare %s --seeds %s --trials %s --at %s --min %s --model draws-%s-%s.cdmpp --data %s.h5 --tasks network_info %s\n' \
        "$4" "$5" "$6" "$7" "$8" "$1" "$2" "$1" "$logs" >>"$W/replay.commands"
}
replay() {
    for seed in 2 3 4; do
        for s in v100 k80 mi50; do
            replay_run $s $seed main random,cdmpp,cdmpp-evo 3 100 10,50,100 32
            replay_run $s $seed xgb ansor,xgb 1 100 10,50,100 32
        done
        replay_run zen5 $seed main random,cdmpp,cdmpp-evo,ansor,xgb 3 20 5,10,20 20
    done
    for s in v100 k80 mi50 zen5; do rm -rf "$W/r_$s"; done
}

for this in $SECTIONS; do # the functions have names of their own for the rest
    : >"$W/$this.table"; : >"$W/$this.commands"
    "$this"
    case " ${PAGES:-$SECTIONS} " in *" $this "*) ;; *) continue ;; esac
    case $this in replay) page replay tune-replay "$SEARCH" ;; *) page "$this" "models-$this" "$HEAD" ;; esac
    if [ "$this" = draws ]; then : >"$W/tuner.commands"; page tuner models-tuner "$TUNER"; fi
done
