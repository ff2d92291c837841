cdmpp-train "$ROOT/configs/quickstart.yaml" --set data.files=nosuch.h5 --out m.cdmpp
st=$?; ls; exit $st
