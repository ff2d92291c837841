/* made_report.h -- a training report of made-up programs, any size, known by construction.
 *
 * log(predicted/measured) of program i is normal with its own deviation sigma, and
 * sigma is what the model claims: calibration must come out on the diagonal. */
#ifndef MADE_REPORT_H
#define MADE_REPORT_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "learner/report/report.h"

typedef struct made_report {
    cd_report r;
    double *v[CD_SPLIT_N_PART];   /* (5 n) measured, predicted, low, high, sigma */
    uint32_t *k[CD_SPLIT_N_PART]; /* (2 n) task, device */
    uint8_t *far[CD_SPLIT_N_PART];
    char **name; /* tasks, devices, networks */
    size_t n_name;
    uint32_t *net; /* (2 m) */
    double *curve;
    cd_report_curve series[3];
} made_report;

/* Two counter-based uniforms to one normal (Box and Muller 1958). */
static inline double made_normal(uint64_t seed, uint64_t i) {
    return sqrt(-2 * log(cd_rng_unit(seed, 2 * i) + 1e-300)) *
           cos(6.283185307179586 * cd_rng_unit(seed, 2 * i + 1));
}

static inline void made_part(made_report *m, cd_split_part p, size_t n, size_t n_task,
                             size_t n_device) {
    double *v = m->v[p] = calloc(5 * n + 1, sizeof *v);
    uint32_t *k = m->k[p] = calloc(2 * n + 1, sizeof *k), *g = calloc(n + 1, sizeof *g);
    uint8_t *far = m->far[p] = calloc(n + 1, 1);
    const uint64_t seed = 100 + (uint64_t)p;
    for (size_t i = 0; i < n; i++) {
        const size_t t =
            (size_t)(cd_rng_unit(seed + 10, i) * cd_rng_unit(seed + 11, i) * (double)n_task);
        const double sigma = 0.02 + 0.5 * cd_rng_unit(7, t) * cd_rng_unit(seed + 12, i);
        const double y = exp(log(1e-6) + 9 * cd_rng_unit(8, t) + 0.6 * made_normal(seed + 13, i));
        const double x = y * exp(sigma * made_normal(seed + 14, i));
        v[i] = y, v[n + i] = x, v[2 * n + i] = x * exp(-1.644853626951473 * sigma),
        v[3 * n + i] = x * exp(1.644853626951473 * sigma), v[4 * n + i] = sigma;
        k[i] = (uint32_t)t, k[n + i] = (uint32_t)(t % n_device), far[i] = sigma > 0.4;
        g[i] = (uint32_t)t;
    }
    m->r.part[p] = (cd_report_part){.n = n,
                                    .measured_s = v,
                                    .predicted_s = v + n,
                                    .low_s = v + 2 * n,
                                    .high_s = v + 3 * n,
                                    .rel_std = v + 4 * n,
                                    .out_of_range = far,
                                    .task = k,
                                    .device = k + n};
    (void)cd_metric_compute(v, v + n, g, NULL, n, &m->r.part[p].metrics, NULL);
    m->r.n_task_of[p] = n_task;
    free(g);
}

static inline void made_names(made_report *m, size_t n_task, size_t n_device, size_t n_network) {
    m->n_name = n_task + n_device + n_network;
    m->name = calloc(m->n_name + 1, sizeof *m->name);
    for (size_t i = 0; i < m->n_name; i++) {
        m->name[i] = calloc(1, 160);
        if (i < n_task)
            snprintf(m->name[i], 160,
                     "[\"%016llx%016llx\", [1, %zu, %zu, 64], [3, 3, 64, %zu], [1, 1, 1, 64]]",
                     (unsigned long long)cd_rng_at(1, i), (unsigned long long)cd_rng_at(2, i),
                     7 + i % 50, 7 + i % 50, 16 * (1 + i % 9));
        else if (i < n_task + n_device) snprintf(m->name[i], 160, "device-%zu", i - n_task);
        else snprintf(m->name[i], 160, "(net_%zu,[(1,3,224,224)])", i - n_task - n_device);
    }
    m->r.n_task = n_task, m->r.n_device = n_device, m->r.n_network = n_network;
    m->r.task_name = m->name, m->r.device_name = m->name + n_task,
    m->r.network_name = m->name + n_task + n_device;
    m->r.n_net_task = n_network ? n_task : 0;
    m->net = calloc(2 * n_task + 1, sizeof *m->net);
    for (size_t t = 0; n_network && t < n_task; t++)
        m->net[t] = (uint32_t)(t % n_network), m->net[n_task + t] = (uint32_t)t;
    m->r.net_network = m->net, m->r.net_task = m->net + n_task;
}

static inline void made_curves(made_report *m, size_t n) {
    m->curve = calloc(9 * n + 1, sizeof *m->curve);
    static const char *const name[] = {"rows", "program", "<net> \"0\""};
    for (size_t k = 0; k < 3; k++) {
        double *c = m->curve + 3 * n * k;
        for (size_t i = 0; i < n; i++) {
            const double t = (double)(i + 1) / (double)n;
            c[i] = (double)(i + 1), c[n + i] = 0.02 + exp(-(4 + (double)k) * t),
            c[2 * n + i] = 0.05 + 0.02 * (double)k + exp(-4 * t) + 0.03 * t;
        }
        m->series[k] = (cd_report_curve){name[k], n, c, c + n, c + 2 * n};
    }
    m->r.n_curve = 3, m->r.curve = m->series, m->r.step_name = "round", m->r.loss_name = "huber";
}

static inline void made_report_new(made_report *m, size_t n, size_t n_task, size_t n_device,
                                   size_t n_network) {
    memset(m, 0, sizeof *m);
    made_names(m, n_task, n_device, n_network);
    made_part(m, CD_SPLIT_PART_TRAIN, n * 7 / 10, n_task, n_device);
    made_part(m, CD_SPLIT_PART_VALID, n / 10, n_task, n_device);
    made_part(m, CD_SPLIT_PART_TEST, n - n * 7 / 10 - n / 10, n_task, n_device);
    made_curves(m, 250);
    m->r.kind = CD_SPLIT_TASK, m->r.seed = 1;
    m->r.filter = (cd_filter_count){.in = n + 9, .kept = n, .drop = {7, 2}};
    m->r.split_digest = "5ca1ab1e", m->r.content_digest = "c0ffee00";
    m->r.title = "made <up> & \"quoted\"", m->r.command = "cdmpp-train 'a b'.yaml",
    m->r.config = "split:\n  kind: \"task\" # <-\n", m->r.version = "0.0";
}

static inline void made_report_free(made_report *m) {
    for (int p = 0; p < CD_SPLIT_N_PART; p++) free(m->v[p]), free(m->k[p]), free(m->far[p]);
    for (size_t i = 0; i < m->n_name; i++) free(m->name[i]);
    free(m->name);
    free(m->net);
    free(m->curve);
}
#endif
