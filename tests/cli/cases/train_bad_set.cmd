cdmpp-train "$ROOT/configs/quickstart.yaml" --set train.ronds=5
