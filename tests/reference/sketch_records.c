/* sketch_records TASKS RECORDS... -- is every record a schedule of our space?
 *
 * TVM's search completes sketches and mutates what results. So every record must
 * be followed exactly (cd_sketch_sampler_match): all its steps are those of a sketch of
 * ours, completed by choices. Also draws and mutates schedules of every task, all
 * of which must lower. Exit status 0: no record is outside the space, no program fails. */
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"

enum { DRAWS = 50 };

typedef struct {
    cd_task_registry *tasks;
    cd_program *program;
    size_t records, strange, no_space, draws, valid, rejected, wrong;
} count;

/* Do the record's choices make it? Followed by one sampler, made from its choices by the other. */
static bool is_ours(cd_sketch_sampler *const w[2], const cd_record *r) {
    cdmpp_err err = {0};
    cd_sketch_sample d, again;
    bool exact;
    if (cd_sketch_sampler_match(w[0], r, &d, &exact, &err) || !exact) return false;
    if (cd_sketch_sampler_make(w[1], d.choice, d.n_choice, &again, &err) ||
        again.n_step != d.n_step)
        return false;
    for (uint32_t k = 0; k < d.n_step; k++) {
        const cd_record_step *x = &d.step[k], *y = &again.step[k];
        if (x->kind != y->kind || x->stage != y->stage || memcmp(x->i, y->i, sizeof x->i) != 0 ||
            x->n_list != y->n_list ||
            (x->n_list && memcmp(x->list, y->list, x->n_list * sizeof *x->list) != 0))
            return false;
    }
    return true;
}

static void draw_some(count *c, const cd_task *task, const cd_sketch_space *sp) {
    cd_sketch_sampler *w = NULL;
    cdmpp_err err = {0};
    if (cd_sketch_sampler_new(sp, 1, &w, &err)) {
        c->wrong++;
        return;
    }
    for (uint64_t k = 0; k < DRAWS; k++) {
        cd_record r = {.target = {task->target, strlen(task->target)}};
        cd_rows rows;
        c->draws++;
        cd_sketch_sample d;
        if (cd_sketch_sampler_draw(w, k, &d, &err)) continue;
        if (k % 2 && cd_sketch_sampler_mutate(w, d.choice, d.n_choice, k, &d, &err)) continue;
        r.n_step = d.n_step;
        r.step = d.step;
        c->valid++;
        const cdmpp_status st = cd_program_build(c->program, task, &r, &rows, &err);
        c->rejected += st == CDMPP_EREJECTED;
        c->wrong += st && st != CDMPP_EREJECTED;
    }
    cd_sketch_sampler_free(w);
}

static cd_sketch_space *space_of(count *c, const cd_record *r, const char *path) {
    const cd_task *task = cd_task_registry_find(c->tasks, r->workload_key);
    cdmpp_err err = {0};
    cd_sketch_space *sp = NULL;
    if (task && !cd_sketch_space_new(task, r->has_hardware ? &r->hardware : &task->hardware,
                                     cd_target_is_gpu(r->target), &sp, &err)) {
        draw_some(c, task, sp);
        return sp;
    }
    printf("%s: no space: %s\n", path, task ? err.msg : "no task");
    c->no_space++;
    return NULL;
}

static bool one_file(count *c, const char *path) {
    cd_file_lines *l = NULL;
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_sketch_space *sp = NULL;
    cd_sketch_sampler *w[2] = {NULL, NULL};
    char *line;
    size_t n, strange = 0;
    if (cd_file_lines_open(path, 0, &l, &err)) return false;
    while (!cd_file_lines_next(l, &line, &n, &err) && line) {
        cd_record r;
        cd_arena_reset(&a);
        if (cd_record_is_comment(line, n) || cd_record_read(&a, line, n, &r, &err)) continue;
        if (!sp && !(sp = space_of(c, &r, path))) break;
        if ((!w[0] && cd_sketch_sampler_new(sp, 1, &w[0], &err)) ||
            (!w[1] && cd_sketch_sampler_new(sp, 2, &w[1], &err)))
            break;
        c->records++;
        strange += !is_ours(w, &r);
    }
    if (strange) printf("%s: %zu records that no choices lead to\n", path, strange);
    c->strange += strange;
    cd_sketch_sampler_free(w[0]);
    cd_sketch_sampler_free(w[1]);
    cd_sketch_space_free(sp);
    cd_arena_free(&a);
    cd_file_lines_close(l);
    return true;
}

static bool is_json(const char *path, void *ctx) {
    const size_t n = strlen(path);
    (void)ctx;
    return n > 5 && !strcmp(path + n - 5, ".json");
}

int main(int argc, char **argv) {
    count c = {0};
    cdmpp_err err = {0};
    cd_arena a = {0};
    bool ok = argc > 2 && !cd_task_registry_new(&c.tasks, &err) &&
              !cd_task_registry_load(c.tasks, argv[1], &err) && !cd_program_new(&c.program, &err);
    for (int k = 2; ok && k < argc; k++) {
        const char *const *path;
        size_t n;
        ok = !cd_file_list(&a, argv[k], is_json, NULL, &path, &n, &err);
        for (size_t j = 0; ok && j < n; j++) ok = one_file(&c, path[j]);
    }
    if (!ok) fprintf(stderr, "sketch_records: %s\n", err.msg);
    printf("%zu records, %zu outside of our space; %zu tasks without a space; %zu draws, %zu "
           "complete, %zu beyond the target's limits, "
           "%zu wrong\n",
           c.records, c.strange, c.no_space, c.draws, c.valid, c.rejected, c.wrong);
    cd_program_free(c.program);
    cd_task_registry_free(c.tasks);
    cd_arena_free(&a);
    return !ok || c.strange || c.no_space || c.wrong || !c.records;
}
