/* made_split.h -- a data set in memory for tests of splits and samples: every device
 * has every task, PER programs each, unless `lacks` says otherwise. */
#ifndef MADE_SPLIT_H
#define MADE_SPLIT_H
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "dataset/file/file.h"

enum {
    MADE_TASKS = 30,
    MADE_DEVICES = 3,
    MADE_PER = 5,
    MADE_N = MADE_TASKS * MADE_DEVICES * MADE_PER,
    MADE_COL = 6,
    MADE_NET = 8
};
typedef struct {
    cd_dataset d;
    double y[MADE_N], flop[MADE_N];
    uint32_t task[MADE_N], dev[MADE_N], src[MADE_N];
    uint8_t keep[MADE_N], gpu[MADE_N];
    uint64_t line[MADE_N];
    int64_t ptr[MADE_N + 1];
    float row[MADE_N * MADE_COL];
    char name[MADE_TASKS][24], *task_name[MADE_TASKS];
    uint32_t net[MADE_NET], net_task[MADE_NET];
} made_split;

/* Program i of the set: device i % 3 and so on; `flip` reverses the order. Device 2 lacks
 * tasks 24 and above, device 1 tasks below 3 (their programs are not kept). Task t has
 * 1e6 * (t*7 % 30) operations; 0 stands for unknown, -1. Networks: resnet_50 of batch
 * sizes 1 (tasks 1 2 3) and 4 (3 4), bert_base (10 11), mobilenet-v2 (20). */
static inline void made_split_build(made_split *f, int flip) {
    static char *devs[] = {"v100", "zen5-avx2", "zen5-avx512"}, *srcs[] = {"x/f.json"};
    static char *nets[] = {"(resnet_50,[(1,3,224,224)])", "(resnet_50,[(4,3,224,224)])",
                           "bert_base", "(mobilenet-v2,[(1,3,224,224)])"};
    static const uint32_t net[MADE_NET] = {0, 0, 0, 1, 1, 2, 2, 3};
    static const uint32_t net_task[MADE_NET] = {1, 2, 3, 3, 4, 10, 11, 20};
    memset(f, 0, sizeof *f);
    memcpy(f->net, net, sizeof net);
    memcpy(f->net_task, net_task, sizeof net_task);
    for (int t = 0; t < MADE_TASKS; t++) {
        snprintf(f->name[t], sizeof f->name[t], "[\"t%d\"]", t);
        f->task_name[t] = f->name[t];
    }
    for (int i = 0; i < MADE_N; i++) {
        const int k = flip ? MADE_N - 1 - i : i, t = k / MADE_DEVICES % MADE_TASKS;
        f->dev[i] = (uint32_t)(k % MADE_DEVICES);
        f->task[i] = (uint32_t)t;
        f->line[i] = (uint64_t)(k + 1);
        f->y[i] = 1e-3 * (1 + (double)(k * 7919L % MADE_N));
        f->flop[i] = t * 7 % 30 ? 1e6 * (t * 7 % 30) : -1;
        f->gpu[i] = f->dev[i] == 0;
        f->ptr[i + 1] = i + 1;
        f->keep[i] = !(f->dev[i] == 2 && t >= 24) && !(f->dev[i] == 1 && t < 3);
        for (int j = 0; j < MADE_COL; j++)
            f->row[i * MADE_COL + j] =
                (float)(10 * cd_rng_unit(5, (uint64_t)(t % 6 * MADE_COL + j)) +
                        cd_rng_unit(6, (uint64_t)(k * MADE_COL + j)));
    }
    f->d = (cd_dataset){.n = MADE_N,
                        .n_row = MADE_N,
                        .n_col = MADE_COL,
                        .row = f->row,
                        .row_ptr = f->ptr,
                        .latency_s = f->y,
                        .flop = f->flop,
                        .task = f->task,
                        .device = f->dev,
                        .source_file = f->src,
                        .source_line = f->line,
                        .is_gpu = f->gpu,
                        .n_task = MADE_TASKS,
                        .n_device = MADE_DEVICES,
                        .n_source = 1,
                        .task_name = f->task_name,
                        .device_name = devs,
                        .source_name = srcs,
                        .n_network = 4,
                        .network_name = nets,
                        .n_net_task = MADE_NET,
                        .net_network = f->net,
                        .net_task = f->net_task};
}
#endif
