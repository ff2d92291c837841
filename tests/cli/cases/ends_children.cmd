# A script that is killed leaves nothing running: not the tests, not what those started.
printf '#!/bin/sh\nsleep 86399 & wait\n' >units
printf '#!/bin/sh\nexec sleep 86398\n' >plain
chmod +x units plain
running() { grep -lzx "$1" /proc/[0-9]*/cmdline 2>/dev/null | wc -l; } # with such an argument
until_count() { # PATTERN COUNT, at most a minute
    for _ in $(seq 600); do
        [ "$(running "$1")" -eq "$2" ] && return
        sleep 0.1
    done
    echo "after a minute $(running "$1") of $1"
}
"$ROOT/scripts/check_unit.sh" tally "$PWD/plain" test_x &
until_count '8639[8]' 1
kill -KILL $!
until_count '8639[8]' 0
"$ROOT/scripts/check_unit.sh" tally "$PWD/units" test_x &
until_count '8639[9]' 1
kill $!
until_count '8639[9]' 0
echo done
