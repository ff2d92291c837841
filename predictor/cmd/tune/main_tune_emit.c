/* --emit of cdmpp-tune: the program that is kept of each task, as source. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "predictor/cmd/tune/main_tune.h"
#include "predictor/tune/session/session.h"

enum { PATH = 1024 };

static cdmpp_status write_file(const char *dir, const char *name, const cd_buf *b, cdmpp_err *err) {
    char path[PATH];
    if (!name[0]) return CDMPP_OK;
    snprintf(path, sizeof path, "%.800s/%s", dir, name);
    return cd_file_write(path, b->p ? b->p : "", b->n, err);
}

static cdmpp_status emit(cd_main_tune_live *l, uint32_t i, const char *dir, cdmpp_err *err) {
    cd_tune_side *k = cd_tune_result_kept(&l->result[i]);
    const cd_tune_unit *u = &l->what->unit[i];
    char name[64], about[512], kernel[128], host[128];
    cd_buf a = {0}, b = {0}, command = {0};
    if (!k) return CDMPP_OK;
    if ((int)k->job.code.dialect != l->o->emit) return CD_FAIL(err, EUSAGE, "--emit: the program of %.60s is for target '%.40s', in another language", u->name, u->of.target);
    snprintf(name, sizeof name, "task%u", i);
    snprintf(about, sizeof about, "%.100s\n   %.300s\n   %.4g ms when it was tuned (%s)", u->name, u->of.task->workload_key, k->seconds * 1e3,
             cd_tune_verdict_name(l->result[i].verdict));
    for (char *s = about; (s = strstr(s, "*/"));) s[1] = ' '; /* a key may hold anything */
    const cd_tune_emit e = {.code = &k->job.code, .name = name, .about = about, .threads = k->item.threads};
    cd_tune_emit_names(&e, kernel, host);
    cdmpp_status st = cd_tune_emit_put(&e, &a, &b, err);
    if (!st) st = write_file(dir, kernel, &a, err);
    if (!st) st = write_file(dir, host, &b, err);
    cd_tune_emit_command(&e, &command);
    if (!st && command.p) cd_log_put(l->o->log, CD_LOG_INFO, "%s/%s: %s", dir, kernel, command.p);
    cd_buf_free(&a);
    cd_buf_free(&b);
    cd_buf_free(&command);
    return st;
}

cdmpp_status cd_main_tune_emit(cd_main_tune_live *l, cdmpp_err *err) {
    const char *dir = l->o->emit_dir ? l->o->emit_dir : ".";
    if (mkdir(dir, 0777) && errno != EEXIST) return cd_err_at(err, CD_FAIL(err, EIO, "cannot make the folder: %s", strerror(errno)), dir, 0);
    for (uint32_t i = 0; i < l->what->n; i++) CD_TRY(emit(l, i, dir, err));
    return CDMPP_OK;
}
