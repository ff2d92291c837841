/* Where a model comes from, as members of its header: tools, data, split, figures,
 * configuration. */
#include "learner/train/train_internal.h"

#include <string.h>

static void text(cd_buf *b, const char *name, const char *s) {
    cd_buf_putf(b, "\"%s\":", name);
    cd_buf_put_json_str(b, s, strlen(s));
}

static void put_config(cd_buf *b, const cd_config *c, bool on_disk) {
    cd_buf yaml = {0};
    cd_config plain = *c; /* borrows; where the file was put is no part of what it is */
    plain.output_model = plain.output_report = plain.data_source = "";
    cd_config_print_identity(&yaml, &plain, on_disk);
    if (yaml.oom) b->oom = true;
    text(b, "config", yaml.p ? yaml.p : "");
    cd_buf_free(&yaml);
}

/* Names of files as given; digests tell which contents. */
static void put_data(cd_buf *b, const cd_config *c, const cd_dataset *d, const cd_filter_count *f) {
    cd_buf_puts(b, "\"data\":{\"files\":[");
    for (size_t i = 0; i < c->data_files.n; i++) {
        const char *name = c->data_files.v[i];
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, name, strlen(name));
    }
    cd_buf_puts(b, "],");
    text(b, "content_digest", d->content_digest);
    cd_buf_putf(b, ",\"programs\":%zu,\"kept\":%zu,\"dropped\":{", f->in, f->kept);
    for (int k = 0; k < CD_FILTER_N_DROP; k++) {
        if (k) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, cd_filter_drop_text((cd_filter_drop)k),
                            strlen(cd_filter_drop_text((cd_filter_drop)k)));
        cd_buf_putf(b, ":%zu", f->drop[k]);
    }
    cd_buf_puts(b, "}}");
}

/* Which tasks of the held-out device were trained on, in the order of choice. */
static void put_target(cd_buf *b, const cd_dataset *d, const cd_split *s) {
    cd_buf_putf(b,
                ",\"target\":{\"candidates\":%zu,\"unlabelled\":%zu,\"programs\":[%zu,%zu,%zu],"
                "\"chosen\":[",
                s->n_candidate, s->n_unlabelled, s->n_target[0], s->n_target[1], s->n_target[2]);
    for (size_t k = 0; k < s->n_chosen; k++) {
        if (k) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, d->task_name[s->chosen[k]], strlen(d->task_name[s->chosen[k]]));
    }
    cd_buf_puts(b, "]}");
}

static void put_split(cd_buf *b, const cd_config *c, const cd_dataset *d, const cd_split *s) {
    cd_buf_putf(b, "\"split\":{\"kind\":\"%s\",\"seed\":%lld,", cd_split_name(s->kind),
                (long long)c->split_seed);
    text(b, "digest", s->digest);
    for (int p = 0; p < CD_SPLIT_N_PART; p++)
        cd_buf_putf(b, ",\"%s\":{\"programs\":%zu,\"tasks\":%zu,\"digest\":\"%s\"}",
                    cd_split_part_name((cd_split_part)p), s->n_program[p], s->n_task[p],
                    s->hash[p]);
    cd_buf_putf(b, ",\"unused\":%zu,\"shared_tasks\":%zu", s->n_unused, s->n_shared);
    if (s->target) put_target(b, d, s);
    cd_buf_puts(b, "}");
}

/* The order of the keys is the order in the file, which must not change between equal trainings. */
void cd_provenance(cd_buf *b, const cd_config *c, const cd_dataset *d, const cd_split *s,
                   const cd_learner_result *l) {
    char xgboost[32];
    cd_xgb_version(xgboost);
    cd_buf_putf(b, "\"tool\":{\"name\":\"cdmpp\",\"version\":\"%s\",\"xgboost\":\"%s\"},",
                cdmpp_version(), xgboost);
    put_data(b, c, d, &l->filter);
    cd_buf_puts(b, ",");
    put_split(b, c, d, s);
    cd_buf_puts(b, ",\"metrics\":{");
    for (int p = 0; p < CD_SPLIT_N_PART; p++) {
        cd_buf_putf(b, "%s\"%s\":", p ? "," : "", cd_split_part_name((cd_split_part)p));
        cd_metric_json(b, &l->metrics[p]);
    }
    cd_buf_puts(b, "},\"uncertainty\":{");
    for (int p = 0; p < CD_SPLIT_N_PART; p++) {
        cd_buf_putf(b, "%s\"%s\":", p ? "," : "", cd_split_part_name((cd_split_part)p));
        cd_uncertainty_json(b, &l->unsure[p]);
    }
    cd_buf_puts(b, "},");
    cd_selection_bias_json(b, &l->best[CD_SPLIT_PART_TRAIN], &l->best[CD_SPLIT_PART_VALID],
                           &l->best_of[CD_SPLIT_PART_TRAIN], &l->best_of[CD_SPLIT_PART_VALID],
                           &l->tasks);
    cd_buf_puts(b, ",");
    if (c->model_tuner) {
        cd_buf_puts(b, "\"tuner_metrics\":{\"test\":");
        cd_metric_json(b, &l->tuner[1]);
        cd_buf_puts(b, ",\"validation\":");
        cd_metric_json(b, &l->tuner[0]);
        cd_buf_puts(b, "},");
    }
    put_config(b, c, cd_spool_on_disk(d->spool));
}
