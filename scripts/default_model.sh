#!/bin/sh
# default_model.sh -- train the default cost model from the carried records, into $B/models.
#
# Called by `make model`. The result is renamed into place when it is whole, so that a run that is
# interrupted leaves the old model or none.
set -eu
cd "$(dirname "$0")/.."
B=${B:-build/release} W=build/model
name=$(sed -n 's/^#define CD_DEFAULT_MODEL "\(.*\)"/\1/p' predictor/score/default_model.h)
mkdir -p "$W" "$B/models"
for m in granite zen4 zen5; do
    # exit status 3: some records were rejected, as TVM rejects them; they are listed in $W/$m.h5.skipped.tsv
    "$B/cdmpp-extract" -q --restart --tasks "examples/$m/$m.tasks.json.xz" --out "$W/$m.h5" "examples/$m/measure_records" 2>/dev/null || [ $? -eq 3 ]
done
"$B/cdmpp-train" configs/default.yaml --quiet --out "$W/$name" >"$W/train.txt"
grep '^test' "$W/train.txt" || :
mv "$W/$name" "$B/models/$name"
for old in "$B"/models/cdmpp-default-*.cdmpp; do [ "$old" = "$B/models/$name" ] || rm -f "$old"; done # `make install` takes all that lie there
echo "default cost model: $B/models/$name, $(($(wc -c <"$B/models/$name") / 1024)) KiB"
