/* fake_engine.h -- rows that depend on the text of a record only, so that the
 * data set layer can be tested without schedules. The task "[\"none\"]" is
 * unknown; a record without steps is rejected. Facts are the beginning of the rows. */
#ifndef FAKE_ENGINE_H
#define FAKE_ENGINE_H
#include <stdlib.h>
#include <string.h>

#include "dataset/extract/extract.h"

typedef struct fake_program {
    float row[8 * 164], leaf[16 * 164];
    int32_t node[16], of[16], tree[32], ptr[17];
    int64_t extent[64];
    uint8_t kind[64];
} fake_program;

/* Set by tests: called in every build. */
static void (*fake_hook)(void);

static inline const cd_task *fake_find(void *ctx, cd_str key) {
    static const char *const names[] = {"[\"a\", 1]", "[\"b\", 2]", "[\"c\", 3]"};
    static cd_task t[3];
    (void)ctx;
    for (size_t i = 0; i < 3; i++)
        if (cd_str_is(key, names[i])) {
            cd_task *p = &t[i];
            if (!p->workload_key) p->workload_key = names[i];
            return p;
        }
    return NULL;
}

static inline cdmpp_status fake_open(void *ctx, void **out, cdmpp_err *err) {
    (void)ctx;
    *out = calloc(1, sizeof(fake_program));
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "program");
}

static inline cdmpp_status fake_build(void *program, const cd_task *t, const cd_record *r,
                                      cd_rows *out, cdmpp_err *err) {
    fake_program *p = program;
    uint32_t h = 2166136261u;
    if (fake_hook) fake_hook();
    if (r->n_step == 0) return CD_FAIL(err, EREJECTED, "no steps");
    for (const char *s = t->workload_key; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
    for (uint32_t i = 0; i < r->n_step; i++) h = (h ^ (uint32_t)r->step[i].stage) * 16777619u;
    h ^= (uint32_t)r->timestamp * 2654435761u;
    out->n_row = 1 + h % 8;
    out->n_leaf = out->n_row + h % 3;
    out->n_tree = 2 * out->n_leaf;
    for (uint32_t i = 0; i < out->n_row * 164; i++)
        p->row[i] = (float)((h + i * 7919u) % 4096u) / 64.0f;
    for (uint32_t k = 0; k < out->n_leaf; k++) {
        memcpy(p->leaf + k * 164, p->row + k % out->n_row * 164, 164 * sizeof(float));
        if (k % 3 == 1) p->leaf[k * 164 + 5] += 1;
        p->node[k] = (int32_t)k + 1, p->of[k] = (int32_t)(k % out->n_row);
        p->ptr[k + 1] = p->ptr[k] + (int32_t)(k % 4);
        for (int32_t j = p->ptr[k]; j < p->ptr[k + 1]; j++)
            p->extent[j] = j + (int32_t)(h % 100), p->kind[j] = (uint8_t)(j % 6);
        p->tree[2 * k] = (int32_t)k, p->tree[2 * k + 1] = -1;
    }
    out->row = p->row, out->leaf = p->leaf, out->leaf_node = out->leaf_pos = p->node,
    out->leaf_row = p->of, out->tree = p->tree;
    out->path_ptr = p->ptr, out->path_extent = p->extent, out->path_kind = p->kind;
    return CDMPP_OK;
}

/* The first numbers of the first row, of GPU programs from its second on, but of every eighth
 * program none. */
static inline cdmpp_status fake_facts(void *program, cd_facts_set set, float *out, cdmpp_err *err) {
    const fake_program *p = program;
    if ((int)(p->row[0] * 64) % 8 == 3)
        return CD_FAIL(err, EUNSUPPORTED, "an extent that is no constant");
    memcpy(out, p->row + (set == CD_FACTS_OF_GPU), CD_N_FACTS * sizeof *out);
    return CDMPP_OK;
}

static const cd_feature_engine fake_engine = {NULL, fake_find,  fake_open, fake_build,
                                              free, fake_facts, NULL};
#endif
