/* record_same.h -- are two records equal, field by field? */
#ifndef RECORD_SAME_H
#define RECORD_SAME_H
#include <math.h>
#include <string.h>
#include "features/task/task.h"

static inline bool same_hardware(const cd_hardware *a, const cd_hardware *b) {
    return a->num_cores == b->num_cores && a->vector_unit_bytes == b->vector_unit_bytes &&
           a->cache_line_bytes == b->cache_line_bytes &&
           a->max_shared_memory_per_block == b->max_shared_memory_per_block &&
           a->max_local_memory_per_block == b->max_local_memory_per_block &&
           a->max_threads_per_block == b->max_threads_per_block &&
           a->max_vthread_extent == b->max_vthread_extent && a->warp_size == b->warp_size;
}

static inline bool same_step(const cd_record_step *a, const cd_record_step *b) {
    return a->kind == b->kind && a->stage == b->stage && memcmp(a->i, b->i, sizeof a->i) == 0 &&
           a->n_list == b->n_list &&
           (!a->n_list || memcmp(a->list, b->list, a->n_list * sizeof *a->list) == 0) &&
           cd_str_eq(a->s, b->s);
}

/* Reals may differ by `rel` of their size: writing keeps 6 digits. Below the
 * smallest normal number a double has fewer digits than that. */
static inline bool near(double a, double b, double rel) {
    return fabs(a - b) <= rel * fabs(a) + rel * 1e-300;
}

/* Name of the first field that differs; NULL when there is none. */
static inline const char *record_differs(const cd_record *a, const cd_record *b, double rel) {
    if (!cd_str_eq(a->workload_key, b->workload_key)) return "workload_key";
    if (!cd_str_eq(a->target, b->target)) return "target";
    if (!cd_str_eq(a->target_host, b->target_host) || a->has_host != b->has_host)
        return "target_host";
    if (a->has_hardware != b->has_hardware || !same_hardware(&a->hardware, &b->hardware))
        return "hardware";
    if (a->has_layout != b->has_layout || a->layout_rewrite != b->layout_rewrite)
        return "layout_rewrite";
    if (a->has_inputs != b->has_inputs || a->n_input != b->n_input) return "n_input";
    for (uint32_t k = 0; k < a->n_input; k++)
        if (!cd_str_eq(a->input[k], b->input[k])) return "input";
    if (a->n_step != b->n_step) return "n_step";
    for (uint32_t k = 0; k < a->n_step; k++)
        if (!same_step(&a->step[k], &b->step[k])) return "step";
    if (a->n_cost != b->n_cost) return "n_cost";
    for (uint32_t k = 0; k < a->n_cost; k++)
        if (!near(a->cost_s[k], b->cost_s[k], rel)) return "cost_s";
    if (a->error_no != b->error_no) return "error_no";
    if (!near(a->total_s, b->total_s, rel)) return "total_s";
    if (a->timestamp != b->timestamp) return "timestamp";
    if (!cd_str_eq(a->origin, b->origin)) return "origin";
    return cd_str_eq(a->version, b->version) ? NULL : "version";
}
#endif
