/* Whose a log is: of logs of another device in the place of measurements, with the device of the
 * model that stands for it; and of the log that grows. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "predictor/calibrate/calibrate_internal.h"

/* ---- records of a log ---- */
typedef cdmpp_status (*taker)(void *ctx, const cd_recline *l, const cd_record *r, cdmpp_err *err);

/* A line that is none is told when the log is used. */
static cdmpp_status take_line(const cd_recline *l, cd_arena *a, taker take, void *ctx,
                              cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(a);
    return cd_record_read(a, l->text, l->len, &r, NULL)
               ? CDMPP_OK
               : cd_err_at(err, take(ctx, l, &r, err), l->path, l->number);
}

static cdmpp_status each(const char *const *path, size_t n, taker take, void *ctx, cdmpp_err *err) {
    cd_record_reader *file;
    cd_arena a = {0};
    CD_TRY(cd_record_reader_open(path, n, &file, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        cd_recline l = {0};
        cdmpp_err why = {0};
        const cdmpp_status got = cd_record_reader_next(file, &l, &why);
        more = got || l.text;
        if (got == CDMPP_EIO || got == CDMPP_ENOMEM)
            st = CD_FAIL(err, EIO, "%s", why.msg), st = got == CDMPP_ENOMEM ? CDMPP_ENOMEM : st;
        else if (!got && l.text) st = take_line(&l, &a, take, ctx, err);
    }
    cd_record_reader_close(file);
    cd_arena_free(&a);
    return st;
}

/* ---- the name ---- */
/* A log of two devices says nothing of either: the first two names are told. */
static cdmpp_status take_name(void *ctx, const cd_recline *l, const cd_record *r, cdmpp_err *err) {
    char *name = ctx;
    const cd_str is = cd_device_name_of(r->target, l->path);
    if (is.n >= CD_CALIBRATE_NAME) return CD_FAIL(err, ERANGE, "a name of %zu letters", is.n);
    if (name[0] && !cd_str_is(is, name))
        return CD_FAIL(err, EUSAGE, "expected logs of one device, found %s and %.*s", name,
                       (int)is.n, is.p);
    (void)snprintf(name, CD_CALIBRATE_NAME, "%.*s", (int)is.n, is.p);
    return CDMPP_OK;
}

cdmpp_status cd_calibrate_name_of(const char *const *path, size_t n, char name[CD_CALIBRATE_NAME],
                                  cdmpp_err *err) {
    name[0] = 0;
    CD_TRY(each(path, n, take_name, name, err));
    return name[0] ? CDMPP_OK : CD_FAIL(err, ENODATA, "no record that can be read");
}

/* ---- whose log it is that grows ---- */
typedef struct owner {
    const cd_backend_kind *kind;
    const char *gpu; /* name; NULL: a processor */
} owner;

static cdmpp_status check_owner(void *ctx, const cd_recline *l, const cd_record *r,
                                cdmpp_err *err) {
    const owner *o = ctx;
    const cd_str is = cd_device_name_of(r->target, l->path);
    if (cd_backend_for_target(r->target) == o->kind && (!o->gpu || cd_str_is(is, o->gpu)))
        return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "the log has programs of another device (%.*s): --out names another file, or "
                   "take this log away",
                   r->target.n > 60 ? 60 : (int)r->target.n, r->target.p);
}

cdmpp_status cd_calibrate_log_check(const char *path, const char *target, const char *gpu,
                                    cdmpp_err *err) {
    owner o = {cd_backend_for_target((cd_str){target, strlen(target)}), gpu};
    return access(path, F_OK) ? CDMPP_OK : each(&path, 1, check_owner, &o, err);
}

/* ---- who stands for it ---- */
cdmpp_status cd_calibrate_stand_in(const cd_model *m, const cd_device_table *devices,
                                   const char *name, const char **out, cdmpp_err *err) {
    const cd_device_match_options mo = {.device = name, .nearest = true, .devices = devices};
    cd_device_match *w;
    const cdmpp_status st = cd_device_match_new(m, &mo, &w, err);
    if (st == CDMPP_ENOMEM) return st;
    if (st)
        return CD_FAIL(
            err, EMODEL,
            "%.60s, or all devices of the model, are described nowhere (--devices names a file "
            "that describes both): --device says which device of the model stands for it",
            name);
    *out = cd_model_device(m, cd_device_match_fixed(w)->device);
    cd_device_match_free(w);
    return CDMPP_OK;
}
