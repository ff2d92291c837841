# every mistake of a file in one run, with line and column and what was meant
printf 'data:\n  files: x.h5\nsplit:\n  knid: task\n  valid: 1.5\ntrain:\n  rounds: many\n' >c.yaml
cdmpp-train c.yaml
