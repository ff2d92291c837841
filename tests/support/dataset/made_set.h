/* A data set file whose latencies are known by construction. */
#ifndef MADE_SET_H
#define MADE_SET_H
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "dataset/extract/extract.h"
#include "features/rows/rows.h"

enum { N_TASK = 40, N_LINE = 30, N = N_TASK * N_LINE };

/* Row k of program i: trips 2^p, loads 2^b; it takes trips/1e9 + bytes/1e10 s, and
 * twice as long on device "slow". Rows are in a random order. */
static double make_rows(int i, float *row, uint32_t n_row) {
    double s = 0;
    memset(row, 0, n_row * CD_N_COL * sizeof *row);
    for (uint32_t k = 0; k < n_row; k++) {
        const double p = 4 + 16 * cd_rng_unit(5, (uint64_t)(8 * (i / N_LINE)) + k),
                     b = p + 3 * cd_rng_unit(6, (uint64_t)(8 * i) + k);
        row[k * CD_N_COL + 161] = row[k * CD_N_COL + 1] = (float)p;
        row[k * CD_N_COL + 60] = (float)b;
        s += exp2(p) * 1e-9 + exp2(b) * 1e-10;
    }
    return i % 2 ? 2 * s : s;
}

static void made_set_write(const char *path) {
    cdmpp_err err = {0};
    cd_writer *w;
    cd_buf place = {0};
    static float row[4 * CD_N_COL];
    char zero[65], task[32];
    memset(zero, '0', 64);
    zero[64] = '\0';
    assert_ok(cd_writer_open(&w, path, zero, true, NULL, &place, &err));
    for (int i = 0; i < N; i++) {
        const uint32_t n_row = 1 + (uint32_t)(i / N_LINE) % 4;
        const double s = make_rows(i, row, n_row);
        const char *dev = i % 2 ? "slow" : "fast";
        snprintf(task, sizeof task, "[\"t\", %d]", i / N_LINE);
        cd_item it = {.n_row = n_row,
                      .row = row,
                      .latency_s = s,
                      .latency_mean_s = s,
                      .latency_min_s = s,
                      .flop = -1,
                      .repeats = 3,
                      .source_line = (uint64_t)i + 1};
        it.text[CD_LAYOUT_DICT_TASK] = (cd_str){task, strlen(task)};
        it.text[CD_LAYOUT_DICT_DEVICE] = (cd_str){dev, 4};
        it.text[CD_LAYOUT_DICT_SOURCE] = (cd_str){"f.json", 6};
        it.text[CD_LAYOUT_DICT_TARGET] = (cd_str){"llvm", 4};
        assert_ok(cd_writer_add(w, &it, &err));
    }
    assert_ok(cd_writer_finish(w, &(cd_finish){.command_line = "", .source_digest = zero}, &err));
    cd_writer_free(w);
    cd_buf_free(&place);
}
#endif
