# all missing files, and what the configuration says about them; nothing is written
printf 'data:\n  files: [a.h5, b.h5]\n  source: |\n    two files from example.org:\n\n      fetch a b\n' >c.yaml
cdmpp-train c.yaml --out m.cdmpp
st=$?; ls; exit $st
