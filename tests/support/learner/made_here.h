/* A model that is corrected for a machine (learner/model/here.h), as if its programs took `times`
 * as long as the model says. */
#ifndef MADE_HERE_H
#define MADE_HERE_H
#include <math.h>

#include "base/io/io.h"
#include "learner/model/model.h"

/* Bytes of the model in the file, of whose devices `stands` stands for the machine "mine" with the
 * processor `cpu`. more: further members of the header, as in cd_here_add. */
static inline cdmpp_status made_here_more(const char *path, uint32_t stands, const char *cpu,
                                          double times, const char *more, cd_buf *out,
                                          cdmpp_err *err) {
    cd_here h = {.stands = stands,
                 .name = "mine",
                 .cpu = cpu,
                 .programs = 37,
                 .widen = 1,
                 .most = (double)INFINITY};
    const double off[] = {log(times), log(times)};
    cd_model *m = NULL;
    char *file = NULL;
    size_t n, width;
    CD_TRY(cd_model_load(path, &m, err));
    width = cd_here_width(m);
    cd_model_free(m);
    float *x = cd_mem_zalloc(2, width * sizeof *x);
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "programs");
    if (!st) st = cd_here_fit(x, off, 2, width, 1, &h.trees, err);
    if (!st) st = cd_file_read(path, 0, &file, &n, err);
    if (!st) st = cd_here_add(file, n, &h, more, out, err);
    cd_xgb_free(h.trees.gbt);
    cd_mem_free(x);
    cd_mem_free(file);
    return st;
}

static inline cdmpp_status made_here_bytes(const char *path, uint32_t stands, const char *cpu,
                                           double times, cd_buf *out, cdmpp_err *err) {
    return made_here_more(path, stands, cpu, times, "", out, err);
}

static inline cdmpp_status made_here(const char *path, uint32_t stands, double times,
                                     cd_model **out, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = made_here_bytes(path, stands, "A Processor", times, &b, err);
    if (!st) st = cd_model_from_bytes(b.p, b.n, out, err);
    cd_buf_free(&b);
    return st;
}
#endif
