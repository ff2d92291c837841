# tied.sh -- for scripts to source: `$tied COMMAND...` ends with TERM when the script ends, however it ends. A shell that is
# killed leaves the program that it waits for running; the kernel ends it here (setpriv of util-linux).
tied=
if command -v setpriv >/dev/null; then tied='setpriv --pdeathsig TERM'; fi
