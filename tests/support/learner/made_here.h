/* A model that is corrected for a machine (learner/model/here.h), as if its programs took `times` as long as the model says. */
#ifndef MADE_HERE_H
#define MADE_HERE_H
#include "base/io/io.h"
#include "learner/model/model.h"

/* Device `device` of the model in the file stands for the machine. */
static inline cdmpp_status made_here(const char *path, uint32_t device, double times, cd_model **out, cdmpp_err *err) {
    const float trait[CD_N_TRAIT] = {0};
    const cd_model_prediction p = {.latency_s = 1, .median_s = 1, .low_s = 0.5, .high_s = 2, .rel_std = 0.3, .like_std = 0.3};
    const cd_online_adapt_item item = cd_online_adapt_item_of(&p, true, trait, times);
    cd_here h = {.device = device, .name = "mine", .cpu = "A Processor", .programs = 12, .widen = 1};
    cd_buf b = {0};
    char *file = NULL;
    size_t n;
    CD_TRY(cd_online_adapt_new(&h.adapt, err));
    cdmpp_status st = CDMPP_OK;
    for (int i = 0; !st && i < 12; i++) {
        const char task[] = {(char)('a' + i), 0}; /* what several tasks have in common is of all of them */
        st = cd_online_adapt_add(h.adapt, CD_HERE_ADAPTED, true, task, &item, err);
    }
    if (!st) st = cd_online_adapt_fit(h.adapt, err);
    if (!st) st = cd_file_read(path, 0, &file, &n, err);
    if (!st) st = cd_here_add(file, n, &h, "", &b, err);
    if (!st) st = cd_model_from_bytes(b.p, b.n, out, err);
    cd_online_adapt_free(h.adapt);
    cd_mem_free(file);
    cd_buf_free(&b);
    return st;
}
#endif
