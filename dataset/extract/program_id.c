/* The identity of a program, by which records of the same program are found in files of
 * millions. */
#include <stdlib.h>
#include <string.h>

#include "dataset/extract/extract.h"

/* Each text with its length, so that no two lists of texts run into the same bytes. */
static void add_text(cd_sha256 *h, cd_str s) {
    const uint64_t n = s.n;
    cd_sha256_add(h, &n, sizeof n);
    cd_sha256_add(h, s.p, s.n);
}

static void add_step(cd_sha256 *h, const cd_record_step *t) {
    const bool split = t->kind == CD_RECORD_STEP_SP;
    const int32_t head[] = {(int32_t)t->kind,    t->stage, t->i[0],
                            split ? 0 : t->i[1], t->i[2],  (int32_t)t->n_list};
    cd_sha256_add(h, head, sizeof head);
    cd_sha256_add(h, t->list, t->n_list * sizeof *t->list);
    add_text(h, t->s);
}

void cd_program_id_of(const cd_record *r, cd_str device, uint64_t out[2]) {
    cd_sha256 h;
    char hex[65];
    cd_sha256_init(&h);
    add_text(&h, r->workload_key);
    add_text(&h, r->target);
    add_text(&h, r->target_host);
    add_text(&h, device);
    if (r->has_hardware) cd_sha256_add(&h, &r->hardware, sizeof r->hardware);
    if (r->has_layout) cd_sha256_add(&h, &r->layout_rewrite, sizeof r->layout_rewrite);
    for (uint32_t i = 0; i < r->n_step; i++) add_step(&h, &r->step[i]);
    cd_sha256_hex(&h, hex);
    hex[32] = 0;
    out[1] = strtoull(hex + 16, NULL, 16);
    hex[16] = 0;
    out[0] = strtoull(hex, NULL, 16);
}
