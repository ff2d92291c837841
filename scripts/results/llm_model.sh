# shellcheck shell=sh
# llm_model.sh -- of the stages batches and throughput, which read it: one model of operators of four GPUs, $W/llm.cdmpp. $B: commands; $D: llm of the data; $root: the project.
if [ ! -s "$W/llm.cdmpp" ]; then
    "$B/cdmpp-train" configs/llm-operators.yaml --quiet -j "${JOBS:-2}" --out "$W/llm.tmp" --set data.files="[$D/aic]" --set operators.max_rows="${MAX_ROWS:-12000}" \
        --set operators.seed="${SEED:-1}" --set device.file="$root/configs/devices.yaml" >"$W/llm.txt" || [ $? -eq 3 ]
    mv "$W/llm.tmp" "$W/llm.cdmpp"
fi
