# compile_once.sh -- for scripts to source: a `gcc` and a `cc` first in PATH that compile the same text only once.
#
# Tests compile the same generated programs again and again: in the case of each simulated processor, in the sanitizers'
# build, in the guide. Their text comes on the standard input (`gcc ... -x c - -o FILE`), so that the output depends on
# nothing but that text, the arguments, the compiler and this processor (-march=native). The output of such a call that
# succeeded without a message is kept in build/compiled under the checksum of these four, and copied by the next call. Every
# other call goes to the compiler as it is, and so does one that failed before. What the commands themselves keep of
# compiled programs is not touched: to them the compiler is only faster. COMPILE_ONCE=0: without it.
compile_once() {
    [ "${COMPILE_ONCE:-1}" = 1 ] && command -v gcc >/dev/null && command -v sha256sum >/dev/null || return 0
    once=$PWD/build/compiled
    mkdir -p "$once/bin" || return 0
    for name in gcc cc; do
        cmp -s scripts/compile_once_cc.sh "$once/bin/$name" && continue
        cp scripts/compile_once_cc.sh "$once/bin/$name.$$" && chmod 755 "$once/bin/$name.$$" && mv "$once/bin/$name.$$" "$once/bin/$name" || return 0
    done
    case :$PATH: in *":$once/bin:"*) return 0 ;; esac # of the script that called this one
    COMPILE_ONCE_OF=$({ ls -lL "$(command -v gcc)"; gcc --version; grep -m 1 '^flags\|^Features' /proc/cpuinfo; grep -m 1 '^model name' /proc/cpuinfo; } 2>/dev/null | sha256sum | cut -c 1-64)
    [ "$(du -sm "$once" | cut -f 1)" -lt 1000 ] || rm -rf "$once"/?? # megabytes, of many runs
    PATH=$once/bin:$PATH
    export PATH COMPILE_ONCE_OF
}
