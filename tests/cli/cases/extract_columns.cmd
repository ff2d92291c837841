# the manual in docs/ is what the program prints
cdmpp-extract --list-columns | cmp - "$ROOT/docs/reference/columns.md" && cdmpp-extract --list-columns | head -n 12
