# What a model is, in ten lines; with --json its header as it is in the file
. "$T/lib.sh"
cdmpp-extract -q --tasks "$K" --out a.h5 "$HELD"
cdmpp-train "$ROOT/configs/quickstart.yaml" -q --set data.files=a.h5 --set train.rounds=3 --out a.cdmpp >/dev/null
for m in a.cdmpp "$ROOT/tests/golden/model_v1.cdmpp" "$ROOT/tests/golden/operators_v1.cdmpp" "$ROOT/models/llm.cdmpp"; do
    cp "$m" m.cdmpp
    touch -d 2026-01-02T03:04:05Z m.cdmpp
    cdmpp-predict --info --cost-model m.cdmpp | sed 's/[0-9.]* %/N %/g; s/^size .*iB$/size N/; s/[0-9a-f]\{12\}$/DIGEST/; s/[0-9,]* rows/N rows/'
done
cdmpp-predict --info --operators --cost-model "$ROOT/tests/golden/operators_v1.cdmpp" | wc -l
cdmpp-predict --info --json --cost-model a.cdmpp | cut -c 1-22
head -c 100 a.cdmpp >cut.cdmpp
cdmpp-predict --info --cost-model cut.cdmpp; echo "status $?"
