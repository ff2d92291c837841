/* Measures the links between the memories of a machine, and how its programs slow each other
 * down. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/machine/link_measure.h"
#include "profiler/machine/machine_measure_internal.h"
#include "profiler/host/host.h"
#include "profiler/measure/measure.h"

/* ---- links ---- */
static cdmpp_status again(cd_link_table *l, const cd_link *k, const char *from, const char *to,
                          cdmpp_err *err) {
    cd_link one = *k;
    one.from = from;
    one.to = to;
    return cd_link_table_add(l, &one, err);
}

/* The other devices of the host's memory get the same links as the first one. */
static cdmpp_status for_all_hosts(cd_machine *m, uint32_t host, uint32_t d, cdmpp_err *err) {
    const char *h = m->device[host].name, *name = m->device[d].name;
    for (uint32_t k = host + 1; k < m->n; k++) {
        if (m->device[k].memory) continue;
        CD_TRY(
            again(&m->links, cd_link_table_find(&m->links, h, name), m->device[k].name, name, err));
        CD_TRY(
            again(&m->links, cd_link_table_find(&m->links, name, h), name, m->device[k].name, err));
    }
    return CDMPP_OK;
}

static double slope_at(const cd_link *k, double bytes) {
    uint32_t i = 0;
    while (i + 1 < k->n_piece && k->piece[i + 1].bytes <= bytes) i++;
    return k->piece[i].s_per_byte;
}

/* One transfer behind the other, a then b: their costs add up, so the pieces are cut at the breaks
 * of both. */
static cdmpp_status through_host(cd_link_table *l, const cd_link *a, const cd_link *b,
                                 cdmpp_err *err) {
    const uint32_t most = a->n_piece + b->n_piece;
    double *at = cd_mem_zalloc(most, sizeof *at);
    cd_link_piece *p = at ? cd_mem_zalloc(most, sizeof *p) : NULL;
    uint32_t n = 0, m = 0;
    if (!p) {
        cd_mem_free(at);
        return CD_FAIL(err, ENOMEM, "%u pieces", most);
    }
    for (uint32_t i = 0; i < a->n_piece; i++) at[n++] = a->piece[i].bytes;
    for (uint32_t i = 0; i < b->n_piece; i++) at[n++] = b->piece[i].bytes;
    cd_sort_doubles(at, n);
    for (uint32_t i = 0; i < n; i++) {
        if (i && at[i] == at[i - 1]) continue;
        p[m] = (cd_link_piece){at[i], a->piece[0].seconds + b->piece[0].seconds,
                               slope_at(a, at[i]) + slope_at(b, at[i])};
        if (m) p[m].seconds = p[m - 1].seconds + p[m - 1].s_per_byte * (at[i] - p[m - 1].bytes);
        m++;
    }
    const cdmpp_status st =
        cd_link_table_add(l,
                          &(cd_link){a->from, b->to, "read, write", m, a->n < b->n ? a->n : b->n, p,
                                     hypot(a->noise, b->noise)},
                          err);
    cd_mem_free(p);
    cd_mem_free(at);
    return st;
}

static cdmpp_status between(cd_machine *m, uint32_t host, cdmpp_err *err) {
    for (uint32_t a = 0; a < m->n; a++)
        for (uint32_t b = 0; b < m->n; b++) {
            if (!m->device[a].memory || !m->device[b].memory ||
                m->device[a].memory == m->device[b].memory)
                continue;
            const cd_link *out =
                cd_link_table_find(&m->links, m->device[a].name, m->device[host].name);
            const cd_link *in =
                cd_link_table_find(&m->links, m->device[host].name, m->device[b].name);
            if (out && in) CD_TRY(through_host(&m->links, out, in, err));
        }
    return CDMPP_OK;
}

static cdmpp_status one_device(cd_machine *m, const cd_machine_measure_options *a, uint32_t host,
                               uint32_t d, cdmpp_err *err) {
    const cd_machine_device *x = &m->device[d];
    const cd_link_measure_options lo = {.host = m->device[host].name,
                                        .device = x->name,
                                        .max_bytes = a->max_bytes,
                                        .repeats = a->repeats,
                                        .noise = &m->noise};
    if (!x->memory) return CDMPP_OK;
    if (x->opencl) CD_TRY(cd_link_measure_opencl(&m->links, &lo, x->opencl, false, NULL, err));
    else if (!strcmp(x->kind, "cuda"))
        CD_TRY(cd_link_measure_cuda(&m->links, &lo, atoi(x->name + strlen("cuda")), NULL, err));
    else return CDMPP_OK;
    return for_all_hosts(m, host, d, err);
}

static cdmpp_status all_links(cd_machine *m, const cd_machine_measure_options *a, uint32_t host,
                              cdmpp_err *err) {
    const char *h = m->device[host].name;
    const cd_link_measure_options own = {.host = h,
                                         .device = h,
                                         .max_bytes = a->max_bytes,
                                         .repeats = a->repeats,
                                         .noise = &m->noise};
    CD_TRY(cd_link_measure_host(&m->links, &own, NULL, err));
    for (uint32_t d = host + 1; d < m->n; d++)
        if (!m->device[d].memory)
            CD_TRY(again(&m->links, cd_link_table_find(&m->links, h, h), m->device[d].name,
                         m->device[d].name, err));
    for (uint32_t d = 0; d < m->n; d++)
        CD_TRY(cd_err_key(err, one_device(m, a, host, d, err), m->device[d].name));
    return between(m, host, err);
}

