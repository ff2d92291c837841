/* Reasons of the tasks that were asked about last, in a table of one entry a place. */
#include <string.h>

#include "base/cli/cli.h"
#include "predictor/score/kinds_internal.h"
#include "predictor/score/scorer.h"

/* A search asks about some hundred tasks in turn; with fewer places they push each other out. */
enum { PLACES = 1024 };

typedef struct {
    /* NULL: empty; of one registry, so that the address names the definition */
    const cd_task *task;
    uint32_t device;
    cd_hash target; /* and threads */
    cd_unlike unlike;
} place;

struct cd_kinds {
    const cd_model *m;
    bool stranger;  /* all are strangers */
    cd_arena arena; /* one signature */
    place place[PLACES];
};

cdmpp_status cd_kinds_new(const cd_model *m, bool stranger, cd_kinds **out, cdmpp_err *err) {
    cd_kinds *k = cd_mem_zalloc(1, sizeof *k);
    if (!k) return CD_FAIL(err, ENOMEM, "kinds");
    k->m = m;
    k->stranger = stranger;
    *out = k;
    return CDMPP_OK;
}

void cd_kinds_free(cd_kinds *k) {
    if (!k) return;
    cd_arena_free(&k->arena);
    cd_mem_free(k);
}

static cdmpp_status fill(cd_kinds *k, place *p, bool stranger, cd_str target,
                         const cd_hardware *hardware, cdmpp_err *err) {
    cd_signature s;
    cd_arena_reset(&k->arena);
    CD_TRY(cd_signature_of(&k->arena, p->task->dag, target, hardware, &s, err));
    cd_trained_on_check(cd_model_trained_on(k->m), p->device, stranger, &s, &p->unlike);
    return CDMPP_OK;
}

/* A stranger's features are not those of the device that answers for it: that the device is unlike
 * says it. Threads are compared: that another device answers says nothing of them. */
cdmpp_status cd_kinds_check(cd_kinds *k, const cd_task *t, cd_str target,
                            const cd_hardware *hardware, const cd_device_pick *which,
                            cd_unlike *out, cdmpp_err *err) {
    *out = (cd_unlike){0};
    if (t && t->dag && cd_model_trained_on(k->m)) {
        cd_hash h = cd_hash_start();
        cd_hash_add(&h, target.p, target.n);
        cd_hash_add(&h, &which->unknown, sizeof which->unknown);
        if (hardware) cd_hash_add(&h, &hardware->num_cores, sizeof hardware->num_cores);
        place *p = &k->place[((uintptr_t)t / sizeof *t) % PLACES];
        if (p->task != t || p->device != which->device || memcmp(&p->target, &h, sizeof h) != 0) {
            *p = (place){.task = t, .device = which->device, .target = h};
            const cdmpp_status st =
                fill(k, p, k->stranger || which->unknown, target, hardware, err);
            if (st) p->task = NULL;
            CD_TRY(st);
        }
        *out = p->unlike;
    }
    if (which->unknown)
        cd_trained_on_add(out, CD_UNLIKE_BIT_DEVICE, which->name, strlen(which->name));
    return CDMPP_OK;
}

/* ---- models of earlier versions ---- */
static void warn(bool known, const char *path, cd_log *log) {
    const char *slash = strrchr(path, '/');
    if (!known)
        cd_log_put(log, CD_LOG_WARNING,
                   "%s does not say what it was trained on: types, operators and intrinsics that "
                   "it has not seen cannot be told (train it again)",
                   slash ? slash + 1 : path);
}

void cd_score_warn(const cd_model *m, const char *path, cd_log *log) {
    warn(cd_model_trained_on(m) != NULL, path, log);
}
void cd_score_warn_header(const char *header, const char *path, cd_log *log) {
    warn(strstr(header, "\"trained_on\":") != NULL, path, log);
}
