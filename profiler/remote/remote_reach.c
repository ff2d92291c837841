/* remote_reach -- the command line that gets to a host. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "profiler/remote/remote.h"

/* Letters, digits and the given signs only: what stays one word in any shell. */
static bool is_word(const char *s, const char *signs) {
    if (!*s) return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(signs, *s)) return false;
    return true;
}

cdmpp_status cd_remote_reach(cd_arena *a, const char *host, int port, const char *transport,
                             const char *const *arg, size_t n_arg, cd_remote_host *out,
                             cdmpp_err *err) {
    const char **argv = cd_arena_zalloc(a, n_arg + 16, sizeof *argv);
    const char *name = cd_str_dup(a, (cd_str){host, strlen(host)});
    char *number = cd_arena_zalloc(a, 16, 1);
    size_t n = 0;
    if (!argv || !name || !number) return CD_FAIL(err, ENOMEM, "name of a host");
    if (!is_word(host, "@._-:%[]") || *host == '-') /* no option of ssh */
        return CD_FAIL(err, EUSAGE, "--host: expected user@board, found '%.60s'", host);
    for (size_t i = 0; i < n_arg; i++)
        if (!is_word(arg[i], "=._-+,:/"))
            return CD_FAIL(err, EUSAGE, "'%.60s' cannot be said to another host", arg[i]);
    if (port > 0) snprintf(number, 16, "%d", port);
    const char *const by_sh[] = {"sh", "-c", transport, "cdmpp-worker", name, number};
    const char *const by_ssh[] = {
        "ssh", "-o", "BatchMode=yes", "-o",      "ServerAliveInterval=10", "-p", number,
        "--",  name, "cdmpp-profile", "--worker"};
    const size_t all = transport ? sizeof by_sh / sizeof *by_sh : sizeof by_ssh / sizeof *by_ssh;
    for (size_t i = 0; i < all; i++)
        if (transport || port > 0 || (i != 5 && i != 6))
            argv[n++] = transport ? by_sh[i] : by_ssh[i];
    for (size_t i = 0; i < n_arg; i++)
        if (!(argv[n++] = cd_str_dup(a, (cd_str){arg[i], strlen(arg[i])})))
            return CD_FAIL(err, ENOMEM, "words for a host");
    *out = (cd_remote_host){name, argv};
    return CDMPP_OK;
}
