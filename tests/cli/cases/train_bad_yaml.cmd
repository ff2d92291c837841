printf 'data:\n  files: [x.h5\nsplit: {\n' >c.yaml
cdmpp-train c.yaml
