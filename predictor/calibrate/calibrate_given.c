/* Logs of another device in the place of measurements: whose they are, and which device of the model stands for it. */
#include <stdio.h>
#include <string.h>

#include "predictor/calibrate/calibrate_internal.h"

/* ---- the name ---- */
/* A log of two devices says nothing of either: the first two names are told. */
static cdmpp_status take_name(const cd_recline *l, cd_arena *a, char name[CD_CALIBRATE_NAME], cdmpp_err *err) {
    cd_record r;
    cd_arena_reset(a);
    if (cd_record_read(a, l->text, l->len, &r, NULL)) return CDMPP_OK; /* told when the line is used */
    const cd_str is = cd_device_name_of(r.target, l->path);
    if (is.n >= CD_CALIBRATE_NAME) return CD_FAIL(err, ERANGE, "a name of %zu letters", is.n);
    if (name[0] && !cd_str_is(is, name)) return CD_FAIL(err, EUSAGE, "expected logs of one device, found %s and %.*s", name, (int)is.n, is.p);
    (void)snprintf(name, CD_CALIBRATE_NAME, "%.*s", (int)is.n, is.p);
    return CDMPP_OK;
}

cdmpp_status cd_calibrate_name_of(const char *const *path, size_t n, char name[CD_CALIBRATE_NAME], cdmpp_err *err) {
    cd_record_reader *file;
    cd_arena a = {0};
    name[0] = 0;
    CD_TRY(cd_record_reader_open(path, n, &file, err));
    cdmpp_status st = CDMPP_OK;
    for (bool more = true; !st && more;) {
        cd_recline l = {0};
        cdmpp_err why = {0};
        const cdmpp_status got = cd_record_reader_next(file, &l, &why);
        more = got || l.text;
        if (got == CDMPP_EIO || got == CDMPP_ENOMEM) st = CD_FAIL(err, EIO, "%s", why.msg), st = got == CDMPP_ENOMEM ? CDMPP_ENOMEM : st;
        else if (!got && l.text) st = cd_err_at(err, take_name(&l, &a, name, err), l.path, l.number);
    }
    cd_record_reader_close(file);
    cd_arena_free(&a);
    if (!st && !name[0]) st = CD_FAIL(err, ENODATA, "no record that can be read");
    return st;
}

/* ---- who stands for it ---- */
cdmpp_status cd_calibrate_stand_in(const cd_model *m, const cd_device_table *devices, const char *name, const char **out, cdmpp_err *err) {
    const cd_device_match_options mo = {.device = name, .nearest = true, .devices = devices};
    cd_device_match *w;
    const cdmpp_status st = cd_device_match_new(m, &mo, &w, err);
    if (st == CDMPP_ENOMEM) return st;
    if (st) return CD_FAIL(err, EMODEL, "%.60s is described nowhere: --device says which device of the model stands for it", name);
    *out = cd_model_device(m, cd_device_match_fixed(w)->device);
    cd_device_match_free(w);
    return CDMPP_OK;
}