cdmpp_status cd_machine_measure_links(cd_machine *m, const cd_machine_measure_options *a,
                                      cdmpp_err *err) {
    uint32_t host = 0;
    cd_affinity allowed;
    while (host < m->n && m->device[host].memory) host++;
    if (host == m->n)
        return CD_FAIL(err, ESCHEMA, "expected a device that uses the host's memory, as cpu0");
    cd_affinity_get(&allowed);
    if (m->device[host].core >= 0) (void)cd_affinity_at(m->device[host].core);
    const cdmpp_status st = all_links(m, a, host, err);
    cd_affinity_set(&allowed, 0);
    return st;
}

/* ---- contention ---- */
enum { PROGRAMS = 3, ROWS = PROGRAMS * (PROGRAMS + 1) };

/* Arrays of 24 MiB, of 256 KiB; numbers in registers. */
static cdmpp_status programs(cd_machine_program *p, cdmpp_err *err) {
    static const char memory[] =
        "void cd_machine_kernel_far(void *const *arg) { const float *a = arg[1], *b = arg[2]; "
        "float *c = arg[0]; for (int i = 0; i < 6291456; i++) c[i] = a[i] + b[i]; }\n";
    static const char cache[] =
        "void cd_machine_kernel_near(void *const *arg) { const float *a = arg[1], *b = arg[2]; "
        "float *c = arg[0]; for (int k = 0; k < 16; k++) for (int i = 0; i < 65536; i++) "
        "c[i] = a[i] + b[i] * (float)k; }\n";
    static const char numbers[] =
        "void cd_machine_kernel_sums(void *const *arg) { float *c = arg[0]; float s[16] = {0}; for "
        "(int k = 0; k < 100000; k++) for (int i = 0; i < 16; i++) "
        "s[i] = s[i] * 0.999f + 1.0f; for (int i = 0; i < 16; i++) c[i] = s[i]; }\n";
    CD_TRY(cd_machine_program_init(&p[0], CD_DIALECT_C, "cd_machine_kernel_far", memory, 3, 6291456,
                                   err));
    CD_TRY(cd_machine_program_init(&p[1], CD_DIALECT_C, "cd_machine_kernel_near", cache, 3, 65536,
                                   err));
    return cd_machine_program_init(&p[2], CD_DIALECT_C, "cd_machine_kernel_sums", numbers, 1, 16,
                                   err);
}

/* Data that stay in a core's own caches take no share of the memory. */
static double bytes_of(const cd_machine_program *p, int k) {
    return k ? 0 : (double)cd_corun_bytes(&p[k].code);
}

/* Every pair on different processors and on the same one. */
static cdmpp_status pairs(const cd_machine_program *p, double window_s, cd_corun_row *row,
                          size_t *n, cdmpp_err *err) {
    for (int i = 0; i < PROGRAMS; i++)
        for (int k = i; k < PROGRAMS; k++)
            for (int how = CD_CORUN_DISJOINT; how <= CD_CORUN_SHARED; how++) {
                const cd_corun_policy policy = {.sharing = (cd_corun_sharing)how,
                                                .window_s = window_s};
                cd_corun_pair pair = {0};
                CD_TRY(cd_corun_run(&p[i].build, &p[k].build, &policy, &pair, err));
                if (pair.error_no && err) *err = pair.err;
                if (pair.error_no)
                    return pair.err.code
                               ? pair.err.code
                               : (cdmpp_status)CD_FAIL(err, EBACKEND, "error %d", pair.error_no);
                cd_corun_row *r = &row[(*n)++];
                *r = (cd_corun_row){.bytes = {bytes_of(p, i), bytes_of(p, k)},
                                    .shared = how == CD_CORUN_SHARED};
                memcpy(r->solo_s, pair.solo_s, sizeof r->solo_s);
                memcpy(r->slowdown, pair.slowdown, sizeof r->slowdown);
            }
    return CDMPP_OK;
}

cdmpp_status cd_machine_measure_contention(double window_s, cd_contention *out, cdmpp_err *err) {
    cd_machine_program p[PROGRAMS] = {0};
    cd_corun_row row[ROWS];
    cd_backend *objects = NULL;
    size_t n = 0;
    if (cd_affinity_count() < 2)
        return CD_FAIL(err, EUSAGE, "programs beside each other need two processors");
    cdmpp_status st = programs(p, err);
    if (!st) st = cd_machine_program_build(p, PROGRAMS, &objects, err);
    if (!st) st = pairs(p, window_s > 0 ? window_s : 0.05, row, &n, err);
    if (!st) st = cd_contention_fit(row, n, out, err);
    if (objects) cd_backend_cpu.close(objects);
    for (int k = 0; k < PROGRAMS; k++) cd_machine_program_free(&p[k]);
    return st;
}
