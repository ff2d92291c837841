#!/bin/sh
# results_page.sh -- docs/results/models.md from the tables that results.sh left in $W.
set -eu
head='| set | split | model | n | MAPE | median | RMSE(log) | within 20 % | Spearman | 90 % interval holds | MAPE least certain tenth / rest | out-of-fold MAPE (n) |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |'
table() { # section, title, text
    [ -s "$W/$1.table" ] || return 0
    printf '\n## %s\n\n%s\n\n%s\n' "$2" "$3" "$head"
    cat "$W/$1.table"
    printf '\nCommands, in this order:\n\n'
    cat "$W/$1.commands"
}
cat <<END
# Results

Written by \`make results\` (scripts/results.sh, seed $SEED) with $("$B/cdmpp-train" --version | head -1) from the sets tenset-cpu and
gpu-ansor (docs/reference/data.md); failed measurements and rejected programs are left out. n, MAPE and all that follows are of the
test part, in %, but for RMSE(log) (natural) and Spearman (within a task, mean); the last column is of programs judged by
members that never saw them. *XGBoost* is \`configs/baseline-xgb.yaml\`: sums and maxima of the same rows, squared error of
log(latency), the median as the answer. *cdmpp* is the set's own configuration: its answer is the point of least MAPE
(docs/reference/model.md), which lies below the median. The test part is read once, after everything is decided; which inputs, sizes
and losses to use was decided on out-of-fold programs of the zen5 and v100 task splits with seed 1 (epochs and tokens of zen5: seeds 1 to 3). A run can be stopped and goes on: rows that are missing below were not run yet.
END
table protocol "CDMPP's protocol" "Interleaved by latency, all leaf counts, all records. Test programs have neighbours of their own task in training.
CDMPP's own figures are 16.93 % on V100 and 10.26 % on K80, of other programs, with five leaves only. Filter std/mean <= 1 %: these records hold one time each, so nothing is dropped."
table task "Operators never seen" "Whole tasks held out; on the GPUs 100 programs of a task are drawn before the split."
table draws "Operators never seen, other draws" "The same with other seeds of the split: how far one draw of the tasks can be trusted, above all its intervals."
[ ! -s "$W/tuner.table" ] || {
    printf '\n## Profile tuner\n\nThe small network in the same model files (docs/reference/model.md), on the test parts of the draws above: first the whole model, then the tuner; at the end the Spearman of both out of fold (n).\n\n'
    printf '| set | split | n | MAPE | Spearman | top-1 | top-5 | MAPE | Spearman | top-1 | top-5 | out of fold |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n'
    cat "$W/tuner.table"
}
table network "Networks never seen" "All tasks of a network held out, also those that other networks share."
table transfer "A device of which little is known" "Two GPUs to the third. Tasks of the target are cut into test, validation and candidates; K candidates are chosen from features alone (kmeans) or at random, and are trained on beside the other GPUs (30 programs a task), which may have measured the test tasks too. The last K is all candidates."
[ ! -s "$W/transfer.table" ] || {
    printf '\nMean and standard deviation of the MAPE over the seeds:\n\n| target | tasks of the target | seeds | MAPE |\n| --- | --- | ---: | ---: |\n'
    awk -F' *[|] *' '{ split($2, t, ","); k = t[1] " | " $3; if (!(k in n)) order[++m] = k; n[k]++; s[k] += $6; q[k] += $6 * $6 }
        END { for (i = 1; i <= m; i++) { k = order[i]; v = n[k] > 1 ? (q[k] - s[k] * s[k] / n[k]) / (n[k] - 1) : 0
              printf "| %s | %d | %.1f +- %.1f |\n", k, n[k], s[k] / n[k], sqrt(v > 0 ? v : 0) } }' "$W/transfer.table"
}
table ablation "What the parts are worth" "One network (a single training, no folds), held-out networks of zen5."
[ ! -s "$W/replay.table" ] || {
    printf '\n## Replay search\n\nTuners on recorded measurements (docs/reference/tune.md), only tasks that the model of that draw was not trained or stopped on: best known seconds of the log / best found\nafter so many trials, in %%: median (quartiles) mean over tasks, of each the mean over seeds; batches of 10; last column: processor seconds of the search per task. On the GPUs after 10, 50, 100 trials\nof about 1,000 programs a task; on zen5 after 5, 10, 20 of 20 to 24. How cdmpp ranks was chosen on the GPU draws of seed 2; 3 and 4 are\nuntouched. The GPU logs are what a tuner measured while it searched, nearly all of it good, so even random programs come near the best quickly: look at\nthe quartiles and means too.\n\n'
    printf '| set | split seed | tuner | tasks | seeds | 10 (zen5: 5) | 50 (10) | 100 (20) | search s |\n| --- | ---: | --- | ---: | ---: | --- | --- | --- | ---: |\n'
    cat "$W/replay.table"
    printf '\nCommands, in this order (draws-SET-SEED.cdmpp: the models of the other draws above):\n\n'
    cat "$W/replay.commands"
}
