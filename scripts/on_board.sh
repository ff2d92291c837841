#!/bin/sh
# on_board.sh USER@BOARD PROGRAM N -- copies a program to a board by ssh and runs it there; for scripts/cross.sh. $SSH: another way there (default: ssh).
set -eu
[ $# -eq 3 ] || { echo "on_board.sh: expected USER@BOARD PROGRAM N" >&2; exit 2; }
exec ${SSH:-ssh} "$1" "p=\$(mktemp) && cat >\$p && chmod +x \$p && \$p $3; s=\$?; rm -f \$p; exit \$s" <"$2"
