# mistakes of a search file and of its base, each with its place
printf 'tune:\n  trails: 5\nspace:\n  train.etaa: {real: [0.1, 1]}\n  train.loss: {choice: [squared, hubert]}\n  split.seed: {int: [1, 9]}\n' >s.yaml
cdmpp-train --autotune s.yaml; echo "status $?"
printf 'space:\n  train.eta: {real: [0.1, 1]}\n' >s.yaml
cdmpp-train --autotune s.yaml --set tune.eta=1; echo "status $?"
cdmpp-train --autotune s.yaml --set train.ronds=1; echo "status $?"
cdmpp-train --autotune s.yaml; echo "status $?"
cdmpp-train --autotune s.yaml --set data.files=no.h5; echo "status $?"
cdmpp-train --autotune s.yaml --trial 2>&1 | head -n 1
cdmpp-train --autotune nosuch.yaml; echo "status $?"
ls
