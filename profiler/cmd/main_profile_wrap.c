/* Mode "wrap" of cdmpp-profile: time and memory of any program. */
#include <string.h>

#include "profiler/cmd/main_profile.h"
#include "profiler/wrap/wrap.h"

enum { KILLED = 128 };

cdmpp_status cd_main_profile_wrap_check(const cd_main_profile *o, cdmpp_err *err) {
    return o->operand.n ? CDMPP_OK : CD_FAIL(err, EUSAGE, "wrap: expected -- and the command to run");
}

/* Behind everything that the program wrote to standard error, or into --out. */
static cdmpp_status tell(const cd_main_profile *o, const cd_process_profile_report *r, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    if (o->json) {
        cd_process_profile_put_json(&b, r);
        cd_command_json(&all, "cdmpp.wrap", "cdmpp-profile", &b);
    } else {
        cd_process_profile_put_text(&all, r);
    }
    if (all.oom) return CD_FAIL(err, ENOMEM, "report");
    FILE *f = o->out && strcmp(o->out, "-") ? fopen(o->out, "wb") : o->out ? stdout : stderr;
    const bool good = f && fwrite(all.p, 1, all.n, f) == all.n;
    cd_buf_free(&all);
    if (f && f != stderr && f != stdout && fclose(f)) return CD_FAIL(err, EIO, "cannot write %.150s", o->out);
    return good ? CDMPP_OK : CD_FAIL(err, EIO, "cannot write %.150s", o->out ? o->out : "to standard error");
}

cdmpp_status cd_main_profile_wrap(cd_main_profile *o, cdmpp_err *err) {
    cd_arena a = {0};
    cd_process_profile_report r;
    char **argv = cd_arena_zalloc(&a, o->operand.n + 1, sizeof *argv);
    cdmpp_status st = argv ? CDMPP_OK : CD_FAIL(err, ENOMEM, "arguments");
    for (size_t i = 0; i < o->operand.n && !st; i++)
        if (!(argv[i] = cd_str_dup(&a, (cd_str){o->operand.v[i], strlen(o->operand.v[i])}))) st = CD_FAIL(err, ENOMEM, "arguments");
    if (!st) st = cd_process_profile_run(&a, argv, NULL, &r, err);
    if (!st) st = tell(o, &r, err);
    if (!st) o->exit_code = r.signaled ? KILLED + r.code : r.code;
    cd_arena_free(&a);
    return st;
}
